"""Disks and addresses: they cost money for as long as they are there, with a machine or without."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.catalogue import DISK_TYPES, catalogue
from cloudwhale_providers.sandbox.compute.lists import aggregated, listed
from cloudwhale_providers.sandbox.compute.operations import Operations
from cloudwhale_providers.sandbox.compute.places import PROJECT
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused, invalid, not_found
from cloudwhale_providers.sandbox.compute.wording import (
    Words,
    fingerprint,
    last,
    link,
    number,
    written_at,
)

BLANK_GIB = 500
"""Compute Engine API, disks.insert: a blank pd-standard without a size."""


@dataclass(slots=True)
class Disk:
    """One disk."""

    name: str
    zone: str
    kind: str
    gib: int
    made_at: Instant
    image: str = ""
    """Path of the image that it was made from; empty: it was blank."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    user: str = ""
    """Path of the machine that has it; empty: none."""
    goes_too: bool = False
    """Whether it is deleted with that machine."""
    attached_at: Instant | None = None
    detached_at: Instant | None = None

    @property
    def path(self) -> str:
        """Return what its link names."""
        return f"projects/{PROJECT}/zones/{self.zone}/disks/{self.name}"

    @property
    def id(self) -> str:
        """Return its number."""
        return number(self.path, self.made_at)

    def words(self) -> Words:
        """Return it as it is listed."""
        home = f"projects/{PROJECT}/zones/{self.zone}"
        found: Words = {
            "kind": "compute#disk", "id": self.id, "name": self.name, "status": "READY",
            "creationTimestamp": written_at(self.made_at), "sizeGb": str(self.gib),
            "type": link(f"{home}/diskTypes/{self.kind}"), "zone": link(home),
            "labels": dict(self.labels), "labelFingerprint": fingerprint(self.labels),
            "physicalBlockSizeBytes": "4096", "selfLink": link(self.path),
        }  # fmt: skip
        if self.image:
            found["sourceImage"] = link(self.image)
        if self.user:
            found["users"] = [link(self.user)]
        if self.attached_at is not None:
            found["lastAttachTimestamp"] = written_at(self.attached_at)
        if self.detached_at is not None:
            found["lastDetachTimestamp"] = written_at(self.detached_at)
        return found


class Disks:
    """Answers the methods of disks."""

    def __init__(
        self, operations: Operations, plan: Callable[[Instant, Callable[[Instant], None]], None]
    ) -> None:
        self._operations, self._plan = operations, plan
        self._all: dict[tuple[str, str], Disk] = {}

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        return {
            "compute.disks.get": lambda call: self._named(call).words(),
            "compute.disks.list": self.list,
            "compute.disks.aggregatedList": self.aggregate,
            "compute.disks.insert": self.insert,
            "compute.disks.delete": self.delete,
        }

    def all(self) -> Sequence[Disk]:
        """Return all disks."""
        return list(self._all.values())

    def size_of(self, zone: str, name: str) -> int | None:
        """Return the size of a disk; None: there is none."""
        found = self._all.get((zone, name))
        return None if found is None else found.gib

    def keep(self, disk: Disk) -> None:
        """Let a disk be."""
        self._all[disk.zone, disk.name] = disk

    def attach(self, zone: str, name: str, user: str, goes_too: bool) -> None:
        """Give a disk that is there to a machine."""
        found = self._all[zone, name]
        found.user, found.goes_too = user, goes_too

    def leave(self, user: str, at: Instant, they_stay: bool = False) -> None:
        """Let the disks of a machine that is deleted go with it, or stay."""
        for key, one in list(self._all.items()):
            if one.user != user:
                continue
            if one.goes_too and not they_stay:
                del self._all[key]
            else:
                one.user, one.detached_at = "", at

    def list(self, call: Call) -> Words:
        """Return the disks of a zone."""
        found = [one.words() for one in self._all.values() if one.zone == call.zone]
        return listed(call, "disk", found)

    def aggregate(self, call: Call) -> Words:
        """Return all disks."""
        found: dict[str, list[Words]] = {f"zones/{zone}": [] for zone in catalogue().zones}
        for one in self._all.values():
            found[f"zones/{one.zone}"].append(one.words())
        return aggregated(call, "disk", "disks", found)

    def insert(self, call: Call) -> Words:
        """Make a blank disk; raise Refused."""
        name, kind = str(call.body.get("name", "")), last(str(call.body.get("type", "pd-standard")))
        if kind not in DISK_TYPES:
            raise invalid("resource.type", kind, "The disk type is not known.")
        gib = int(call.body.get("sizeGb") or BLANK_GIB)
        labels: Mapping[str, str] = call.body.get("labels") or {}
        disk = Disk(name, call.zone, kind, gib, call.now, labels=labels)
        if (call.zone, name) in self._all:
            raise GoogleRefused("alreadyExists", f"The resource '{disk.path}' already exists")
        self.keep(disk)
        return self._operations.begin(call, (disk.path, disk.id), call.now).words()

    def delete(self, call: Call) -> Words:
        """Delete a disk; raise Refused for one that a machine has."""
        disk = self._named(call)
        if disk.user:
            says = f"The disk resource '{disk.path}' is already being used by '{disk.user}'"
            raise GoogleRefused("resourceInUseByAnotherResource", says)
        self._plan(call.now, lambda at: self._drop(disk))
        return self._operations.begin(call, (disk.path, disk.id), call.now).words()

    def _drop(self, disk: Disk) -> None:
        self._all.pop((disk.zone, disk.name), None)

    def _named(self, call: Call) -> Disk:
        name = call.path["disk"]
        found = self._all.get((call.zone, name))
        if found is None:
            raise not_found(f"projects/{PROJECT}/zones/{call.zone}/disks/{name}")
        return found


