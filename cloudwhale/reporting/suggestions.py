"""What jobs of each family ask for, what they used, and what asking for that would have saved."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cloudwhale.model import gpus
from cloudwhale.model.cost import CostSum
from cloudwhale.model.offer import Offer
from cloudwhale.model.peak import Peak
from cloudwhale.model.units import NOTHING as NO_MONEY
from cloudwhale.model.units import GiB, MicroUsd, usd
from cloudwhale.model.value import Value
from cloudwhale.planning.growth import STEPS_GIB
from cloudwhale.planning.sizing import (
    EVIDENCE,
    HOST_STEPS_GIB,
    Measured,
    gpu_measured,
    host_measured,
)
from cloudwhale.reporting.figures import NOTHING, cents, gib
from cloudwhale.reporting.sheet import Cell, Column, Sheet

Family = tuple[str, str]


class Need(Value):
    """What a family should ask for of one kind of memory, and the evidence."""

    asks_gib: GiB | None
    """As its newest attempt asked; None: it asked for nothing."""
    attempts: int
    completed: int
    most_gib: GiB
    median_gib: GiB
    should_gib: GiB | None
    """None: too little is known."""


class Suggestion(Value):
    """What is known of one family."""

    project: str
    family: str
    gpu: Need
    host: Need
    ran_on: str
    """The GPU model of its newest attempt; empty: none."""
    could_run_on: tuple[str, ...] = ()
    """Cheaper models that hold it, by what an hour of the same work costs, the cheapest first."""
    spent: MicroUsd = NO_MONEY
    saved: MicroUsd | None = None
    """What the cheapest of them would have saved of it; None: nobody knows."""


def suggestion(
    family: Family, peaks: Sequence[Peak], spent: Iterable[CostSum], prices: Mapping[str, float]
) -> Suggestion:
    """Return what is to be said of a family, of which there is one peak at least.

    `spent`: its sums by GPU model. `prices`: least dollars an hour of one device, by model.
    """
    newest, sums = peaks[-1], list(spent)
    gpu = _need(newest.asked_gib, gpu_measured(peaks), STEPS_GIB)
    host = _need(newest.host_asked_gib, host_measured(peaks), HOST_STEPS_GIB)
    could = _cheaper(newest.gpu, gpu.should_gib, prices)
    return Suggestion(
        project=family[0], family=family[1], gpu=gpu, host=host, ran_on=newest.gpu,
        could_run_on=could, spent=MicroUsd(sum(one.spent for one in sums)),
        saved=_saved(sums, could, prices) if could else None,
    )  # fmt: skip


def _need(asks: GiB | None, seen: Measured, steps: Sequence[GiB]) -> Need:
    known = seen.completed >= EVIDENCE or seen.grown_gib is not None
    return Need(
        asks_gib=asks, attempts=seen.attempts, completed=seen.completed, most_gib=seen.most_gib,
        median_gib=seen.median_gib, should_gib=seen.size_gib(steps) if known else None,
    )  # fmt: skip


def _cheaper(model: str, needs_gib: GiB | None, prices: Mapping[str, float]) -> tuple[str, ...]:
    now = _work_usd(model, model, prices)
    if needs_gib is None or now is None:
        return ()
    found: list[tuple[float, str]] = []
    for other in prices:
        price = _work_usd(other, model, prices)
        holds = other in gpus.MODELS and gpus.MODELS[other].memory_gib >= needs_gib
        if holds and price is not None and price < now:
            found.append((price, other))
    return tuple(name for _, name in sorted(found))


def _work_usd(model: str, beside: str, prices: Mapping[str, float]) -> float | None:
    """Return what the work of an hour on another model costs on one; None: nobody knows."""
    speed, price = gpus.speed(model, beside), prices.get(model)
    return None if price is None or not speed else price / speed


def _saved(
    sums: Sequence[CostSum], could: Sequence[str], prices: Mapping[str, float]
) -> MicroUsd | None:
    total: float | None = None
    for one in sums:
        model = one.key[-1]
        best, now = _work_usd(could[0], model, prices), _work_usd(model, model, prices)
        if best is not None and now:
            total = (total or 0.0) + one.spent * max(0.0, 1.0 - best / now)
    return None if total is None else MicroUsd(int(total))


def device_prices(offers: Iterable[Offer]) -> Mapping[str, float]:
    """Return the least dollars that an hour of one device costs, by model; unknown ones are out."""
    found: dict[str, float] = {}
    for offer in offers:
        devices = offer.facts.devices
        if devices and offer.price_usd_h is not None:
            each = float(usd(MicroUsd(offer.price_usd_h + offer.extras_usd_h))) / len(devices)
            model = devices[0].model
            found[model] = min(each, found.get(model, each))
    return found


# -- shown -----------------------------------------------------------------------------------

COLUMNS = (
    Column("project"), Column("family"), Column("of"), Column("asks", right=True),
    Column("used at most", right=True), Column("median", right=True),
    Column("attempts", right=True), Column("should ask", right=True),
    Column("cheaper GPUs", gives_way=True), Column("spent", right=True),
    Column("would have saved", right=True),
)  # fmt: skip


def suggestions_sheet(found: Sequence[Suggestion]) -> Sheet:
    """Show each family, a row for GPU memory and one for the machine's."""
    rows = [row for one in found for row in _rows(one)]
    notes = (
        f"Sizes are 1.2 times the most that was used, up to the next one that there is; "
        f"{EVIDENCE} completed attempts are needed. `auto_size: true` asks for them.",
        "Spent is all that was ever charged, not a month's. What would have been saved of it is by "
        "today's least prices and the models' relative speeds.",
    )
    nothing = ("No attempt has been measured yet.",)
    return Sheet(COLUMNS, tuple(rows), notes=notes if rows else nothing)


def _rows(one: Suggestion) -> Iterable[tuple[Cell, ...]]:
    if one.gpu.attempts:
        saved = NOTHING if one.saved is None else cents(one.saved)
        could = ", ".join(one.could_run_on[:3]) or NOTHING
        yield _row(one, "GPU memory", one.gpu, could, cents(one.spent), saved)
    if one.host.attempts:
        yield _row(one, "memory", one.host, NOTHING, NOTHING, NOTHING)


def _row(one: Suggestion, of: str, need: Need, *gains: str) -> tuple[Cell, ...]:
    could, spent, saved = gains
    return (
        Cell(one.project), Cell(one.family), Cell(of), Cell(gib(need.asks_gib)),
        Cell(gib(need.most_gib)), Cell(gib(need.median_gib), "quiet"), Cell(f"{need.attempts}"),
        Cell(gib(need.should_gib), "strong"), Cell(could), Cell(spent), Cell(saved, "good"),
    )  # fmt: skip


def suggestion_keys(one: Suggestion) -> Mapping[str, Any]:
    """Return a suggestion as `--json` shows it; sizes in GiB, money in dollars."""
    return {
        "project": one.project, "family": one.family,
        "gpu_memory_gib": one.gpu.model_dump(), "memory_gib": one.host.model_dump(),
        "ran_on": one.ran_on or None, "could_run_on": list(one.could_run_on),
        "spent_usd": usd(one.spent), "would_have_saved_usd": one.saved and usd(one.saved),
    }  # fmt: skip
