"""How much of the openb cluster's GPUs each policy fills, beside published figures and a bound.

    python tests/benchmarks/openb.py [--traces default,cpu100] [--seeds 42-51] [--json]

Pods come one at a time, are placed for good or refused, and never leave. Exit code 1 when the
whale fills less than FGD's authors published for FGD, 2 when the traces are not there.
"""

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
# Arrays are small here; more threads only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import openb_trace

from cloudwhale import plugins
from cloudwhale.simulation.filling import Asked, fill, mix_of
from cloudwhale.simulation.filling_bound import most_allocated_milli
from cloudwhale.simulation.traces.pods import capacity_milli, shuffled, until, workload
from cloudwhale.spi.filling import Filling
from cloudwhale_policies.filling.whale import Weights, Whale

PERCENTS = (100, 130)
POLICIES = ("whale", "fgd", "best-fit", "dot-product")
PUBLISHED = {"fgd": "FGD", "best-fit": "BestFit", "dot-product": "DotProd"}
"""Policies by the name under which their authors published."""

WHOLE = Weights()
ABLATED: dict[str, Weights] = {
    "whale": WHOLE,
    "without fragmentation": replace(WHOLE, fragmentation=0.0),
    "without waste": replace(WHOLE, waste=0.0),
    "without prices": replace(WHOLE, price=0.0),
}


@dataclass(frozen=True, slots=True)
class Result:
    """One policy on one trace, over all seeds."""

    trace: str
    policy: str
    percents: dict[int, list[float]]
    """Allocated percent of the cluster's GPUs by percent arrived, one per seed."""
    classes: dict[str, Asked]
    """Pods of each class, over all seeds, until 130 % had arrived."""
    study_s: float
    """CPU seconds of one core, like the next: other processes do not lengthen them."""
    run_s: float
    """Mean over the seeds."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one process does."""

    trace: str
    policy: str
    seeds: tuple[int, ...]


def filling(policy: str) -> Filling:
    """Return a policy by its name, a whale without one of its terms among them."""
    if policy in ABLATED:
        return Whale(ABLATED[policy])
    made: Callable[[], Filling] = plugins.load(plugins.FILLINGS, policy)
    return made()


def played(task: Task) -> Result:
    """Study once, then fill the cluster once per seed."""
    cluster, listed = openb_trace.nodes(), openb_trace.pods(task.trace)
    capacity = capacity_milli(cluster)
    began = time.process_time()
    rule = filling(task.policy).study([node.shape for node in cluster], mix_of(listed))
    studied = time.process_time()
    percents: dict[int, list[float]] = {percent: [] for percent in PERCENTS}
    classes: dict[str, Asked] = {}
    for seed in task.seeds:
        drawn = workload(listed, capacity, seed)
        filled = fill(shuffled(cluster, seed), drawn, rule)
        for percent in PERCENTS:
            percents[percent].append(filled.at(percent))
        classes = _added(classes, filled.classes)
    run_s = (time.process_time() - studied) / len(task.seeds)
    return Result(task.trace, task.policy, percents, classes, studied - began, run_s)


def bounded(task: Task) -> Result:
    """Return what no policy could exceed once so many percent have arrived."""
    cluster, listed = openb_trace.nodes(), openb_trace.pods(task.trace)
    capacity = capacity_milli(cluster)
    percents: dict[int, list[float]] = {percent: [] for percent in PERCENTS}
    began = time.process_time()
    for seed in task.seeds:
        drawn = workload(listed, capacity, seed)
        for percent in PERCENTS:
            most = most_allocated_milli(cluster, until(drawn, capacity, percent))
            percents[percent].append(100.0 * most / capacity)
    run_s = (time.process_time() - began) / len(task.seeds)
    return Result(task.trace, "bound", percents, {}, 0.0, run_s)


def done(task: Task) -> Result:
    """Do a task, in whichever process."""
    return bounded(task) if task.policy == "bound" else played(task)


def _added(first: dict[str, Asked], second: dict[str, Asked]) -> dict[str, Asked]:
    zero = Asked(0, 0, 0, 0)
    return {
        name: Asked(
            *(
                getattr(first.get(name, zero), field) + getattr(second.get(name, zero), field)
                for field in ("pods", "refused", "gpu_milli", "refused_gpu_milli")
            )
        )
        for name in sorted(first.keys() | second.keys())
    }


def as_text(results: Sequence[Result]) -> str:
    """Return the table, then who was refused."""
    lines = [
        f"{'trace':<12}{'policy':<24}{'at 100 %':>10}{'sd':>6}{'published':>11}"
        f"{'at 130 %':>10}{'sd':>6}{'published':>11}{'study s':>9}{'run s':>7}"
    ]
    figures = {name: openb_trace.published(column) for name, column in PUBLISHED.items()}
    for result in results:
        cells = ""
        for percent in PERCENTS:
            values = result.percents[percent]
            known = figures.get(result.policy, {}).get((result.trace, percent), math.nan)
            said = "-" if math.isnan(known) else f"{known:.2f}"
            cells += f"{statistics.fmean(values):>10.2f}{_sd(values):>6.2f}{said:>11}"
        lines.append(
            f"{result.trace:<12}{result.policy:<24}{cells}{result.study_s:>9.1f}{result.run_s:>7.2f}"
        )
    lines.append("refused pods of each class when 130 % have arrived (*: only some models will do)")
    for result in results:
        refused = "  ".join(
            f"{name} {100 * asked.refused / asked.pods:.1f} %"
            for name, asked in result.classes.items()
        )
        if refused:
            lines.append(f"{result.trace:<12}{result.policy:<24}{refused}")
    return "\n".join(lines)


def _sd(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def as_json(results: Sequence[Result]) -> str:
    """Return everything as one document."""
    return json.dumps({"results": [asdict(each) for each in results]}, indent=1)


def is_won(results: Sequence[Result]) -> bool:
    """Say whether the whale is above what was published for FGD on every trace."""
    figures = openb_trace.published("FGD")
    return all(
        statistics.fmean(each.percents[100]) > figures[each.trace, 100]
        for each in results
        if each.policy == "whale"
    )


def seeds_of(said: str) -> tuple[int, ...]:
    """Return the seeds of `42-51` or `42,45`."""
    first, dash, last = said.partition("-")
    if dash:
        return tuple(range(int(first), int(last) + 1))
    return tuple(int(seed) for seed in said.split(","))


def main() -> int:
    """Play what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--traces", default=",".join(openb_trace.TRACES), help="default: all five")
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("42-51"), help="42-51 or 42,45")
    parser.add_argument("--policies", default=",".join(POLICIES), help="default: all four")
    parser.add_argument(
        "--ablation", action="store_true", help="instead, the whale without each of its terms"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one document instead of a table")
    options = parser.parse_args()
    if openb_trace.missing():
        print(openb_trace.missing(), file=sys.stderr)
        return 2
    policies = tuple(ABLATED) if options.ablation else (*options.policies.split(","), "bound")
    tasks = [
        Task(trace, policy, options.seeds)
        for trace in options.traces.split(",")
        for policy in policies
    ]
    with ProcessPoolExecutor(options.processes) as pool:
        results = list(pool.map(done, tasks))
    print(as_json(results) if options.json else as_text(results))
    return 0 if is_won(results) else 1


if __name__ == "__main__":
    sys.exit(main())
