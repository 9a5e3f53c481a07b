"""What a project may run at once: its quotas, what it uses of them, and what is left."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds

GPUS, CPUS = "GPUS_ALL_REGIONS", "CPUS_ALL_REGIONS"
"""Quotas of the whole project; the first is 0 for a new one."""
PREEMPTIBLE = "PREEMPTIBLE_"
LEARNED_S: Seconds = 3600.0
"""So long a limit holds that a refusal has told: raising it takes hours."""


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit and what is used of it."""

    limit: float
    usage: float

    @property
    def left(self) -> float:
        """Return what is left; never below 0."""
        return max(0.0, self.limit - self.usage)


Quotas = Mapping[str, Quota]
"""By metric."""


def read(thing: Mapping[str, Any]) -> Quotas:
    """Return the quotas that a region or a project says of itself."""
    return {
        str(one["metric"]): Quota(float(one["limit"]), float(one.get("usage") or 0.0))
        for one in thing.get("quotas") or ()
        if one.get("metric") and one.get("limit") is not None
    }


def metric_of(offer: Offer) -> str:
    """Return the metric that an offer counts against on demand, `NVIDIA_L4_GPUS`."""
    return offer.quota.rpartition("/")[2]


def spot_metric(metric: str) -> str:
    """Return what counts machines of the spot market, once somebody has asked for it."""
    if metric.endswith("CPUS"):
        return f"{PREEMPTIBLE}CPUS"
    return f"{PREEMPTIBLE}{metric}" + ("" if metric.endswith("_GPUS") else "_GPUS")


def drawn_from(offer: Offer, quotas: Quotas) -> str:
    """Return the metric that a machine of an offer counts against.

    Compute Engine docs, "Preemptible allocation quotas": spot counts against the standard quota
    until one of its own is granted, and against that alone from then on.
    """
    metric = metric_of(offer)
    if offer.market != "spot":
        return metric
    own = quotas.get(spot_metric(metric))
    return spot_metric(metric) if own is not None and own.limit > 0 else metric


def everywhere(offer: Offer) -> str:
    """Return the quota of the whole project that an offer counts against."""
    return GPUS if offer.facts.devices else CPUS


@dataclass
class Learned:
    """Limits that refusals have told, where nobody says them otherwise."""

    limits: dict[tuple[str, str], tuple[float, Instant]] = field(
        default_factory=dict[tuple[str, str], tuple[float, Instant]]
    )
    """By region (empty: the project) and metric."""

    def hears(self, region: str, metric: str, limit: float, now: Instant) -> None:
        """Remember what a refusal has said."""
        where = "" if metric in (GPUS, CPUS) else region
        self.limits[where, metric] = (limit, now)

    def limit(self, region: str, metric: str, now: Instant) -> float | None:
        """Return a limit; None: none was told of late."""
        limit, at = self.limits.get((region, metric), (0.0, float("-inf")))
        return limit if now - at < LEARNED_S else None


def left(
    offer: Offer, of_region: Quotas, of_project: Quotas, learned: Learned, now: Instant
) -> float | None:
    """Return what is left for an offer, in its own unit; None when nobody says.

    A metric that is missing is unknown, not nothing: newer GPUs are in neither list.
    """
    metric = drawn_from(offer, of_region)
    found = [_left(metric, of_region, learned.limit(offer.region, metric, now))]
    if offer.facts.devices:  # the unit of both is a GPU
        found.append(_left(GPUS, of_project, learned.limit("", GPUS, now)))
    elif metric_of(offer) == "CPUS":
        found.append(_left(CPUS, of_project, learned.limit("", CPUS, now)))
    known = [one for one in found if one is not None]
    return min(known) if known else None


def _left(metric: str, quotas: Quotas, learned: float | None) -> float | None:
    known = quotas.get(metric)
    if known is not None:
        return known.left
    return 0.0 if learned == 0 else None  # of another limit nobody knows what is used


def raise_command(metric: str, region: str, project: str, units: float) -> str:
    """Return the command that asks Google for a larger quota; an answer takes hours to days."""
    if metric in (GPUS, CPUS):
        name, dimensions = f"{_spelled(metric)}-per-project", ""
    elif metric.startswith(PREEMPTIBLE) or metric.endswith(("_GPUS", "CPUS")):
        name, dimensions = f"{_spelled(metric)}-per-project-region", f"region={region}"
    else:
        name = "GPUS-PER-GPU-FAMILY-per-project-region"
        dimensions = f"region={region},gpu_family={metric}"
    return (
        f"gcloud quotas preferences create --service=compute.googleapis.com "
        f"--project={project or 'PROJECT'} --quota-id={name} --preferred-value="
        f"{max(1, round(units))}" + (f" --dimensions={dimensions}" if dimensions else "")
    )


def _spelled(metric: str) -> str:
    return metric.replace("_", "-")


def of_all(offers: Iterable[Offer], metric: str, project_wide: Offer) -> tuple[str, ...]:
    """Return the offers that a quota of the whole project holds back as it does one of them."""
    if metric not in (GPUS, CPUS):
        return ()
    return tuple(
        sorted(
            one.id
            for one in offers
            if one.id != project_wide.id and everywhere(one) == everywhere(project_wide)
        )
    )
