"""What `offers` costs with tens of thousands of rows: loading, filtering, sorting.

    python tests/benchmarks/offers.py [--rows 60000] [--json]

A made-up market of the shape of the real one: 250 machine types with GPUs and without, in 40
regions of three zones, spot and on-demand, prices drawn by the seed. CPU seconds of one core, the
median of several runs; the bar was set where the reference that is printed takes 0.20 s.
"""

import argparse
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).parent))

from run import reference_s

from cloudwhale.cli.entry import GARBAGE_AFTER
from cloudwhale.control.catalogue import price_lists
from cloudwhale.control.catalogue.asking import Words, asked
from cloudwhale.control.catalogue.listed import offers_of
from cloudwhale.control.catalogue.merging import merged
from cloudwhale.model.gpus import MODELS
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd
from cloudwhale.planning.allowing import Limits
from cloudwhale.planning.plausible import DAY_S, plausible, possible
from cloudwhale.planning.searching import search
from cloudwhale.spi.listings import Origin, read, written
from cloudwhale.spi.prices import Listing, Price, Shape

ROWS = 60_000
BAR_S = 0.3
RUNS = 5
NOW = 1_796_000_000.0
REGIONS, ZONES, MARKETS = 40, 3, 2
QUESTIONS = (
    Words(), Words(gpu="A100:2"), Words(gpu="24GB..:1"), Words(cpu="16", memory="64GiB"),
    Words(gpu="1", market="spot", regions=("us-*",)),
)  # fmt: skip
LIMITS = Limits(regions=("us-*", "aws/*"), never=("type-1*",), max_price_usd_h=MicroUsd(40_000_000))

T = TypeVar("T")


def a_market(rows: int, seed: int) -> list[Listing]:
    """Return listings that make about so many offers."""
    rng = random.Random(seed)
    types = max(1, rows // (REGIONS * ZONES * MARKETS))
    shapes = [_shape(number, rng) for number in range(types)]
    listings: list[Listing] = []
    for shape in shapes:
        usd_h = 0.05 * shape.cpu + shape.gpus * rng.uniform(0.3, 8.0)
        for number in range(REGIONS):
            region = f"{('us', 'eu', 'ap')[number % 3]}-east-{number}"
            price = MicroUsd(round(usd_h * rng.uniform(0.9, 1.6) * 1e6))
            spot = MicroUsd(round(price * rng.uniform(0.2, 0.8)))
            zones = tuple(f"{region}{letter}" for letter in "abc"[:ZONES])
            listings.append(
                Listing(
                    shape,
                    region,
                    zones,
                    Price(price, NOW - DAY_S, "list"),
                    Price(spot, NOW - DAY_S, "history"),
                    rng.choice((0.001, 0.003, 0.009, None)),
                )  # fmt: skip
            )
    return listings


def _shape(number: int, rng: random.Random) -> Shape:
    cpu = float(rng.choice((4, 8, 16, 32, 64, 96)))
    model = rng.choice(sorted(MODELS))
    gpus = rng.choice((0, 1, 1, 2, 4, 8))
    cloud = "aws" if number % 2 else "gcp"
    if not gpus:
        return Shape(cloud, f"type-{number}", cpu=cpu, memory_gib=4 * cpu)
    gib = MODELS[model].memory_gib
    return Shape(cloud, f"type-{number}", model, gpus, gib, cpu, 8 * cpu, 500.0)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the CPU seconds that something takes, and what it returns."""
    begun = time.process_time()
    made = work()
    return time.process_time() - begun, made


def one_run(rows: int, seed: int) -> dict[str, float]:
    """Return the seconds of each part for one made-up market."""
    gc.unfreeze()
    gc.collect()
    seconds, offers = loaded(list(written(a_market(rows, seed))))
    gc.freeze()  # as the command does
    searched_s = [timed(partial(answered, offers, words))[0] for words in QUESTIONS]
    return {"offers": float(len(offers)), **seconds, "searched": max(searched_s)}


def loaded(lines: Sequence[str]) -> tuple[dict[str, float], list[Offer]]:
    """Return the offers of a price list, and what it took to come to them."""
    lists = price_lists()
    read_s, listings = timed(lambda: list(read(lines, Origin("market.csv", NOW, "made up"))))
    judged_s, kept = timed(lambda: judged(listings))
    made_s, offers = timed(lambda: list(offers_of(kept, lists)))
    return {"read": read_s, "judged": judged_s, "made": made_s}, offers


def judged(listings: Sequence[Listing]) -> Sequence[Listing]:
    """Return what the rules leave."""
    sane = possible(listings).listings
    return plausible(merged([sane], NOW).listings, NOW, 30 * DAY_S).listings


def answered(offers: Sequence[Offer], words: Words) -> int:
    """Answer a question as the command does; return the number of rows."""
    return len(search(offers, asked(words), LIMITS).hits)


def measure(home: Path, rows: int = ROWS) -> Iterator[tuple[str, list[float], str, float, bool]]:
    """Yield name, samples, unit, bar and whether more is better; a bar of 0 is none."""
    runs = [one_run(rows, seed) for seed in range(RUNS)]
    count = round(runs[0]["offers"])
    yield (
        f"{count:,} offers filtered, limited and sorted, dearest question",
        [run["searched"] for run in runs], "CPU s", BAR_S, False,
    )  # fmt: skip
    for part, what in (
        ("read", "read from CSV"), ("judged", "merged and judged"), ("made", "made of listings"),
    ):  # fmt: skip
        yield f"the same {what}", [run[part] for run in runs], "CPU s", 0.0, False


def main() -> None:
    """Print what it costs."""
    gc.set_threshold(GARBAGE_AFTER)  # as every command does
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"offers, default {ROWS}")
    parser.add_argument("--json", action="store_true", help="one document instead of a table")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    if not options.json:
        print(f"reference: `import sqlalchemy, pydantic` takes {reference_s():.3f} s of CPU here")
    for name, samples, unit, bar, _ in measure(Path(), options.rows):
        middle = statistics.median(samples)
        found.append({"name": name, "samples": samples, "unit": unit, "bar": bar or None})
        if not options.json:
            beside = f"bar {bar:g}" if bar else ""
            spread = f"{min(samples):.3f} to {max(samples):.3f}, n={len(samples)}"
            print(f"{name:<62} {middle:8.3f} {unit}  {beside:<8} ({spread})")
    if options.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
