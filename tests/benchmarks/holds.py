"""Whether holds pay: the same arrivals with and without them, lengths off by two or three.

    python tests/benchmarks/holds.py [--seeds 20] [--noise 3] [--order whale] [--score whale]

Two nodes with fast GPUs and two with slow ones; training jobs come at half, at three quarters and
at all of what the nodes can do. For each seed and load the play is made twice, and the regret of
holds is the mean completion time with them minus the one without, as a part of the latter. It must
be at most 0 on average over the seeds. Exit code 1 when it is not.
"""

import argparse
import json
import math
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import intervals

from cloudwhale.control.controller import Chosen
from cloudwhale.control.desk import policies
from cloudwhale.model import event as e
from cloudwhale.model.gpus import MODELS, speed
from cloudwhale.model.job import GpuRequest, JobSpec, Resources
from cloudwhale.model.node import Device, Facts, Node, NodeState
from cloudwhale.settings import Settings
from cloudwhale.simulation.playing import Arrival, Setting, play

REFERENCE, FAST, SLOW = "A100-80GB", "A100-80GB", "A10G"
JOBS = 60
MIDDLE_S = 1800.0
SPREAD = 0.7  # sigma of the log of run times
LOADS = (0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Case:
    """One play."""

    seed: int
    load: float
    noise: float
    hold: bool
    order: str
    score: str


@dataclass(frozen=True, slots=True)
class Result:
    """What it came to."""

    completion_s: float
    held: int
    """Holds that were begun."""


def nodes() -> list[Node]:
    """Return two nodes with one fast GPU each and two with two slow ones."""
    return [
        _node("fast-1", FAST, 1), _node("fast-2", FAST, 1),
        _node("slow-1", SLOW, 2), _node("slow-2", SLOW, 2),
    ]  # fmt: skip


def _node(name: str, model: str, count: int) -> Node:
    devices = tuple(
        Device(id=f"{name}-{n}", model=model, memory_gib=MODELS[model].memory_gib)
        for n in range(count)
    )
    facts = Facts(cpu=16, memory_gib=128, disk_gib=1000, devices=devices)
    return Node(id=name, state=NodeState.READY, facts=facts)


def arrivals(seed: int, load: float, noise: float) -> list[Arrival]:
    """Return the jobs of one seed; what their files say is off by up to `noise`, either way."""
    dice = random.Random(f"holds-{seed}")
    speeds = [speed(d.model, REFERENCE) or 0.0 for n in nodes() for d in n.facts.devices]
    mean_s = MIDDLE_S * math.exp(SPREAD**2 / 2)
    gap_s = mean_s / sum(speeds) / load
    found: list[Arrival] = []
    at = 0.0
    for number in range(JOBS):
        at += dice.expovariate(1.0) * gap_s
        work_s = MIDDLE_S * math.exp(dice.gauss(0.0, SPREAD))
        said_s = work_s * math.exp(dice.uniform(-1, 1) * math.log(noise))
        spec = JobSpec(
            name="training", command="true", reference=REFERENCE, duration_s=said_s,
            resources=Resources(cpu=2, gpu=GpuRequest(count=1)),
        )  # fmt: skip
        found.append(Arrival(at, f"job-{number:03}", spec, work_s))
    return found


def result(case: Case) -> Result:
    """Play one case."""
    settings = Settings.model_validate(
        {"home": "/nowhere", "order": case.order, "score": case.score, "hold": case.hold}
    )
    setting = Setting(nodes(), arrivals(case.seed, case.load, case.noise))
    found = play(setting, Chosen(policies(settings), case.order, case.score))
    done = [j.completion_s for j in found.jobs.values() if j.completion_s is not None]
    told = (each.event for job in found.jobs for each in found.store.events(job))
    held = sum(isinstance(event, e.Held) for event in told)
    return Result(sum(done) / len(done), held)


@dataclass(frozen=True, slots=True)
class Regret:
    """What holds cost at one load, as a part of the completion time without them."""

    load: float
    regret: intervals.Interval
    held: float
    """Holds a play."""


def regrets(options: argparse.Namespace) -> list[Regret]:
    """Play everything and compare, load by load, and all together (load 0)."""
    cases = [
        Case(seed, load, options.noise, hold, options.order, options.score)
        for load in LOADS for seed in range(options.seeds) for hold in (False, True)
    ]  # fmt: skip
    with ProcessPoolExecutor() as pool:
        results = dict(zip(cases, pool.map(result, cases), strict=True))
    return [_regret(results, load) for load in (*LOADS, 0.0)]


def _regret(results: dict[Case, Result], load: float) -> Regret:
    mine = [case for case in results if case.hold and load in (case.load, 0.0)]
    pairs: list[tuple[float, float]] = []
    for case in mine:
        without = Case(case.seed, case.load, case.noise, False, case.order, case.score)
        pairs.append((results[without].completion_s, results[case].completion_s))
    held = sum(results[case].held for case in mine) / len(mine)
    return Regret(load, intervals.gain(pairs), held)


def as_text(found: Sequence[Regret], options: argparse.Namespace) -> str:
    """Return the table."""
    lines = [
        f"{JOBS} jobs on 2 fast and 4 slow GPUs, {options.seeds} seeds, lengths off by up to "
        f"{options.noise:g}x, order {options.order}, score {options.score}",
        "load      holds a play   completion with holds against without (95 % interval)",
    ]
    for each in found:
        name = f"{each.load:<10g}" if each.load else f"{'all':<10}"
        low, high = 100 * each.regret.low, 100 * each.regret.high
        lines.append(
            f"{name}{each.held:>12.1f}   {100 * each.regret.middle:>+10.2f} % "
            f"({low:+.2f} to {high:+.2f})"
        )
    return "\n".join(lines)


def main() -> int:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--noise", type=float, default=3.0)
    parser.add_argument("--order", default="whale")
    parser.add_argument("--score", default="whale")
    parser.add_argument("--json", action="store_true", help="one document instead of a table")
    options = parser.parse_args()
    found = regrets(options)
    if options.json:
        print(json.dumps([asdict(each) for each in found], indent=1))
    else:
        print(as_text(found, options))
    return 0 if found[-1].regret.middle <= 0 else 1


if __name__ == "__main__":
    sys.exit(main())
