"""What a report of costs says: sums by what was asked for, their total, and what is not in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, get_args

from cloudwhale.model.cost import CostSum, Dimension, Items, Purposes, Waste
from cloudwhale.model.units import Instant, MicroUsd, Seconds, usd
from cloudwhale.planning.cost_sums import ITEMS, PURPOSES, zone_named
from cloudwhale.reporting.figures import HOUR_S
from cloudwhale.reporting.periods import Period

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

CAUSES: Mapping[Waste, str] = {
    Waste.BOOT: "boot",
    Waste.IDLE: "idle",
    Waste.LOST: "lost",
    Waste.FAILED: "failed",
    Waste.OVER_ASKED: "over",
}
"""Where in the purposes of money each cause of waste is."""

NOT_IN_IT = (
    "checkpoints and logs that are kept in object stores after their machines are back",
    "requests to object stores, gateways (NAT) and traffic that a cloud bills the account for",
    "taxes, credits and discounts on a cloud's own bill",
)
"""What a cloud bills too and nobody here is told of."""


@dataclass(frozen=True, slots=True)
class Costs:
    """A report: money of a period by some dimensions."""

    period: Period
    zone: str
    by: tuple[Dimension, ...]
    rows: Sequence[CostSum]
    """In the order to show them in."""
    total: CostSum
    now: Instant
    running: bool
    """Whether machines that are not back are in it, with what they have come to by now."""
    still: int = 0
    """How many machines these are."""
    only: Mapping[str, str] = field(default_factory=dict[str, str])
    """What it was narrowed to: names of dimensions with their one value."""


@dataclass(frozen=True, slots=True)
class Row:
    """A sum as it is shown, with a name for each dimension."""

    names: tuple[str, ...]
    sum: CostSum
    kind: Literal["one", "rest", "total"] = "one"


NOBODY: Mapping[Dimension, str] = {"job": "(no job)", "gpu": "(no GPU)"}
"""What a row without a value is called; of other dimensions nobody knows it."""


def shown(costs: Costs, most: int) -> list[Row]:
    """Return the first rows, the others put together as one, and the total."""
    kept = costs.rows if len(costs.rows) <= most + 1 else costs.rows[:most]
    rows = [Row(names_of(one.key, costs.by), one) for one in kept]
    blanks = ("",) * (len(costs.by) - 1)
    rest = costs.rows[len(kept) :]
    if rest:
        rows.append(Row((f"{len(rest):,} others", *blanks), added(rest), "rest"))
    return [*rows, Row(("total", *blanks), costs.total, "total")]


def names_of(key: tuple[str, ...], by: tuple[Dimension, ...]) -> tuple[str, ...]:
    """Return what the values of some dimensions are called."""
    return tuple(
        value or NOBODY.get(each, "(unknown)") for value, each in zip(key, by, strict=True)
    )


def added(sums: Sequence[CostSum], key: tuple[str, ...] = ()) -> CostSum:
    """Return sums added up; jobs that are in several count several times."""
    return _weighed([(one, 1) for one in sums], key)


def without(whole: CostSum, sums: Sequence[CostSum]) -> CostSum:
    """Return what is left of a sum when others, which are in it, are taken out."""
    return _weighed([(whole, 1), *((one, -1) for one in sums)], whole.key)


def _weighed(sums: Sequence[tuple[CostSum, int]], key: tuple[str, ...]) -> CostSum:
    def all_of(name: str) -> int:
        return sum(sign * getattr(one, name) for one, sign in sums)

    items = {name: sum(sign * getattr(one.items, name) for one, sign in sums) for name in ITEMS}
    purposes = {
        name: sum(sign * getattr(one.purposes, name) for one, sign in sums) for name in PURPOSES
    }
    return CostSum(
        key=key, lines=all_of("lines"), jobs=all_of("jobs"), spent=MicroUsd(all_of("spent")),
        items=Items.model_validate(items), purposes=Purposes.model_validate(purposes),
        saved=MicroUsd(all_of("saved")), unpriced=all_of("unpriced"),
        gpu_s=sum(sign * round(one.gpu_s * 1000) for one, sign in sums) / 1000,
    )  # fmt: skip


def wasted(one: CostSum) -> MicroUsd:
    """Return what was spent on nothing that lasted."""
    return MicroUsd(sum(wasted_on(one, cause) for cause in CAUSES))


def wasted_on(one: CostSum, cause: Waste) -> MicroUsd:
    """Return what was spent on nothing that lasted for one cause."""
    amount: MicroUsd = getattr(one.purposes, CAUSES[cause])
    return amount


def saved(one: CostSum) -> MicroUsd | None:
    """Return how much less it was than on demand; None where nobody knows of any of it."""
    return one.saved if one.unpriced < one.lines or not one.lines else None


def usd_per_gpu_h(one: CostSum) -> Decimal | None:
    """Return dollars per hour of a GPU, to the micro-dollar; None where there was no GPU."""
    hours = gpu_h(one.gpu_s)
    return round(usd(one.spent) / hours, 6) if hours > 0 else None


def gpu_h(gpu_s: Seconds) -> Decimal:
    """Return hours of GPUs."""
    return Decimal(round(gpu_s * 1000)) / (1000 * HOUR_S)


def in_order(rows: Sequence[CostSum], by: tuple[Dimension, ...]) -> list[CostSum]:
    """Return sums as they are read best: days in their order, all else the dearest first."""
    if "day" in by:
        place = by.index("day")
        return sorted(rows, key=lambda one: (one.key[place], -one.spent, one.key))
    return sorted(rows, key=lambda one: (-one.spent, one.key))


# -- as a document ---------------------------------------------------------------------------


def costs_keys(costs: Costs) -> Mapping[str, Any]:
    """Return a report as `--json` shows it; what nobody knows is null."""
    return {
        "by": list(costs.by),
        "period": costs.period.says,
        "since": moment(costs.period.since, costs.zone),
        "until": moment(costs.period.until, costs.zone),
        "zone": costs.zone,
        "at": moment(costs.now, costs.zone),
        "only": dict(costs.only),
        "running": costs.running,
        "running_machines": costs.still,
        "costs": [
            {**dict(zip(costs.by, one.key, strict=True)), **sum_keys(one)} for one in costs.rows
        ],
        "total": sum_keys(costs.total),
        "not_in_it": list(NOT_IN_IT),
    }


def sum_keys(one: CostSum) -> Mapping[str, Any]:
    """Return a sum as `--json` and `--csv` show it."""
    less, each = saved(one), usd_per_gpu_h(one)
    return {
        "spent_usd": usd(one.spent),
        "saved_usd": None if less is None else usd(less),
        "wasted_usd": usd(wasted(one)),
        **{f"{key}_usd": usd(wasted_on(one, cause)) for cause, key in WASTE_KEYS.items()},
        **{f"{name}_usd": usd(getattr(one.items, name)) for name in ITEMS},
        "gpu_h": round(gpu_h(one.gpu_s), 6),
        "usd_per_gpu_h": each,
        "jobs": one.jobs,
        "unpriced_lines": one.unpriced,
    }


WASTE_KEYS: Mapping[Waste, str] = {
    cause: f"wasted_{cause.value.replace('-', '_')}" for cause in CAUSES
}


def moment(at: Instant | None, zone: str) -> str | None:
    """Return a time as ISO 8601 in a zone, to the second."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, zone_named(zone)).isoformat(timespec="seconds")
