"""Answers what a project has: zones, regions, types of machines and disks, quotas, operations."""

from collections.abc import Callable, Mapping, Sequence

from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.catalogue import (
    DISK_TYPES,
    MADE,
    accelerator_words,
    catalogue,
    disk_type_words,
    region_words,
    type_words,
    zone_words,
)
from cloudwhale_providers.sandbox.compute.lists import aggregated, listed
from cloudwhale_providers.sandbox.compute.machines import Machines
from cloudwhale_providers.sandbox.compute.operations import Operations
from cloudwhale_providers.sandbox.compute.places import DEFAULT_ACCOUNT, PROJECT, PROJECT_NUMBER
from cloudwhale_providers.sandbox.compute.quotas import Quotas
from cloudwhale_providers.sandbox.compute.refused import not_found
from cloudwhale_providers.sandbox.compute.room import Room
from cloudwhale_providers.sandbox.compute.wording import Words, fingerprint, link, region_of

ByZone = Callable[[str], Sequence[Words]]


class Regions:
    """Answers the methods of places, types and quotas."""

    def __init__(self, quotas: Quotas, room: Room) -> None:
        self._quotas, self._room = quotas, room

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        found: dict[str, Does] = {
            "compute.projects.get": self.project,
            "compute.regions.get": lambda call: self._region(call.path["region"]),
            "compute.regions.list": self.regions,
            "compute.zones.get": lambda call: zone_words(call.zone),
            "compute.zones.list": self.zones,
        }
        kinds: dict[str, tuple[str, ByZone]] = {
            "machineType": ("machineTypes", _types),
            "acceleratorType": ("acceleratorTypes", _accelerators),
            "diskType": ("diskTypes", _disk_types),
        }
        for kind, (plural, by_zone) in kinds.items():
            found |= _methods(kind, plural, by_zone)
        return found

    def project(self, call: Call) -> Words:
        """Return the project with its quotas."""
        path = f"projects/{PROJECT}"
        return {
            "kind": "compute#project", "id": PROJECT_NUMBER, "name": PROJECT,
            "creationTimestamp": MADE, "defaultServiceAccount": DEFAULT_ACCOUNT,
            "commonInstanceMetadata": {
                "kind": "compute#metadata", "fingerprint": fingerprint({}),
            },
            "defaultNetworkTier": "PREMIUM", "xpnProjectStatus": "UNSPECIFIED_XPN_PROJECT_STATUS",
            "quotas": self._quotas.of_project(self._room.taken()), "selfLink": link(path),
        }  # fmt: skip

    def regions(self, call: Call) -> Words:
        """Return all regions with their quotas."""
        return listed(call, "region", [self._region(one) for one in catalogue().regions])

    def zones(self, call: Call) -> Words:
        """Return all zones."""
        return listed(call, "zone", [zone_words(one) for one in catalogue().zones])

    def _region(self, region: str) -> Words:
        zones = [one for one in catalogue().zones if region_of(one) == region]
        quotas = self._quotas.listed(region, self._room.taken())
        return {**region_words(region, zones), "quotas": quotas}


class Told:
    """Answers the methods of operations."""

    def __init__(self, machines: Machines) -> None:
        self._operations: Operations = machines.operations

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method; whoever waits for one is let wait by the server."""
        found: dict[str, Does] = {}
        for kind in ("zone", "region", "global"):
            name = f"compute.{kind}Operations"
            found[f"{name}.get"] = found[f"{name}.wait"] = self.get
            found[f"{name}.list"], found[f"{name}.delete"] = self.list, self.delete
        return found

    def get(self, call: Call) -> Words:
        """Return an operation; raise Refused."""
        return self._operations.get(call).words()

    def list(self, call: Call) -> Words:
        """Return the operations of a scope."""
        found = [one.words() for one in self._operations.of(call.scope)]
        return listed(call, "operation", found)

    def delete(self, call: Call) -> Words:
        """Forget an operation; raise Refused."""
        self._operations.forget(call)
        return {}


def _methods(kind: str, plural: str, by_zone: ByZone) -> dict[str, Does]:
    def get(call: Call) -> Words:
        name = call.path[kind]
        found = [one for one in by_zone(call.zone) if one["name"] == name]
        if not found:
            raise not_found(f"projects/{PROJECT}/zones/{call.zone}/{plural}/{name}")
        return found[0]

    def listing(call: Call) -> Words:
        return listed(call, kind, by_zone(call.zone))

    def aggregate(call: Call) -> Words:
        found = {f"zones/{zone}": by_zone(zone) for zone in catalogue().zones}
        return aggregated(call, kind, plural, found)

    return {
        f"compute.{plural}.get": get,
        f"compute.{plural}.list": listing,
        f"compute.{plural}.aggregatedList": aggregate,
    }


def _types(zone: str) -> Sequence[Words]:
    return [type_words(kind, zone) for kind in catalogue().zones[zone].values()]


def _accelerators(zone: str) -> Sequence[Words]:
    return [accelerator_words(name, zone) for name in catalogue().accelerators(zone)]


def _disk_types(zone: str) -> Sequence[Words]:
    return [disk_type_words(name, zone) for name in DISK_TYPES]
