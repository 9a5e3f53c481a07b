"""Spot in several zones under a deadline: the published rules, ours, and what nobody could beat.

    python tests/benchmarks/spot_zones.py [--starts 8] [--ratios 1.05 1.2 1.5 2.0] [--drawn SEED]
        [--triples] [--published] [--json] [--picture spot_zones.png]

A job with a deadline of 51.8 h, a changeover of 0.2 h and a checkpoint of 50 GB; the deadline ratio
is the deadline over the job's length. Machines are p3.2xlarge (V100) in February and March 2023, a
tick 195 s, spot at recorded prices, on-demand 3.06 USD an hour. Setting, rules and the published
figures are those of Li et al., "SkyNomad" (arXiv 2601.06520), and its artifact; `--published` plays
the artifact's own five windows. Records are looked up in $CLOUDWHALE_TRACES; without them, or with
`--drawn`, zones with heavy tails are drawn.

    of optimal    cost / exact optimum of the same window, mean over the starts ± their spread
    seen freely   every zone is seen at every tick
    probed        zones where the job does not run are seen every 2 h; a try tells at once
    took          CPU seconds for a play
    triples       other three zones of the nine, to check that nothing is fitted to the first

A rule may see the record before its start, as free or as rare as in the play.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, pstdev

from spot_zones_trace import (
    DEADLINE_S,
    PUBLISHED_DEADLINE_S,
    PUBLISHED_STARTS,
    SKYNOMAD,
    Zones,
    drawn,
    recorded,
)

from cloudwhale.simulation.spotting import played
from cloudwhale.spi.spot import SpotPolicy
from cloudwhale_policies.spot.zones import WhaleZones
from cloudwhale_policies.spot.zones_omniscient import Future, least
from cloudwhale_policies.spot.zones_published import SkyNomad, UpA, UpAp, UpS

RULES: Mapping[str, SpotPolicy] = {
    "up-s": UpS(),
    "up-a": UpA(),
    "up-ap": UpAp(),
    "skynomad": SkyNomad(),
    "whale-spot": WhaleZones(),
}
RATIOS = (1.05, 1.2, 1.5, 2.0)
PROBES_EVERY_S = 7200.0
PAPER = (
    "published, three zones, ratio 1.5, five windows of 59.9 h: optimal 37.37 USD, SkyNomad 41.73 "
    "(1.12 x), with an oracle of lifetimes 41.99, UP(S) 47.02, UP(A) 49.09, UP(AP) 51.00, "
    "Uniform Progress in one zone 68.71"
)
TRIPLES = (
    ("us-east-1d", "us-east-2a", "us-west-2c"),
    ("us-east-1f", "us-east-2a", "us-west-2b"),
    ("us-east-1a", "us-east-1c", "us-east-2b"),
)
"""One with zones that are seldom on, one with good ones, one with two in a region."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is played."""

    zones: Zones
    starts: Sequence[int]
    deadline_s: float = DEADLINE_S
    probes_every_s: float | None = None

    @property
    def title(self) -> str:
        """Name it."""
        seen = "seen freely" if self.probes_every_s is None else "probed every 2 h"
        return f"{self.zones.title}, {seen}"


@dataclass(frozen=True, slots=True)
class Cell:
    """What one rule came to at one deadline ratio."""

    setting: str
    ratio: float
    rule: str
    usd: float
    of_optimal: float
    spread: float
    worst: float
    misses: int
    starts: float
    """Machines started in a play."""
    took_s: float


