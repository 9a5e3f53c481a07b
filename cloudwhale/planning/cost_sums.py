"""Lines of cost, added up by their dimensions; what the database does, for lines in memory."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from cloudwhale.model.cost import CostLine, CostSum, Dimension, Items, Purposes
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.spi.store import CostQuery

ITEMS = tuple(Items.model_fields)
PURPOSES = tuple(Purposes.model_fields)
FILTERS = (
    "run", "user", "project", "job", "family", "rental", "provider", "market", "region", "gpu",
)  # fmt: skip
"""Fields of a query that leave lines out which have another value there."""


@lru_cache(maxsize=64)
def zone_named(name: str) -> tzinfo:
    """Return a time zone; raise ValueError for a name that nobody knows."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(
            f"{name!r} is no time zone; one is called Europe/Berlin, or UTC"
        ) from error


def day_of(at: Instant, zone: str) -> str:
    """Return the day of a moment as `2026-11-30`; raise ValueError for an unknown zone."""
    return datetime.fromtimestamp(at, zone_named(zone)).date().isoformat()


def fits(line: CostLine, query: CostQuery) -> bool:
    """Say whether a query asks for a line."""
    if query.since is not None and line.began_at < query.since:
        return False
    if query.until is not None and line.began_at >= query.until:
        return False
    if query.of_jobs and line.job is None:
        return False
    asked = ((name, getattr(query, name)) for name in FILTERS)
    return all(value is None or getattr(line, name) == value for name, value in asked)


def sums(lines: Iterable[CostLine], query: CostQuery) -> list[CostSum]:
    """Return lines that a query asks for, added up and by key; none without lines.

    Raise ValueError for a zone that nobody knows.
    """
    zone_named(query.zone)
    groups: dict[tuple[str, ...], list[CostLine]] = {}
    for line in lines:
        if fits(line, query):
            key = tuple(_of(line, dimension, query.zone) for dimension in query.by)
            groups.setdefault(key, []).append(line)
    found = [_sum(key, groups[key]) for key in sorted(groups)]
    if not query.counts_jobs:
        found = [one.but(jobs=0) for one in found]
    if query.dearest is None:
        return found
    by_money = sorted(found, key=lambda one: -one.spent)
    return sorted(by_money[: query.dearest], key=lambda one: one.key)


def _of(line: CostLine, dimension: Dimension, zone: str) -> str:
    if dimension == "day":
        return day_of(line.began_at, zone)
    return str(getattr(line, dimension) or "")


def _sum(key: tuple[str, ...], lines: Sequence[CostLine]) -> CostSum:
    priced = [(one.on_demand, one.spent) for one in lines if one.on_demand is not None]
    return CostSum(
        key=key,
        lines=len(lines),
        jobs=len({one.job for one in lines if one.job is not None}),
        spent=MicroUsd(sum(one.spent for one in lines)),
        items=Items(**_added([one.items for one in lines], ITEMS)),
        purposes=Purposes(**_added([one.purposes for one in lines], PURPOSES)),
        saved=MicroUsd(sum(on_demand - spent for on_demand, spent in priced)),
        unpriced=len(lines) - len(priced),
        gpu_s=sum(milliseconds(one.gpu_s) for one in lines) / 1000.0,
    )


def _added(parts: Sequence[Items | Purposes], names: Sequence[str]) -> dict[str, MicroUsd]:
    return {name: MicroUsd(sum(getattr(one, name) for one in parts)) for name in names}


def milliseconds(seconds: float) -> int:
    """Return some time in whole milliseconds: so sums of it are the same in every order."""
    return round(seconds * 1000.0)


def both(first: Iterable[CostSum], second: Iterable[CostSum]) -> list[CostSum]:
    """Return two lists of sums of other lines as one; a job that is in both counts twice."""
    found = {one.key: one for one in first}
    for one in second:
        found[one.key] = _two(found[one.key], one) if one.key in found else one
    return [found[key] for key in sorted(found)]


def _two(one: CostSum, other: CostSum) -> CostSum:
    return CostSum(
        key=one.key,
        lines=one.lines + other.lines,
        jobs=one.jobs + other.jobs,
        spent=MicroUsd(one.spent + other.spent),
        items=Items(**_added([one.items, other.items], ITEMS)),
        purposes=Purposes(**_added([one.purposes, other.purposes], PURPOSES)),
        saved=MicroUsd(one.saved + other.saved),
        unpriced=one.unpriced + other.unpriced,
        gpu_s=one.gpu_s + other.gpu_s,
    )
