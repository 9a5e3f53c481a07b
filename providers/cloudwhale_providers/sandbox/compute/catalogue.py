"""What Compute Engine has: zones, machine types, accelerators and disks, by what ships of prices.

Machine types of N1, to which GPUs are attached, are not among the prices; they are listed here, so
that whoever asks for them sees what the real service says.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from cloudwhale_providers.prices.gcp import GcpPrices
from cloudwhale_providers.sandbox.compute.places import PROJECT
from cloudwhale_providers.sandbox.compute.wording import Words, link, number, region_of

MADE = "1969-12-31T16:00:00.000-08:00"
"""What Compute Engine writes as the time when types and zones were made."""
ACCELERATORS: Mapping[str, str] = {
    "T4": "nvidia-tesla-t4", "P4": "nvidia-tesla-p4", "P100": "nvidia-tesla-p100",
    "V100-16GB": "nvidia-tesla-v100", "L4": "nvidia-l4", "A100-40GB": "nvidia-tesla-a100",
    "A100-80GB": "nvidia-a100-80gb", "H100-80GB": "nvidia-h100-80gb", "H200": "nvidia-h200-141gb",
    "B200": "nvidia-b200", "RTXPRO6000": "nvidia-rtx-pro-6000",
}  # fmt: skip
"""Compute Engine docs, "GPU machine types": accelerator types by our names of the models."""
MEGA = "nvidia-h100-mega-80gb"
ATTACHED: Mapping[str, tuple[int, int, Sequence[int]]] = {
    "nvidia-tesla-t4": (48, 96, (1, 2, 4)),
    "nvidia-tesla-p4": (24, 96, (1, 2, 4)),
    "nvidia-tesla-p100": (16, 64, (1, 2, 4)),
    "nvidia-tesla-v100": (12, 96, (1, 2, 4, 8)),
}
"""What N1 takes: the most vCPUs beside one GPU, beside all, and how many GPUs there may be."""
N1: Mapping[str, tuple[int, float]] = {
    **{f"n1-standard-{cpu}": (cpu, cpu * 3.75) for cpu in (1, 2, 4, 8, 16, 32, 64, 96)},
    **{f"n1-highmem-{cpu}": (cpu, cpu * 6.5) for cpu in (2, 4, 8, 16, 32, 64, 96)},
}
HYPERDISK_ONLY = re.compile(r"a3-ultragpu|a4|g4|c4|n4")
DISK_ONLY = re.compile(r"e2|n1|n2|g2|a2")
"""Families by the boot disks that they take; the others take both kinds."""
DISK_TYPES = ("pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced", "local-ssd")


@dataclass(frozen=True, slots=True)
class Kind:
    """One machine type."""

    name: str
    cpu: int
    memory_gib: float
    model: str = ""
    """Our name of its GPUs; empty: it has none."""
    gpus: int = 0
    local_gib: int = 0

    @property
    def accelerator(self) -> str:
        """Return the accelerator type that comes with it; empty: none."""
        if self.name.startswith("a3-mega"):
            return MEGA
        return ACCELERATORS.get(self.model, "")

    def takes(self, disk: str) -> bool:
        """Say whether it boots from a type of disk."""
        if disk.startswith("hyperdisk-"):
            return DISK_ONLY.match(self.name) is None
        return disk.startswith("pd-") and HYPERDISK_ONLY.match(self.name) is None


class Catalogue:
    """All that is there, zone by zone."""

    def __init__(self) -> None:
        kinds: dict[str, dict[str, Kind]] = defaultdict(dict)
        listings = GcpPrices().shipped()
        regions: dict[str, set[str]] = defaultdict(set)
        for one in listings:
            regions[one.region].update(one.zones)
        for one in listings:
            shape = one.shape
            kind = Kind(
                shape.type, int(shape.cpu), shape.memory_gib, shape.gpu, shape.gpus,
                int(shape.disk_gib),
            )  # fmt: skip
            for zone in one.zones or sorted(regions[one.region]):
                kinds[zone][kind.name] = kind
        for zone in kinds:
            kinds[zone] |= {name: Kind(name, *of) for name, of in N1.items()}
        self.zones: Mapping[str, Mapping[str, Kind]] = {zone: kinds[zone] for zone in sorted(kinds)}

    @property
    def regions(self) -> Sequence[str]:
        """Return the names of all regions."""
        return sorted({region_of(zone) for zone in self.zones})

    def accelerators(self, zone: str) -> Sequence[str]:
        """Return the accelerator types of a zone."""
        own = {kind.accelerator for kind in self.zones[zone].values()} - {""}
        return sorted(own | set(ATTACHED))


@cache
def catalogue() -> Catalogue:
    """Return it; it is made once."""
    return Catalogue()


# -- as they are listed ----------------------------------------------------------------------


def zone_words(zone: str) -> Words:
    """Return a zone."""
    region = region_of(zone)
    return {
        **_resource("zone", f"projects/{PROJECT}/zones/{zone}"),
        "description": zone,
        "status": "UP",
        "region": link(f"projects/{PROJECT}/regions/{region}"),
        "availableCpuPlatforms": ["Intel Cascade Lake", "Intel Sapphire Rapids"],
    }


def region_words(region: str, zones: Sequence[str]) -> Words:
    """Return a region, without its quotas."""
    return {
        **_resource("region", f"projects/{PROJECT}/regions/{region}"),
        "description": region,
        "status": "UP",
        "zones": [link(f"projects/{PROJECT}/zones/{zone}") for zone in zones],
    }


def type_words(kind: Kind, zone: str) -> Words:
    """Return a machine type in a zone."""
    found = {
        **_resource("machineType", f"projects/{PROJECT}/zones/{zone}/machineTypes/{kind.name}"),
        "description": f"{kind.cpu} vCPUs {kind.memory_gib:g} GB RAM",
        "guestCpus": kind.cpu,
        "memoryMb": int(kind.memory_gib * 1024),
        "isSharedCpu": False,
        "maximumPersistentDisks": 128,
        "maximumPersistentDisksSizeGb": "263168",
        "architecture": "X86_64",
        "zone": zone,
    }
    if kind.gpus:
        one = {"guestAcceleratorType": kind.accelerator, "guestAcceleratorCount": kind.gpus}
        found["accelerators"] = [one]
    if kind.local_gib:
        found["bundledLocalSsds"] = {
            "defaultInterface": "NVME", "partitionCount": max(1, kind.local_gib // 375),
        }  # fmt: skip
    return found


def accelerator_words(name: str, zone: str) -> Words:
    """Return an accelerator type in a zone."""
    most = ATTACHED[name][2][-1] if name in ATTACHED else 16
    return {
        **_resource("acceleratorType", f"projects/{PROJECT}/zones/{zone}/acceleratorTypes/{name}"),
        "description": name.replace("-", " ").upper(),
        "maximumCardsPerInstance": most,
        "zone": link(f"projects/{PROJECT}/zones/{zone}"),
    }


def disk_type_words(name: str, zone: str) -> Words:
    """Return a type of disks in a zone."""
    return {
        **_resource("diskType", f"projects/{PROJECT}/zones/{zone}/diskTypes/{name}"),
        "description": name,
        "validDiskSize": "375GB-375GB" if name == "local-ssd" else "10GB-65536GB",
        "zone": link(f"projects/{PROJECT}/zones/{zone}"),
    }


def _resource(kind: str, path: str) -> Words:
    return {
        "kind": f"compute#{kind}",
        "id": number(path),
        "creationTimestamp": MADE,
        "name": path.rpartition("/")[2],
        "selfLink": link(path),
    }
