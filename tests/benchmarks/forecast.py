"""How far off the forecast of a month's end is, beside what anybody would write on a napkin.

    python tests/benchmarks/forecast.py [--seeds 100]

Each seed is a project's ten weeks of spending by day, of one of three kinds, up to a month's end.
`steady`: working days dearer than weekends, with noise; `bursts`: little on most days, and nights
at fifteen times that, one in ten; `grows`: as steady, three per cent more each day. On the 8th,
15th and 22nd each way says how the month ends. Off by: |said - came| / came. `to date`: what was
spent so far, times the month's days over those that have passed. `last month`: what it came to.
"""

import argparse
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median, quantiles

from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.planning.outlook import Outlook, Taken, habit_of, outlook

BEGINS, MONTH, ENDS = date(2026, 9, 21), date(2026, 11, 1), date(2026, 11, 30)
TOLD_ON = (8, 15, 22)
Days = Mapping[date, MicroUsd]


def _noise(draw: random.Random) -> float:
    return math.exp(draw.gauss(0.0, 0.4))


def steady(draw: random.Random, day: date) -> float:
    """Return the dollars of a day: working days cost four times what weekends do."""
    return (20.0 if day.weekday() < 5 else 5.0) * _noise(draw)


def bursts(draw: random.Random, day: date) -> float:
    """Return the dollars of a day: now and then a night is bought."""
    return (150.0 if draw.random() < 0.1 else 10.0) * _noise(draw)


def grows(draw: random.Random, day: date) -> float:
    """Return the dollars of a day: three per cent more than the day before."""
    return steady(draw, day) * 1.03 ** (day - BEGINS).days


KINDS: Mapping[str, Callable[[random.Random, date], float]] = {
    "steady": steady, "bursts": bursts, "grows": grows,
}  # fmt: skip


def spending(kind: str, seed: int) -> Days:
    """Return what a project spends on each day."""
    draw = random.Random(f"{kind} {seed}")
    days = [BEGINS + timedelta(days=n) for n in range((ENDS - BEGINS).days + 1)]
    return {day: micro_usd(str(round(KINDS[kind](draw, day), 6))) for day in days}


def said(days: Days, today: date) -> Outlook:
    """Return the product's outlook on a morning, with nothing queued."""
    now = datetime(today.year, today.month, today.day, tzinfo=UTC).timestamp()
    spent = MicroUsd(sum(amount for day, amount in days.items() if MONTH <= day < today))
    return outlook(f"{today:%Y-%m}", now, Taken(spent=spent), habit_of(days, today), None)


@dataclass(frozen=True, slots=True)
class Told:
    """How far off each way was on one day of one seed, and whether the range held."""

    off: Mapping[str, float]
    held: bool


def told(kind: str, seed: int, on: int) -> Told:
    """Return how far off each way is that tells on a day of the month."""
    days, today = spending(kind, seed), MONTH.replace(day=on)
    came = sum(amount for day, amount in days.items() if day >= MONTH)
    so_far = sum(amount for day, amount in days.items() if MONTH <= day < today)
    before = sum(amount for day, amount in days.items() if f"{day:%m}" == "10")
    one = said(days, today)
    ways = {
        "forecast": one.expected, "to date": so_far * ENDS.day / (on - 1), "last month": before,
    }  # fmt: skip
    off = {way: abs(amount - came) / came for way, amount in ways.items()}
    return Told(off, one.low <= came <= one.high)


def figures(kind: str, on: int, seeds: int) -> Sequence[str]:
    """Return a row of the table: the median and the nine in ten of each way, the range's share."""
    found = [told(kind, seed, on) for seed in range(seeds)]
    row = [kind, f"{on} Nov"]
    for way in ("forecast", "to date", "last month"):
        off = [one.off[way] for one in found]
        row.append(f"{median(off):.1%} ({quantiles(off, n=10)[-1]:.1%})")
    return [*row, f"{sum(one.held for one in found) / seeds:.0%}"]


def main() -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seeds", type=int, default=100)
    seeds = asked.parse_args().seeds
    print(f"Off by, median of {seeds} seeds (nine in ten are below); range: wants 80%")
    heads = ("days", "told on", "forecast", "to date", "last month", "range held")
    rows = [figures(kind, on, seeds) for kind in KINDS for on in TOLD_ON]
    for row in (heads, *rows):
        print("".join(f"{cell:<18}" for cell in row).rstrip())


if __name__ == "__main__":
    main()
