"""The chart of the page of costs: days, or months, each stacked by what cost most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from cloudwhale.model.cost import CostSum, Dimension
from cloudwhale.model.units import MicroUsd, usd
from cloudwhale.planning.cost_sums import day_of
from cloudwhale.reporting.cost_words import digits_for
from cloudwhale.reporting.costs import Costs, in_order, names_of
from cloudwhale.reporting.page import Html, Series, columns, heading
from cloudwhale.reporting.page_style import SERIES

DAYS = 92
"""A longer period is drawn by month."""

DAY: Dimension = "day"
PROJECT: Dimension = "project"


@dataclass(frozen=True, slots=True)
class Days:
    """What the chart is drawn from."""

    of: Dimension
    all: Sequence[CostSum]
    """By day."""
    stacked: Mapping[str, Sequence[CostSum]]
    """By day, of the dearest values of that dimension, the dearest first."""
    others: int
    """How many values are not among them."""


class AskedForDays(Protocol):
    """Where the chart gets its sums."""

    def sums(self, *by: Dimension) -> Sequence[CostSum]:
        """Return all the money by some dimensions."""
        ...

    def by_day_of(self, dimension: Dimension, value: str) -> Sequence[CostSum]:
        """Return the money of one value of a dimension by day."""
        ...


def days_of(by: tuple[Dimension, ...], asked: AskedForDays) -> Days:
    """Return what the chart needs: days of years times each of many values would be too many."""
    of = by[0] if by[0] != DAY else (*by, PROJECT)[1]
    names = [one.key[0] for one in in_order(asked.sums(of), (of,))]
    shown = names if len(names) <= SERIES else names[: SERIES - 1]
    stacked = {name: asked.by_day_of(of, name) for name in shown}
    return Days(of, asked.sums(DAY), stacked, len(names) - len(shown))


def days_chart(costs: Costs, days: Days) -> list[Html]:
    """Return a chart of days, or of months where there are many."""
    labels = _labels(costs, days)
    by_month = len(labels) > DAYS
    if by_month:
        labels = list(dict.fromkeys(_month(label) for label in labels))
    whole = _amounts(days.all, labels, by_month)
    series: list[Series] = []
    for name, sums in days.stacked.items():
        amounts = _amounts(sums, labels, by_month)
        whole = [one - part for one, part in zip(whole, amounts, strict=True)]
        series.append(_series(names_of((name,), (days.of,))[0], amounts))
    if any(whole):
        series.append(_series(f"{days.others:,} others", whole))
    digits = digits_for(costs.total.spent)
    chart = columns(labels, series, lambda of: f"{of:,.{digits}f}")
    return [heading(f"By {'month' if by_month else 'day'} and {days.of}"), chart]


def _amounts(sums: Sequence[CostSum], labels: Sequence[str], by_month: bool) -> list[int]:
    places = {label: place for place, label in enumerate(labels)}
    found = [0] * len(labels)
    for one in sums:
        day = one.key[0]
        found[places[_month(day) if by_month else day]] += one.spent
    return found


def _series(name: str, amounts: Sequence[int]) -> Series:
    return Series(name, tuple(float(usd(MicroUsd(of))) for of in amounts))


def _month(day: str) -> str:
    return day[:7]


def _labels(costs: Costs, days: Days) -> list[str]:
    """Return the days of the period, as far as it is over, and all that cost something."""
    found = [one.key[0] for one in days.all]
    until = costs.now if costs.period.until is None else min(costs.now, costs.period.until - 1)
    ends = [day_of(until, costs.zone)]
    if costs.period.since is not None:
        ends.append(day_of(costs.period.since, costs.zone))
    first, last = min(*found, *ends), max(*found, *ends)
    begin = date.fromisoformat(first)
    many = (date.fromisoformat(last) - begin).days + 1
    return [(begin + timedelta(days=number)).isoformat() for number in range(many)]
