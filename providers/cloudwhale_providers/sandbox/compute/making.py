"""Makes a machine and its disks of what an insert asks for."""

from collections.abc import Mapping
from typing import Any

from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale_providers.sandbox.compute.disks import Disk, Disks
from cloudwhale_providers.sandbox.compute.places import NETWORK, PROJECT
from cloudwhale_providers.sandbox.compute.quotas import taken_by
from cloudwhale_providers.sandbox.compute.records import Record
from cloudwhale_providers.sandbox.compute.wishes import DiskWish, Wish
from cloudwhale_providers.sandbox.compute.wording import (
    Words,
    fingerprint,
    link,
    listed_at,
    number,
    region_of,
    written_at,
)
from cloudwhale_providers.sandbox.endpoint.machines import Instance

OURS, TAG = "cloudwhale-", "cloudwhale:"
"""How metadata attributes begin that say what a machine is for, and the tags that are read of
them."""
USER_DATA = "user-data"


def path_of_wish(wish: Wish) -> str:
    """Return what the link of a machine names."""
    return f"projects/{PROJECT}/zones/{wish.zone}/instances/{wish.name}"


def record(wish: Wish, turn: int, now: Instant, price: MicroUsd | None) -> Record:
    """Return a new machine; `turn` is that of its launch in this box."""
    id = number(path_of_wish(wish), now, turn)
    kind = wish.kind
    instance = Instance(
        id=id, type=kind.name, region=region_of(wish.zone), zone=wish.zone, market=wish.market,
        tags=tags_of(wish.metadata), user_data=wish.metadata.get(USER_DATA, ""),
        launched_at=listed_at(now), price_usd_h=price, vcpus=kind.cpu,
        disk_gib=sum(one.gib for one in wish.disks), metadata_tags=True, profile=wish.account,
        image=next((one.image.path for one in wish.disks if one.image is not None), ""),
        provider="gcp", name=wish.name, volumes=tuple(one.name for one in wish.disks),
    )  # fmt: skip
    timing = wish.timing
    return Record(
        instance, _facts(wish, id, turn, now), then=timing.then, runs_for_s=timing.runs_for_s,
        ends_at=timing.ends_at, notice_s=timing.notice_s, made_at=now, takes=taken_by(wish),
    )  # fmt: skip


def tags_of(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that the metadata of a machine stand for."""
    return {
        TAG + key.removeprefix(OURS): value
        for key, value in metadata.items()
        if key.startswith(OURS)
    }


def keep_disks(wish: Wish, disks: Disks, now: Instant, user: str) -> None:
    """Let the disks of a machine be; `user`: its path."""
    for one in wish.disks:
        if one.old:
            disks.attach(wish.zone, one.name, user, one.goes_too)
        elif one.kind != "local-ssd":
            image = "" if one.image is None else one.image.path
            disk = Disk(one.name, wish.zone, one.kind, one.gib, now, image, one.labels, user)
            disk.goes_too, disk.attached_at = one.goes_too, now
            disks.keep(disk)


def metadata_words(items: Mapping[str, str]) -> Words:
    """Return metadata as it is listed."""
    listed = [{"key": key, "value": value} for key, value in items.items()]
    found: Words = {"kind": "compute#metadata", "fingerprint": fingerprint(items)}
    return {**found, "items": listed} if listed else found


def _facts(wish: Wish, id: str, turn: int, now: Instant) -> Words:
    home, path = f"projects/{PROJECT}/zones/{wish.zone}", path_of_wish(wish)
    found: Words = {
        "kind": "compute#instance", "id": id, "name": wish.name, "selfLink": link(path),
        "creationTimestamp": written_at(now), "zone": link(home), "canIpForward": False,
        "machineType": link(f"{home}/machineTypes/{wish.kind.name}"),
        "tags": {"fingerprint": fingerprint({})}, "cpuPlatform": "Intel Cascade Lake",
        "labels": dict(wish.labels), "labelFingerprint": fingerprint(wish.labels),
        "metadata": metadata_words(wish.metadata), "scheduling": dict(wish.timing.words),
        "disks": [_disk(one, number, wish) for number, one in enumerate(wish.disks)],
        "networkInterfaces": [_interface(wish, turn)], "deletionProtection": False,
        "startRestricted": False, "fingerprint": fingerprint({"id": id}),
    }  # fmt: skip
    if wish.gpus.count:
        found["guestAccelerators"] = [
            {
                "acceleratorType": link(f"{home}/acceleratorTypes/{wish.gpus.type}"),
                "acceleratorCount": wish.gpus.count,
            }
        ]
    if wish.account:
        scopes = ["https://www.googleapis.com/auth/cloud-platform"]
        found["serviceAccounts"] = [{"email": wish.account, "scopes": scopes}]
    return found


def _disk(one: DiskWish, number: int, wish: Wish) -> Words:
    is_local = one.kind == "local-ssd"
    found: Words = {
        "kind": "compute#attachedDisk", "type": "SCRATCH" if is_local else "PERSISTENT",
        "mode": "READ_WRITE", "deviceName": f"persistent-disk-{number}", "index": number,
        "boot": one.is_boot, "autoDelete": one.goes_too, "diskSizeGb": str(one.gib),
        "interface": "NVME" if is_local else "SCSI", "architecture": "X86_64",
    }  # fmt: skip
    if not is_local:
        found["source"] = link(f"projects/{PROJECT}/zones/{wish.zone}/disks/{one.name}")
    return found


def _interface(wish: Wish, turn: int) -> Words:
    found: Words = {
        "kind": "compute#networkInterface", "name": "nic0", "stackType": "IPV4_ONLY",
        "network": link(f"projects/{PROJECT}/global/networks/{NETWORK}"),
        "subnetwork": link(wish.subnetwork), "fingerprint": fingerprint({"turn": turn}),
        "networkIP": f"10.128.{turn // 250 % 250}.{turn % 250 + 2}",
    }  # fmt: skip
    if wish.is_external:
        access: dict[str, Any] = {
            "kind": "compute#accessConfig", "type": "ONE_TO_ONE_NAT", "name": "External NAT",
            "natIP": f"198.51.{turn // 250 % 250}.{turn % 250 + 1}", "networkTier": "PREMIUM",
        }  # fmt: skip
        found["accessConfigs"] = [access]
    return found
