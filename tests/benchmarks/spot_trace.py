"""Recorded and drawn availability of single zones, and where errands start in it."""

import csv
import gzip
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cloudwhale.spi.spot import Errand

FILE_2022, TICK_2022_S = "spot_aws_2022_avail.csv.gz", 600.0
FILE_2023, TICK_2023_S = "spot_v100_aws_2023_avail.csv.gz", 195.0
EVERY = 3
"""Ticks of the second file are gathered: every third is kept, 585 s, so that optima are cheap."""
WORK_S, CHANGEOVER_S = 48 * 3600.0, 720.0


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One zone's availability."""

    name: str
    is_on: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Zones:
    """Series of one record."""

    title: str
    tick_s: float
    series: tuple[Series, ...]

    def errand(self, fraction: float) -> Errand:
        """Return the job of 48 h whose deadline leaves it `1 / fraction` of its length."""
        return Errand(WORK_S, WORK_S / fraction, CHANGEOVER_S, self.tick_s)


def folder() -> Path:
    """Return where records are looked for."""
    given = os.environ.get("CLOUDWHALE_TRACES")
    return Path(given) if given else Path(__file__).parents[3] / "shared" / "data"


def recorded(name: str, title: str, tick_s: float, every: int = 1) -> Zones | None:
    """Return the zones of a file whose columns are a tick and one zone each; None without it."""
    file = folder() / name
    if not file.exists():
        return None
    with gzip.open(file, "rt") as text:
        head, *rows = csv.reader(text)
    flags = np.array([[cell == "1" for cell in row[1:]] for row in rows])[::every]
    series = (Series(name, flags[:, at]) for at, name in enumerate(head[1:]))
    return Zones(title, tick_s * every, tuple(series))


def drawn(seed: int, zones: int = 8, ticks: int = 3000) -> Zones:
    """Return zones whose spells are Pareto: what is survived to age a goes as (1 + a)^-e.

    The exponents, 0.7 to 1.2, and the longest spells, 20 to 300 ticks, differ between zones and
    between a zone's spells with machines and without.
    """
    dice = random.Random(seed)
    found: list[Series] = []
    for number in range(zones):
        law = {
            on: (dice.uniform(0.7, 1.2), dice.choice((20, 60, 150, 300))) for on in (True, False)
        }
        flags: list[bool] = []
        is_on = dice.random() < 0.5
        while len(flags) < ticks:
            exponent, most = law[is_on]
            lasts = min(most, 1 + int((1.0 - dice.random()) ** (-1.0 / exponent) - 1.0))
            flags += [is_on] * lasts
            is_on = not is_on
        found.append(Series(f"drawn-{number}", np.array(flags[:ticks])))
    return Zones(f"drawn, heavy tails, seed {seed}", TICK_2022_S, tuple(found))


def starts(series: Series, ticks: int, count: int, seed: str) -> Sequence[int]:
    """Return ticks at which an errand of so many ticks begins."""
    dice = random.Random(f"{seed}/{series.name}/{ticks}")
    return sorted(dice.randrange(len(series.is_on) - ticks + 1) for _ in range(count))


def all_zones(quick: bool) -> Iterator[Zones]:
    """Yield the records that there are: the table's own first, then those to check it by."""
    first = recorded(FILE_2022, "AWS us-west-2, October 2022", TICK_2022_S)
    if first is not None:
        yield first
    other = recorded(FILE_2023, "AWS, V100, February 2023, other zones too", TICK_2023_S, EVERY)
    if other is not None and not quick:
        yield other
    yield drawn(1)