class Addresses:
    """Answers the methods of addresses: reserved ones, which whoever is inside has made."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._all: dict[tuple[str, str], Words] = {}

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        return {
            "compute.addresses.get": self.get,
            "compute.addresses.list": self.list,
            "compute.addresses.aggregatedList": self.aggregate,
            "compute.addresses.insert": self.insert,
            "compute.addresses.delete": self.delete,
        }

    def get(self, call: Call) -> Words:
        """Return an address; raise Refused."""
        region, name = call.path["region"], call.path["address"]
        found = self._all.get((region, name))
        if found is None:
            raise not_found(f"projects/{PROJECT}/regions/{region}/addresses/{name}")
        return found

    def list(self, call: Call) -> Words:
        """Return the addresses of a region."""
        region = call.path["region"]
        found = [one for (where, _), one in self._all.items() if where == region]
        return listed(call, "address", found)

    def aggregate(self, call: Call) -> Words:
        """Return all addresses."""
        found: dict[str, list[Words]] = {f"regions/{one}": [] for one in catalogue().regions}
        for (region, _), one in self._all.items():
            found[f"regions/{region}"].append(one)
        return aggregated(call, "address", "addresses", found)

    def insert(self, call: Call) -> Words:
        """Reserve an address; raise Refused."""
        region, name = call.path["region"], str(call.body.get("name", ""))
        path = f"projects/{PROJECT}/regions/{region}/addresses/{name}"
        if (region, name) in self._all:
            raise GoogleRefused("alreadyExists", f"The resource '{path}' already exists")
        self._all[region, name] = {
            "kind": "compute#address", "id": number(path, call.now), "name": name,
            "creationTimestamp": written_at(call.now), "status": "RESERVED",
            "address": f"203.0.113.{len(self._all) % 250 + 1}", "addressType": "EXTERNAL",
            "region": link(f"projects/{PROJECT}/regions/{region}"), "selfLink": link(path),
            "labels": dict(call.body.get("labels") or {}), "networkTier": "PREMIUM",
            "labelFingerprint": fingerprint(call.body.get("labels") or {}),
        }  # fmt: skip
        return self._operations.begin(call, (path, number(path, call.now)), call.now).words()

    def delete(self, call: Call) -> Words:
        """Give an address back; raise Refused."""
        region, name = call.path["region"], call.path["address"]
        path = f"projects/{PROJECT}/regions/{region}/addresses/{name}"
        found = self._all.pop((region, name), None)
        if found is None:
            raise not_found(path)
        return self._operations.begin(call, (path, str(found["id"])), call.now).words()
