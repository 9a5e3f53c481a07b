"""What one planning round costs: thousands of distinct demands on a thousand nodes.

    python tests/benchmarks/match.py [--one-by-one] [--json]

Whole rounds of the planner, in CPU seconds of one core: the median of several seeds, each once in
a process of its own and with reasons for everybody: the dearest round there is. The way that
was before, one demand after another without arrays, stands beside it where it ends soon enough.
"""

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from match_worlds import SHAPES, Size, a_big_world, distinct_demands

from cloudwhale.model.plan import Place
from cloudwhale.planning import packing
from cloudwhale.planning.planner import Policies, plan
from cloudwhale_policies.whale import Whale
from cloudwhale_policies.whale_order import Whale as WhaleOrder

SEEDS = (1, 2, 3)
SMALL, LARGE, FEWER_JOBS = Size(1_000, 100), Size(10_000, 1_000), Size(1_000, 1_000)
BAR_S = {SMALL: 0.3, LARGE: 3.0}
BAR_MB = 500.0
BAR_TIMES = 12.0


@dataclass(frozen=True, slots=True)
class Round:
    """What one round has cost."""

    cpu_s: float
    peak_mb: float
    demands: int
    placed: int


def one_round(size: Size, seed: int, *, one_by_one: bool) -> Round:
    """Make the plan of a world and say what it cost; the world and the imports are not counted."""
    world = a_big_world(size, seed)
    if one_by_one:
        packing.SMALL = sys.maxsize  # arrays are for more pairs than that
    policies = Policies(WhaleOrder(), Whale())
    plan(a_big_world(Size(100, 10), seed), policies)  # a controller has planned before
    gc.collect()
    begun = time.process_time()
    made = plan(world, policies)
    cpu_s = time.process_time() - begun
    placed = sum(isinstance(step, Place) for step in made.steps)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Round(cpu_s, peak_mb, distinct_demands(world), placed)


def in_its_own_process(size: Size, seed: int, *, one_by_one: bool = False) -> Round:
    """Return what a round costs where nothing else has been."""
    words = [sys.executable, __file__, "--round", str(size.waiting), str(size.nodes), str(seed)]
    words += ["--one-by-one"] if one_by_one else []
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return Round(**json.loads(told))


def measure(home: Path) -> Iterator[tuple[str, list[float], str, float, bool]]:
    """Yield name, samples, unit, bar and whether more is better, as `run.py` asks for them."""
    cpu_s: dict[Size, list[float]] = {}
    for size in (SMALL, LARGE, FEWER_JOBS):
        rounds = [in_its_own_process(size, seed) for seed in SEEDS]
        cpu_s[size] = [one.cpu_s for one in rounds]
        least = min(one.demands for one in rounds)
        name = f"{size.waiting} waiting ({least} demands) on {size.nodes} nodes"
        if size in BAR_S:
            yield f"one round, {name}", cpu_s[size], "CPU s", BAR_S[size], False
        if size is LARGE:
            yield "its peak memory", [one.peak_mb for one in rounds], "MB", BAR_MB, False
    times = [many / few for many, few in zip(cpu_s[LARGE], cpu_s[FEWER_JOBS], strict=True)]
    yield "ten times the jobs on 1000 nodes", times, "times", BAR_TIMES, False


def main() -> None:
    """Print what a round costs, or run one round when asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--round", nargs=3, type=int, metavar=("WAITING", "NODES", "SEED"))
    parser.add_argument("--one-by-one", action="store_true", help="the way without arrays, too")
    parser.add_argument("--json", action="store_true", help="one document instead of a table")
    options = parser.parse_args()
    if options.round:
        waiting, nodes, seed = options.round
        made = one_round(Size(waiting, nodes), seed, one_by_one=options.one_by_one)
        print(json.dumps(asdict(made)))
        return
    rows = list(measure(Path()))
    if options.one_by_one:
        slow = in_its_own_process(SMALL, SEEDS[0], one_by_one=True)
        rows.append(("the same without arrays, 1000 on 100", [slow.cpu_s], "CPU s", 0.0, True))
    if options.json:
        keys = ("name", "samples", "unit", "bar", "more_is_better")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows]))
        return
    print(f"{len(SHAPES)} shapes of nodes, filled to a random part; seeds {SEEDS}")
    for name, samples, unit, bar, _ in rows:
        middle = sorted(samples)[len(samples) // 2]
        spread = f"{min(samples):.3f} to {max(samples):.3f}"
        print(f"{name:<62} {middle:9.3f} {unit:<6} bar {bar:g}   ({spread})")


if __name__ == "__main__":
    main()
