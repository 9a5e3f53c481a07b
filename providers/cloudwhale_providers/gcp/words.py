"""What Compute Engine is told of a machine that it is to make."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import GiB, Seconds
from cloudwhale.spi.provider import LaunchRequest
from cloudwhale_providers.gcp.images import Image
from cloudwhale_providers.prices.gcp import BOOT_DISK_GIB, BOOT_DISK_KEEPS_GIB

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""What a machine may do is said by the roles of its service account alone, as Google advises."""
NOTICE_S = 120
"""Longest `preemptionNoticeDuration` (release notes of 2026-09-30)."""
STOPS_WITHIN_S: tuple[Seconds, Seconds] = (30.0, 120 * 86400.0)
"""Bounds of maxRunDuration: Compute Engine docs, "Limit the run time of a VM"."""

HYPERDISK = re.compile(r"a3-ultragpu-|a4-|a4x-|g4-|c4-|c4a-|c4d-|n4-|h4d-|m4-")
"""Families that boot from Hyperdisk alone; the others take a balanced persistent disk."""
LISTED_SSD = re.compile(r"n1-|g2-|g4-|a2-(?:high|mega)gpu-")
"""Families whose local disks must be listed; A2 Ultra, A3 and A4 come with theirs (Compute Engine
docs, "Add local SSD disks")."""
SSD_GIB = 375.0
MOST_SSDS = 24
ATTACHED: Mapping[str, str] = {
    "K80": "nvidia-tesla-k80", "P4": "nvidia-tesla-p4", "P100": "nvidia-tesla-p100",
    "V100-16GB": "nvidia-tesla-v100", "T4": "nvidia-tesla-t4",
}  # fmt: skip
"""GPUs that are attached to N1 machines; all newer families come with theirs."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a machine is made of beside what was asked for."""

    name: str
    image: Image
    interface: Mapping[str, Any]
    """Its network interface."""
    service_account: str
    """E-mail; empty: it is nobody."""
    labels: Mapping[str, str]
    items: list[dict[str, str]]
    """Its metadata."""
    runs_s: int
    """After so many seconds Compute Engine deletes it."""
    has_notice: bool
    """Whether a spot machine asks to be told two minutes before it goes."""


def words_of(frame: Frame, request: LaunchRequest, offer: Offer) -> dict[str, Any]:
    """Return the body of `instances.insert` for one machine in the zone of its offer."""
    words: dict[str, Any] = {
        "name": frame.name,
        "machineType": f"zones/{offer.zone}/machineTypes/{offer.type}",
        "labels": dict(frame.labels),
        "metadata": {"items": frame.items},
        "scheduling": scheduling(frame, offer),
        "disks": disks(frame, request, offer),
        "networkInterfaces": [dict(frame.interface)],
    }
    gpus = accelerators(offer)
    if gpus:
        words["guestAccelerators"] = gpus
    if frame.service_account:
        words["serviceAccounts"] = [{"email": frame.service_account, "scopes": [SCOPE]}]
    return words


def scheduling(frame: Frame, offer: Offer) -> dict[str, Any]:
    """Return how long a machine lives, and what its host's maintenance does to it.

    It is deleted at its end: a machine that is stopped goes on costing its disks. With GPUs, and
    as spot, it cannot move to another host; whose host fails is rented anew, not started again.
    """
    is_spot = offer.market == "spot"
    found: dict[str, Any] = {
        "provisioningModel": "SPOT" if is_spot else "STANDARD",
        "instanceTerminationAction": "DELETE",
        "maxRunDuration": {"seconds": str(frame.runs_s)},
        "automaticRestart": False,
        "onHostMaintenance": "TERMINATE" if is_spot or offer.facts.devices else "MIGRATE",
    }
    if is_spot and frame.has_notice:
        found["preemptionNoticeDuration"] = {"seconds": str(NOTICE_S)}
    return found


def disks(frame: Frame, request: LaunchRequest, offer: Offer) -> list[dict[str, Any]]:
    """Return the boot disk, which goes with its machine, and local disks that must be listed."""
    zone = f"zones/{offer.zone}"
    boot = {
        "boot": True,
        "autoDelete": True,
        "initializeParams": {
            "sourceImage": frame.image.link,
            "diskSizeGb": str(boot_gib(frame.image, request)),
            "diskType": f"{zone}/diskTypes/{disk_kind(offer.type)}",
            "labels": dict(frame.labels),
        },
    }
    local = {
        "type": "SCRATCH",
        "autoDelete": True,
        "interface": "NVME",
        "initializeParams": {"diskType": f"{zone}/diskTypes/local-ssd"},
    }
    return [boot, *([local] * local_disks(offer))]


def boot_gib(image: Image, request: LaunchRequest) -> int:
    """Return how large a boot disk is: what jobs ask for beside what the system keeps.

    An offer's larger promise is kept by local disks.
    """
    asked: GiB = request.disk_gib + BOOT_DISK_KEEPS_GIB
    return math.ceil(max(image.least_gib, asked, BOOT_DISK_GIB))


def disk_kind(type_name: str) -> str:
    """Return what kind of disk a machine type boots from."""
    return "hyperdisk-balanced" if HYPERDISK.match(type_name) else "pd-balanced"


def local_disks(offer: Offer) -> int:
    """Return how many local disks a machine must be given to keep what its offer promises."""
    promised = offer.facts.disk_gib
    if not LISTED_SSD.match(offer.type) or promised <= BOOT_DISK_GIB - BOOT_DISK_KEEPS_GIB:
        return 0
    return min(MOST_SSDS, math.ceil(promised / SSD_GIB))


def accelerators(offer: Offer) -> list[dict[str, Any]]:
    """Return the GPUs that must be attached; none where they come with the machine type."""
    devices = offer.facts.devices
    kind = ATTACHED.get(devices[0].model) if devices else None
    if kind is None or not offer.type.startswith("n1-"):
        return []
    where = f"zones/{offer.zone}/acceleratorTypes/{kind}"
    return [{"acceleratorType": where, "acceleratorCount": len(devices)}]
