"""Reads what an insert asks for, and refuses what the real service would at once."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale.spi.prices import Market
from cloudwhale_providers.sandbox.compute.attached import Accelerators, accelerators
from cloudwhale_providers.sandbox.compute.catalogue import DISK_TYPES, Kind, catalogue
from cloudwhale_providers.sandbox.compute.images import Image, Images
from cloudwhale_providers.sandbox.compute.networks import Networks
from cloudwhale_providers.sandbox.compute.places import (
    DEFAULT_ACCOUNT,
    MACHINE_ACCOUNT,
    PROJECT,
    USER_ACCOUNT,
)
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused, invalid
from cloudwhale_providers.sandbox.compute.timing import Timing, timing
from cloudwhale_providers.sandbox.compute.wording import last
from cloudwhale_providers.sandbox.endpoint.weather_values import Weather

NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
KEY, VALUE = re.compile(r"[a-z][-_a-z0-9]{0,62}"), re.compile(r"[-_a-z0-9]{0,63}")
ITEM = re.compile(r"[-_A-Za-z0-9]{1,128}")
LABELS_MOST = 64
VALUE_BYTES_MOST, METADATA_BYTES_MOST = 256 * 1024, 512 * 1024
"""Compute Engine API, Items: one value, and all of them."""
ACCOUNTS = frozenset({DEFAULT_ACCOUNT, MACHINE_ACCOUNT, USER_ACCOUNT, "default"})
DISK_GIB = 10
"""A blank disk whose size is left out."""


@dataclass(frozen=True, slots=True)
class DiskWish:
    """One disk that comes with a machine."""

    name: str
    kind: str
    gib: int
    image: Image | None
    is_boot: bool
    goes_too: bool
    """Whether it is deleted with the machine."""
    labels: Mapping[str, str]
    old: bool = False
    """Whether it is there already."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One machine that somebody asks for; all of it can be had but for room and quota."""

    name: str
    zone: str
    kind: Kind
    gpus: Accelerators
    timing: Timing
    disks: Sequence[DiskWish]
    subnetwork: str
    """Path."""
    is_external: bool
    account: str
    """E-mail of its service account; empty: it has none."""
    labels: Mapping[str, str]
    metadata: Mapping[str, str]

    @property
    def market(self) -> Market:
        """Return the market that it is asked for in."""
        return self.timing.market


@dataclass(frozen=True, slots=True)
class Things:
    """What there is that an insert may name."""

    weather: Weather
    images: Images
    networks: Networks
    has_disk: Any
    """Says the size of a disk that exists in a zone, by name; None: there is none."""


def read(body: Mapping[str, Any], zone: str, things: Things, now: Instant) -> Wish:
    """Return what is asked for; raise Refused."""
    name = str(body.get("name", ""))
    if not NAME.fullmatch(name):
        raise invalid("resource.name", name, f"Must be a match of regex '{NAME.pattern}'")
    kind = kind_of(body, zone)
    gpus = accelerators(body, kind, zone)
    labels = labels_of(body.get("labels") or {}, "resource.labels")
    metadata = items_of(body.get("metadata") or {})
    times = timing(body.get("scheduling") or {}, bool(gpus.count), things.weather, now)
    disks = _disks(body, (name, zone, kind), things)
    subnetwork, is_external = _network(body, (name, zone), things)
    account = _account(body)
    return Wish(
        name, zone, kind, gpus, times, disks, subnetwork, is_external, account, labels, metadata,
    )  # fmt: skip


def kind_of(body: Mapping[str, Any], zone: str) -> Kind:
    """Return the machine type that is named; raise Refused."""
    said = str(body.get("machineType", ""))
    found = catalogue().zones[zone].get(last(said))
    if found is None:
        says = f"Machine type with name '{last(said)}' does not exist in zone '{zone}'."
        raise invalid("resource.machineType", said, says)
    return found


def labels_of(said: Mapping[str, str], where: str) -> dict[str, str]:
    """Return labels; raise Refused for those that Compute Engine does not take."""
    if len(said) > LABELS_MOST:
        raise invalid(where, "", f"Too many labels: at most {LABELS_MOST}.")
    for key, value in said.items():
        if not KEY.fullmatch(key):
            raise invalid(where, key, f"Label key must be a match of regex '{KEY.pattern}'")
        if not VALUE.fullmatch(value):
            raise invalid(where, value, f"Label value must be a match of regex '{VALUE.pattern}'")
    return dict(said)


