"""Costs as a page that a manager opens and prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from cloudwhale.model.cost import CostSum, Dimension, Waste
from cloudwhale.model.units import MicroUsd, usd
from cloudwhale.planning.cost_sums import ITEMS, zone_named
from cloudwhale.reporting.cost_days import AskedForDays, Days, days_chart, days_of
from cloudwhale.reporting.cost_sheet import nothing_spent, written
from cloudwhale.reporting.cost_words import amount, column_with_total, digits_for
from cloudwhale.reporting.costs import (
    CAUSES,
    NOT_IN_IT,
    Costs,
    Row,
    gpu_h,
    names_of,
    saved,
    shown,
    usd_per_gpu_h,
    wasted,
    wasted_on,
    without,
)
from cloudwhale.reporting.figures import NOTHING, counted, percent
from cloudwhale.reporting.page import (
    Bar,
    Html,
    Tile,
    bars,
    heading,
    page,
    points,
    said,
    table,
    tiles,
)
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone, cells

ROWS = 40
"""So many rows of a table are shown one by one; a page is for people."""
BARS = 12
DEAREST = 20
JOBS: tuple[Dimension, ...] = ("job", "family", "project", "user")

MEANS: Mapping[Waste, str] = {
    Waste.BOOT: "machines were billed and not ready yet",
    Waste.IDLE: "machines were ready, and no job held a place there",
    Waste.LOST: "work was done again, as no checkpoint held it",
    Waste.FAILED: "attempts ended in a failure",
    Waste.OVER_ASKED: "a smaller GPU would have held all that was used",
}
BOUGHT: Mapping[str, str] = {
    "machine": "machines, by the hour",
    "disk": "their disks",
    "address": "their public addresses",
    "egress": "checkpoints that were brought from one cloud to another",
}


@dataclass(frozen=True, slots=True)
class Parts:
    """What the page is made of."""

    costs: Costs
    days: Days
    dearest: Sequence[CostSum]
    """Of jobs, with family, project and user; the dearest first."""


class Asked(AskedForDays, Protocol):
    """Where the page gets its sums."""

    def costs(self, by: tuple[Dimension, ...]) -> Costs:
        """Return the report by some dimensions."""
        ...

    def dearest_jobs(self, many: int, by: tuple[Dimension, ...]) -> Sequence[CostSum]:
        """Return the jobs of the most money, the dearest first."""
        ...


def parts_of(by: tuple[Dimension, ...], asked: Asked) -> Parts:
    """Return what the page needs."""
    return Parts(asked.costs(by), days_of(by, asked), asked.dearest_jobs(DEAREST, JOBS))


def costs_page(parts: Parts) -> str:
    """Return the page; amounts that are written in a column add up to its total."""
    costs = parts.costs
    only = "".join(f", {name} {value} alone" for name, value in costs.only.items())
    made = datetime.fromtimestamp(costs.now, zone_named(costs.zone))
    under = f"{costs.period.says}{only}. As of {made:%Y-%m-%d %H:%M}. US dollars."
    under = f"{under[:1].upper()}{under[1:]}"
    body = _body(parts) if costs.rows else [said(nothing_spent(costs))]
    return page("Costs of rented machines", [*body, *_fine_print(costs)], under)


def _body(parts: Parts) -> list[Html]:
    costs = parts.costs
    return [
        _tiles(costs.total),
        heading(f"By {', '.join(costs.by)}"),
        _bars(costs),
        table(_sheet(costs), has_total=True),
        *days_chart(costs, parts.days),
        heading("Wasted, by cause"),
        table(_causes(costs.total), has_total=True),
        heading("What was bought"),
        table(_items(costs.total), has_total=True),
        *_dearest(parts),
    ]


def _tiles(total: CostSum) -> Html:
    digits = digits_for(total.spent)
    less, lost, each = saved(total), wasted(total), usd_per_gpu_h(total)
    would = total.spent + (less or 0)
    rate = "" if less is None or would <= 0 else f"{percent(less / would)} less than on demand"
    share = f"{percent(lost / total.spent)} of what was spent" if total.spent > 0 else ""
    return tiles(
        [
            Tile("spent", f"{amount(total.spent, digits)} USD", counted(total.jobs, "job")),
            Tile(
                "saved", "unknown" if less is None else f"{amount(less, digits)} USD", rate,
                "good" if less is not None and less > 0 else "plain",
            ),
            Tile("wasted", f"{amount(lost, digits)} USD", share, "bad" if lost > 0 else "plain"),
            Tile(
                "GPU-hours", f"{gpu_h(total.gpu_s):,.1f}",
                "" if each is None else f"{each:,.2f} USD per GPU-hour",
            ),
        ]
    )  # fmt: skip


# -- by what was asked for -----------------------------------------------------------------------


def _bars(costs: Costs) -> Html:
    """Return the dearest rows as bars, with the amounts of the table below."""
    rows = shown(costs, ROWS)
    spent = written(rows, digits_for(costs.total.spent), False)[0]
    drawn = [
        Bar(" / ".join(row.names), f"{says} USD", _useful_and_wasted(row.sum))
        for row, says in zip(rows, spent, strict=True)
        if row.kind == "one"
    ][:BARS]
    more = len(costs.rows) - len(drawn)
    left = said(f"The {len(drawn)} dearest of {len(costs.rows):,}.", "quiet") if more else ""
    return Html(f"{bars(drawn, ('useful', 'wasted'))}{left}")


def _useful_and_wasted(one: CostSum) -> tuple[float, float]:
    lost = wasted(one)
    return max(0.0, float(usd(MicroUsd(one.spent - lost)))), float(usd(lost))


def _sheet(costs: Costs) -> Sheet:
    rows = shown(costs, ROWS)
    spent, less, *lost = written(rows, digits_for(costs.total.spent), True)
    heads = [Column(name) for name in costs.by]
    heads += [Column(name, right=True) for name in ("spent", "saved", "wasted", *CAUSES.values())]
    heads += [Column("GPU-hours", right=True), Column("USD/GPU-h", right=True)]
    made: list[tuple[Cell, ...]] = []
    for place, row in enumerate(rows):
        each = usd_per_gpu_h(row.sum)
        tone: Tone = "quiet" if row.kind == "rest" else "plain"
        made.append(
            cells(
                *(Cell(name, tone) for name in row.names), spent[place], less[place],
                *(texts[place] for texts in lost), f"{gpu_h(row.sum.gpu_s):,.1f}",
                NOTHING if each is None else f"{each:,.2f}",
            )
        )  # fmt: skip
    return Sheet(tuple(heads), tuple(made), notes=_unpriced(costs))


def _unpriced(costs: Costs) -> tuple[str, ...]:
    total = costs.total
    if not total.unpriced:
        return ()
    return (
        f"Of {total.unpriced:,} of {counted(total.lines, 'charge')} nobody knows the price on "
        "demand: they are in no amount saved.",
    )


# -- what it was for -----------------------------------------------------------------------------


def _causes(total: CostSum) -> Sheet:
    amounts = [wasted_on(total, cause) for cause in CAUSES]
    return _parts_sheet("cause", [*CAUSES.values()], amounts, [MEANS[cause] for cause in CAUSES])


def _items(total: CostSum) -> Sheet:
    amounts = [getattr(total.items, name) for name in ITEMS]
    return _parts_sheet("what", list(ITEMS), amounts, [BOUGHT[name] for name in ITEMS])


def _parts_sheet(
    head: str, names: Sequence[str], amounts: Sequence[MicroUsd], means: Sequence[str]
) -> Sheet:
    whole = MicroUsd(sum(amounts))
    texts = column_with_total([*amounts, whole], digits_for(whole))
    rows = [
        cells(name, text, percent(of / whole) if whole else NOTHING, mean)
        for name, text, of, mean in zip(
            [*names, "total"], texts, [*amounts, whole], [*means, ""], strict=True
        )
    ]
    heads = (
        Column(head),
        Column("USD", right=True),
        Column("share", right=True),
        Column("that is"),
    )
    return Sheet(heads, tuple(rows))


def _dearest(parts: Parts) -> list[Html]:
    if not parts.dearest:
        return []
    rows = [Row(names_of(one.key, JOBS), one) for one in parts.dearest]
    total = parts.costs.total
    rest = without(total, parts.dearest)
    if rest.lines:
        rows.append(Row(("all others", "", "", ""), rest, "rest"))
    rows.append(Row(("total", "", "", ""), total, "total"))
    spent, less, lost = written(rows, digits_for(total.spent), False)
    heads = [Column(name) for name in JOBS]
    heads += [Column(name, right=True) for name in ("spent", "saved", "wasted", "GPU-hours")]
    made = [
        cells(*row.names, *texts, f"{gpu_h(row.sum.gpu_s):,.1f}")
        for row, *texts in zip(rows, spent, less, lost, strict=True)
    ]
    return [heading("Dearest jobs"), table(Sheet(tuple(heads), tuple(made)), has_total=True)]


def _fine_print(costs: Costs) -> list[Html]:
    machines = (
        [f"{counted(costs.still, 'machine')} not back yet: in it is what they cost by then."]
        if costs.still
        else []
    )
    if not costs.running:
        machines = ["Machines that are not back yet are left out."]
    return [
        heading("What is in it, and what is not"),
        points(
            [
                "Rented machines with their disks, addresses and egress, by the prices that were "
                "frozen when they were charged; own machines cost nothing here.",
                f"A machine counts whole on the day, in {costs.zone}, on which its bill began.",
                *machines,
                *(f"Not in it: {each}." for each in NOT_IN_IT),
            ]
        ),
    ]