class Optima:
    """The least cost by zones, start and errand; each is worked out once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int, float, float], float] = {}
        self.took_s = 0.0

    def usd(self, setting: Setting, start: int, ratio: float) -> float:
        """Return the least cost of a window."""
        zones = setting.zones
        key = (zones.title, start, ratio, setting.deadline_s)
        if key not in self._found:
            began = time.process_time()
            here = zones.record.since(start)
            future = Future(here.is_on, here.spot_usd_h)
            errand = zones.errand(ratio, setting.deadline_s)
            self._found[key] = least(errand, zones.sites(start), future).usd
            self.took_s += time.process_time() - began
        return self._found[key]


def play(setting: Setting, ratio: float, names: Sequence[str], optima: Optima) -> Iterator[Cell]:
    """Yield a cell a rule; all play the same starts."""
    zones, every_s = setting.zones, setting.probes_every_s
    errand = zones.errand(ratio, setting.deadline_s, every_s)
    step = 1 if every_s is None else round(every_s / zones.tick_s)
    best = [optima.usd(setting, start, ratio) for start in setting.starts]
    yield Cell(setting.title, ratio, "optimal", mean(best), 1.0, 0.0, 1.0, 0, 0.0, 0.0)
    for name in names:
        began = time.process_time()
        rides = [
            played(
                errand, zones.record.since(start), RULES[name],
                zones.record.sights(zones.tick_s, range(0, start, step), start),
            )
            for start in setting.starts
        ]  # fmt: skip
        took = time.process_time() - began
        shares = [ride.usd / usd for ride, usd in zip(rides, best, strict=True)]
        yield Cell(
            setting.title, ratio, name, mean(ride.usd for ride in rides), mean(shares),
            pstdev(shares), max(shares), sum(ride.missed for ride in rides),
            mean(ride.starts for ride in rides), took / len(rides),
        )  # fmt: skip


def settings(asked: argparse.Namespace) -> Iterator[Setting]:
    """Yield what is to be played."""
    nine = recorded() if asked.drawn is None else None
    if nine is None:
        zones = drawn(asked.drawn or 1)
        starts = zones.starts(asked.starts)
        yield Setting(zones, starts)
        yield Setting(zones, starts, probes_every_s=PROBES_EVERY_S)
        return
    three = nine.of("SkyNomad's three zones", SKYNOMAD)
    if asked.published:
        title = "SkyNomad's three zones, its five windows"
        yield Setting(nine.of(title, SKYNOMAD), PUBLISHED_STARTS, PUBLISHED_DEADLINE_S)
        return
    starts = nine.starts(asked.starts)
    if asked.triples:
        for names in TRIPLES:
            yield Setting(nine.of(" ".join(names), names), starts)
        return
    for zones in (three, nine):
        yield Setting(zones, starts)
        yield Setting(zones, starts, probes_every_s=PROBES_EVERY_S)


def told(cell: Cell) -> str:
    """Return a line of the table."""
    line = f"{cell.ratio:5.2f} {cell.rule:12} {cell.usd:8.2f}"
    if cell.rule == "optimal":
        return line
    return (
        f"{line}  {cell.of_optimal:6.3f} ± {cell.spread:.3f}  {cell.worst:6.3f}  {cell.misses:6d}"
        f"  {cell.starts:6.1f}  {cell.took_s:6.2f}"
    )


def asked() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description="Spot in several zones under a deadline.")
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--ratios", type=float, nargs="+", default=RATIOS)
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--drawn", type=int, metavar="SEED")
    parser.add_argument("--triples", action="store_true")
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--picture", type=Path)
    return parser.parse_args()


def main() -> None:
    """Print the tables."""
    args, optima, cells = asked(), Optima(), list[Cell]()
    ratios = (1.5,) if args.published else args.ratios
    for setting in settings(args):
        if not args.json:
            print(f"\n{setting.title}, {len(setting.starts)} starts")
            print(f"ratio {'rule':12} {'USD':>8}  of optimal       worst  misses  starts    took")
        for ratio in ratios:
            for cell in play(setting, ratio, args.rules, optima):
                cells.append(cell)
                if not args.json:
                    print(told(cell), flush=True)
        ours = [c.of_optimal for c in cells if _is_ours(c, setting) and c.ratio >= 1.2]
        if ours and not args.json:
            print(f"whale-spot, mean of ratios from 1.2 on: {mean(ours):.3f} x optimal")
    if args.json:
        print(json.dumps([asdict(cell) for cell in cells]))
    else:
        print(f"\n{PAPER}\noptima took {optima.took_s:.0f} CPU seconds")
    if args.picture:
        from spot_zones_picture import draw

        draw(cells, args.picture)


def _is_ours(cell: Cell, setting: Setting) -> bool:
    return cell.rule == "whale-spot" and cell.setting == setting.title


if __name__ == "__main__":
    main()
