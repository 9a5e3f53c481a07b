"""Recorded and drawn availability of several zones, and the errands that are played in it."""

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from spot_trace import FILE_2023, TICK_2023_S, folder

from cloudwhale.simulation.spotting import Flags, Record
from cloudwhale.spi.spot import Errand, Site

PRICES_2023, EGRESS = "spot_v100_aws_2023_price.csv.gz", "aws_egress_usd_per_gb.csv"
ON_DEMAND_USD_H = 3.06
"""Of a p3.2xlarge in these regions."""
CHECKPOINT_GB = 50.0
DEADLINE_S, CHANGEOVER_S = 51.8 * 3600.0, 720.0
SKYNOMAD = ("us-east-1c", "us-east-2b", "us-west-2a")
"""The three zones of the paper's figure 9b, as its artifact names them (configs/v100.py)."""
PUBLISHED_STARTS = (3318, 5530, 7742, 8848, 15484)
"""Ticks at which the artifact's five windows begin (research/data/v100.csv)."""
PUBLISHED_DEADLINE_S = 1106 * TICK_2023_S
"""59.9 h, the deadline of those windows."""


@dataclass(frozen=True, slots=True, eq=False)
class Zones:
    """Zones side by side."""

    title: str
    record: Record
    tick_s: float
    egress_usd: dict[tuple[str, str], float]

    def of(self, title: str, names: Sequence[str]) -> "Zones":
        """Return some of the zones."""
        at = [self.record.names.index(name) for name in names]
        whole = self.record
        record = Record(
            tuple(names), tuple(whole.regions[i] for i in at), whole.is_on[:, at],
            whole.spot_usd_h[:, at], tuple(whole.on_demand_usd_h[i] for i in at),
        )  # fmt: skip
        return Zones(title, record, self.tick_s, self.egress_usd)

    def errand(
        self, ratio: float, deadline_s: float = DEADLINE_S, probes_every_s: float | None = None
    ) -> Errand:
        """Return the job whose deadline is so many times its length."""
        return Errand(
            deadline_s / ratio, deadline_s, CHANGEOVER_S, self.tick_s, self.egress_usd,
            probes_every_s,
        )  # fmt: skip

    def starts(self, count: int, deadline_s: float = DEADLINE_S) -> list[int]:
        """Return ticks to start at, evenly spread, a day or more into the record."""
        first = int(86400.0 / self.tick_s)
        last = len(self.record.is_on) - int(np.ceil(deadline_s / self.tick_s)) - 1
        return [int(tick) for tick in np.linspace(first, last, count)]

    def sites(self, start: int) -> tuple[Site, ...]:
        """Return the zones at the prices of a tick."""
        of, row = self.record, self.record.spot_usd_h[min(start, len(self.record.spot_usd_h) - 1)]
        rows = zip(of.names, of.regions, row.tolist(), of.on_demand_usd_h, strict=True)
        return tuple(Site(*each) for each in rows)


def recorded() -> Zones | None:
    """Return all nine zones of the record of 2023; None where it is not."""
    if not (folder() / PRICES_2023).exists():
        return None
    head, *rows = _rows(FILE_2023)
    names = head[1:]
    is_on = np.array([[cell == "1" for cell in row[1:]] for row in rows])
    prices = np.zeros(is_on.shape)
    for zone, tick, usd_h in _rows(PRICES_2023)[1:]:
        prices[int(tick) :, names.index(zone)] = float(usd_h)
    with (folder() / EGRESS).open() as text:
        egress = {(a, b): CHECKPOINT_GB * float(usd) for a, b, usd in list(csv.reader(text))[1:]}
    regions = tuple(name[:-1] for name in names)
    record = Record(tuple(names), regions, is_on, prices, (ON_DEMAND_USD_H,) * len(names))
    return Zones("nine zones", record, TICK_2023_S, egress)


def _rows(name: str) -> list[list[str]]:
    with gzip.open(folder() / name, "rt") as text:
        return list(csv.reader(text))


def drawn(seed: int, regions: int = 3, zones: int = 2, ticks: int = 6000) -> Zones:
    """Return zones whose spells have heavy tails, at other prices and another egress.

    A zone is on when its region and itself are: half of what takes machines takes them from all.
    """
    dice = np.random.default_rng(seed)
    flags, names, where, prices = list[Flags](), list[str](), list[str](), list[float]()
    for region in range(regions):
        shared = _spells(dice, ticks, share=0.9)
        for zone in range(zones):
            flags.append(shared & _spells(dice, ticks, share=float(dice.uniform(0.6, 0.95))))
            names.append(f"region-{region}{'abc'[zone]}")
            where.append(f"region-{region}")
            prices.append(float(dice.uniform(0.25, 0.5)) * ON_DEMAND_USD_H)
    there = sorted(set(where))
    egress = {(a, b): float(dice.uniform(0.5, 2.0)) for a in there for b in there if a != b}
    spot = np.tile(np.array(prices), (ticks, 1))
    record = Record(
        tuple(names), tuple(where), np.array(flags).T, spot, (ON_DEMAND_USD_H,) * len(names)
    )
    return Zones(f"drawn, {regions} x {zones} zones, seed {seed}", record, 195.0, egress)


def _spells(dice: np.random.Generator, ticks: int, share: float) -> Flags:
    """Return flags in spells whose lengths are Pareto, cut at a day and a half, so often on."""
    lengths = np.minimum(700, 2 + dice.pareto(0.8, size=2 * ticks) * 4).astype(int)
    stretch = np.where(np.arange(len(lengths)) % 2 == 0, share, 1.0 - share) * 2.0
    lengths = np.maximum(1, (lengths * stretch).astype(int))
    flags = np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)
    begin = int(dice.integers(0, 200))
    return np.asarray(flags[begin : begin + ticks])