def items_of(said: Mapping[str, Any]) -> dict[str, str]:
    """Return the items of metadata; raise Refused."""
    found: dict[str, str] = {}
    for number, one in enumerate(said.get("items") or ()):
        where = f"resource.metadata.items[{number}]"
        key, value = str(one.get("key", "")), str(one.get("value", ""))
        if not ITEM.fullmatch(key):
            raise invalid(f"{where}.key", key, f"Must be a match of regex '{ITEM.pattern}'")
        if key in found:
            raise invalid("resource.metadata", key, "Metadata has duplicate key.")
        if len(value.encode()) > VALUE_BYTES_MOST:
            raise invalid(f"{where}.value", key, "Value is too large: at most 262144 characters.")
        found[key] = value
    size = sum(len(key) + len(value.encode()) for key, value in found.items())
    if size > METADATA_BYTES_MOST:
        raise invalid("resource.metadata", size, "Metadata is too large: at most 524288 bytes.")
    return found


def _disks(
    body: Mapping[str, Any], whose: tuple[str, str, Kind], things: Things
) -> Sequence[DiskWish]:
    found = [
        _disk(one, number, whose, things) for number, one in enumerate(body.get("disks") or ())
    ]
    if not found or not found[0].is_boot:
        raise invalid("resource.disks", "", "At least one boot disk must be given, as the first.")
    return found


def _disk(
    one: Mapping[str, Any], number: int, whose: tuple[str, str, Kind], things: Things
) -> DiskWish:
    name, zone, kind = whose
    where = f"resource.disks[{number}]"
    goes_too, is_boot = bool(one.get("autoDelete", False)), bool(one.get("boot", False))
    if one.get("source"):
        gib = things.has_disk(zone, last(str(one["source"])))
        if gib is None:
            raise invalid(f"{where}.source", one["source"], "The disk does not exist.")
        return DiskWish(last(str(one["source"])), "", gib, None, is_boot, goes_too, {}, old=True)
    params: Mapping[str, Any] = one.get("initializeParams") or {}
    is_local = one.get("type") == "SCRATCH"
    said = str(params.get("diskType") or ("local-ssd" if is_local else "pd-standard"))
    disk_kind = last(said)
    if disk_kind not in DISK_TYPES:
        raise invalid(f"{where}.initializeParams.diskType", said, "The disk type is not known.")
    if is_local:
        return DiskWish(f"local-ssd-{number}", "local-ssd", 375, None, False, True, {})
    if not kind.takes(disk_kind):
        says = f"[{disk_kind}] features are not compatible for creating instance: {kind.name}."
        raise GoogleRefused("invalid", says)
    image = things.images.named(str(params.get("sourceImage", "")), where) if is_boot else None
    gib = int(params.get("diskSizeGb") or one.get("diskSizeGb") or _size(image))
    if gib < _size(image):
        says = f"Requested disk size cannot be smaller than the image size ({_size(image)} GB)"
        raise invalid(f"{where}.initializeParams.diskSizeGb", gib, says)
    own = str(params.get("diskName") or (name if is_boot else f"{name}-{number}"))
    if things.has_disk(zone, own) is not None:
        path = f"projects/{PROJECT}/zones/{zone}/disks/{own}"
        raise GoogleRefused("alreadyExists", f"The resource '{path}' already exists")
    labels = labels_of(params.get("labels") or {}, f"{where}.initializeParams.labels")
    return DiskWish(own, disk_kind, gib, image, is_boot, goes_too, labels)


def _size(image: Image | None) -> int:
    return DISK_GIB if image is None else image.gib


def _network(body: Mapping[str, Any], whose: tuple[str, str], things: Things) -> tuple[str, bool]:
    interfaces: Sequence[Mapping[str, Any]] = body.get("networkInterfaces") or ()
    if not interfaces:
        raise invalid("resource.networkInterfaces", "", "At least one network interface is needed.")
    one = interfaces[0]
    subnetwork = things.networks.subnetwork_of(one, whose[1])
    is_external = bool(one.get("accessConfigs"))
    if is_external and not things.weather.external_addresses:
        path = f"projects/{PROJECT}/zones/{whose[1]}/instances/{whose[0]}"
        says = (
            f"Constraint constraints/compute.vmExternalIpAccess violated for project {PROJECT}. "
            f"Add instance {path} to the constraint to use external IP with it."
        )
        raise GoogleRefused("conditionNotMet", says)
    return subnetwork, is_external


def _account(body: Mapping[str, Any]) -> str:
    accounts: Sequence[Mapping[str, Any]] = body.get("serviceAccounts") or ()
    if not accounts:
        return ""
    if len(accounts) > 1:
        raise invalid("resource.serviceAccounts", len(accounts), "At most one service account.")
    email = str(accounts[0].get("email", "default"))
    if email not in ACCOUNTS:
        says = f"The user does not have access to service account '{email}'."
        raise GoogleRefused("SERVICE_ACCOUNT_ACCESS_DENIED", says, 400)
    if not accounts[0].get("scopes"):
        raise invalid("resource.serviceAccounts[0].scopes", "", "Scopes must be given.")
    return DEFAULT_ACCOUNT if email == "default" else email
