"""How much of everything a project may have, in a region or everywhere, and what is taken."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cloudwhale.spi.prices import Market
from cloudwhale_providers.prices.gcp import ACCELERATORS
from cloudwhale_providers.sandbox.compute.catalogue import ACCELERATORS as TYPES
from cloudwhale_providers.sandbox.compute.operations import Failure
from cloudwhale_providers.sandbox.compute.wishes import Wish
from cloudwhale_providers.sandbox.compute.wording import Words

ENOUGH = 1152.0
"""What there is of each quota that the weather does not name: enough for a hundred machines."""
ENOUGH_GIB = 1_000_000.0
EVERYWHERE = "GPUS_ALL_REGIONS"
SPOT = "PREEMPTIBLE_"
FAMILIES = frozenset(name for name in ACCELERATORS.values() if not name.endswith("_GPUS"))
"""Those that the Cloud Quotas API knows and `regions.get` does not."""
OF_TYPES: Mapping[str, str] = {
    TYPES[model]: metric for model, metric in ACCELERATORS.items() if model in TYPES
} | {"nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA"}
CPUS = ("CPUS", "N2_CPUS", "C3_CPUS", "A2_CPUS")
GIB = ("SSD_TOTAL_GB", "DISKS_TOTAL_GB", "HDB_TOTAL_GB", "LOCAL_SSD_TOTAL_GB")
LISTED = (
    *CPUS, "PREEMPTIBLE_CPUS", *GIB, "IN_USE_ADDRESSES", "INSTANCES",
    *sorted(one for one in ACCELERATORS.values() if one not in FAMILIES),
    *sorted(SPOT + one for one in ACCELERATORS.values() if one not in FAMILIES),
    "PREEMPTIBLE_NVIDIA_H100_GPUS",
)  # fmt: skip
"""Metrics that `regions.get` shows."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What one machine or disk takes of a region."""

    region: str
    market: Market
    amounts: Mapping[str, float]
    """By metric, that of on-demand."""


def taken_by(wish: Wish) -> Mapping[str, float]:
    """Return what a machine takes for as long as it runs: GPUs or vCPUs, and its address."""
    found = {"INSTANCES": 1.0, "IN_USE_ADDRESSES": float(wish.is_external)}
    if wish.gpus.count:
        count = float(wish.gpus.count)
        return {**found, OF_TYPES[wish.gpus.type]: count, EVERYWHERE: count}
    family = wish.kind.name.partition("-")[0].upper()
    metric = "CPUS" if family in ("E2", "N1", "F1", "G1") else f"{family}_CPUS"
    return {**found, metric: float(wish.kind.cpu)}


def metric_of_disk(kind: str) -> str:
    """Return what a disk counts against."""
    if kind.startswith("hyperdisk-"):
        return "HDB_TOTAL_GB"
    if kind == "local-ssd":
        return "LOCAL_SSD_TOTAL_GB"
    return "DISKS_TOTAL_GB" if kind == "pd-standard" else "SSD_TOTAL_GB"


class Quotas:
    """Limits, and what is left of them."""

    def __init__(self, said: Mapping[str, float]) -> None:
        self.said = dict(said)
        """By metric, or by `REGION/METRIC`; whoever raises a quota changes it here."""

    def limit(self, region: str, metric: str) -> float:
        """Return how much there may be."""
        for name in (f"{region}/{metric}", metric):
            if name in self.said:
                return self.said[name]
        if metric.startswith(SPOT):
            return 0.0
        return ENOUGH_GIB if metric in GIB else ENOUGH

    def drawn_from(self, region: str, metric: str, market: Market) -> str:
        """Return which quota a machine counts against.

        Compute Engine docs, "Preemptible allocation quotas": once there is a preemptible quota,
        spot draws from that alone, and from the standard one as long as there is none.
        """
        spot = _spot_metric(metric)
        return spot if market == "spot" and self.limit(region, spot) > 0 else metric

    def used(self, region: str, taken: Iterable[Needs]) -> dict[str, float]:
        """Return what is taken of a region by metric, and of GPUs everywhere."""
        found: dict[str, float] = defaultdict(float)
        for one in taken:
            for metric, amount in one.amounts.items():
                if metric == EVERYWHERE:
                    found[metric] += amount
                elif one.region == region:
                    found[self.drawn_from(region, metric, one.market)] += amount
        return found

    def refusal(self, wish: Needs, taken: Iterable[Needs]) -> Failure | None:
        """Return why there is no quota for something; None: there is."""
        used = self.used(wish.region, taken)
        for asked, amount in wish.amounts.items():
            is_global = asked == EVERYWHERE
            metric = asked if is_global else self.drawn_from(wish.region, asked, wish.market)
            limit = self.limit("" if is_global else wish.region, metric)
            if used[metric] + amount > limit:
                return _exceeded(metric, limit, "" if is_global else wish.region)
        return None

    def listed(self, region: str, taken: Iterable[Needs]) -> list[Words]:
        """Return the quotas of a region."""
        used = self.used(region, taken)
        return [_row(metric, self.limit(region, metric), used[metric]) for metric in LISTED]

    def of_project(self, taken: Iterable[Needs]) -> list[Words]:
        """Return the quotas of the whole project."""
        used = self.used("", taken)
        return [
            _row(EVERYWHERE, self.limit("", EVERYWHERE), used[EVERYWHERE]),
            _row("CPUS_ALL_REGIONS", ENOUGH, 0.0),
            _row("NETWORKS", 5.0, 1.0),
        ]


def _spot_metric(metric: str) -> str:
    if metric in ("NVIDIA_H100", "NVIDIA_H100_MEGA"):
        return f"{SPOT}{metric}_GPUS"
    if metric.endswith("_CPUS") or metric == "CPUS":
        return f"{SPOT}CPUS"
    return SPOT + metric


def _row(metric: str, limit: float, used: float) -> Words:
    return {"metric": metric, "limit": limit, "usage": float(used)}


def _exceeded(metric: str, limit: float, region: str) -> Failure:
    family = metric.removeprefix(SPOT)
    where = f" in region {region}." if region else " globally."
    says = f"Quota '{metric}' exceeded.  Limit: {limit:.1f}{where}"
    info: Words = {"limit": limit, "limitName": _limit_name(metric, region), "dimensions": {}}
    info["metricName"] = f"compute.googleapis.com/{metric.lower()}"
    if region:
        info["dimensions"] = {"region": region}
    if family in FAMILIES or family == "NVIDIA_H100_MEGA":
        info["metricName"] = "compute.googleapis.com/gpus_per_gpu_family"
        info["limitName"] = "GPUS-PER-GPU-FAMILY-per-project-region"
        info["dimensions"] = {"region": region, "gpu_family": family}
    return Failure("QUOTA_EXCEEDED", says, ({"quotaInfo": info},))


def _limit_name(metric: str, region: str) -> str:
    return f"{metric.replace('_', '-')}-per-project{'-region' if region else ''}"
