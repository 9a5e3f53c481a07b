"""Completion and waits on the Philly trace: the published schedulers, the whale, and the bound.

    python tests/benchmarks/philly.py [--jobs 6000] [--gpus 480 376] [--window 0] [--cap 64]
        [--policies fifo,sgf,whale] [--played] [--synthetic SEED] [--restart 300] [--json]

Rigid jobs of whole GPUs (Jeon et al., ATC'19; 54,890 jobs, 60 days) in a pool of equal ones, exact
run times. The table is made by a pool that knows counts of GPUs alone (`philly_pool`); with
`--played` the same jobs go through the house's own planner, checker and store as well (one node
with all the GPUs), which takes as long as it takes. The trace is looked up in $CLOUDWHALE_TRACES.

    completion    from a job's arrival to its end, mean over the jobs
    wait          a job's time without GPUs, before its start and while it is stopped: p99, longest
    took          CPU seconds, which other processes do not lengthen
    stops         how often somebody was stopped; each costs `--restart` seconds on its GPUs where
                  the name ends in `+restart`, and nothing elsewhere
    reference     what another small simulator of the same policies came to, first 6,000 jobs
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import philly_jobs
import philly_pool as pool
from philly_figures import bound_s, figures

from cloudwhale.model.job import JobSpec
from cloudwhale.planning import aging
from cloudwhale.planning.preempting import PAYS
from cloudwhale.simulation.traces.rows import TraceError
from cloudwhale.spi.policy import priority_class
from cloudwhale_policies import whale_order

NORMAL = aging.PATIENCE[priority_class(JobSpec.model_fields["priority"].default)]
LIMITS = pool.FollowsLoad(
    large=(NORMAL * aging.LARGE, NORMAL * aging.LARGE_WAITS),
    small=(NORMAL * aging.SMALL, NORMAL * aging.SMALL_WAITS),
    large_from=aging.LARGE_FROM, least_s=NORMAL * aging.LEAST_S, most_s=NORMAL * aging.MOST_S,
)  # fmt: skip
"""The limits of the house for jobs of the priority that a file has which does not say one."""

WHALES: Mapping[str, Callable[[], pool.Rule]] = {
    "whale": lambda: pool.LeastWork(
        lambda task: task.work, reserve=True, limit=LIMITS, age=whale_order.AGE
    ),
    "whale-displacing+restart": lambda: pool.Displacing(
        lambda task: task.work, keep=PAYS, limit=LIMITS
    ),
}
"""The rule of the whale order where all jobs are of one class and project and places are alike.

Who displaces others is ranked by work alone, without age.
"""

RULES: Mapping[str, Callable[[], pool.Rule]] = {
    **pool.RULES,
    "srsf+restart": pool.RULES["srsf"],
    **WHALES,
}

REFERENCE: Mapping[int, Mapping[str, tuple[int, int, int]]] = {
    480: {
        "fifo": (286571, 416133, 426283), "fit-first": (144944, 353370, 684365),
        "easy-backfill": (206559, 380551, 430013), "sjf": (49345, 381600, 766397),
        "sgf": (42357, 296157, 762573), "srtf": (39908, 327313, 735636),
        "srsf": (36133, 35415, 843932), "las": (50535, 379505, 432987),
    },
    376: {
        "fifo": (543335, 803002, 806010), "fit-first": (380843, 654856, 1261154),
        "easy-backfill": (479342, 705782, 810367), "sjf": (210898, 632558, 1246000),
        "sgf": (206135, 510307, 1254118), "srtf": (45617, 613293, 1164291),
        "srsf": (39369, 211901, 1301524), "las": (68808, 714807, 801721),
    },
}  # fmt: skip
"""Mean completion, p99 and longest wait in seconds of an independent simulator, by GPUs."""

BARS: Mapping[str, tuple[float, float, float]] = {
    "whale": (43_000, 296_157, 500_000),
    "whale-displacing+restart": (39_000, float("inf"), 600_000),
}
"""What must be reached on 480 GPUs with the first 6,000 jobs."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one policy came to."""

    policy: str
    gpus: int
    by: str
    """`pool`, or `planner`: the house itself."""
    completion_s: float
    wait_p99_s: float
    wait_max_s: float
    makespan_s: float
    stops: int
    took_s: float
    reference: tuple[int, int, int] | None = None


def row(policy: str, jobs: Sequence[pool.Job], gpus: int, restart_s: float) -> Row:
    """Return what a policy comes to in the pool."""
    began = time.process_time()
    cost_s = restart_s if policy.endswith("+restart") else 0.0
    found = figures(pool.play(jobs, gpus, RULES[policy](), cost_s))
    return Row(policy, gpus, "pool", **asdict(found), took_s=time.process_time() - began)


def played(policy: str, jobs: Sequence[pool.Job], gpus: int, restart_s: float) -> Row:
    """Return what the house's planner makes of the same jobs."""
    began = time.process_time()
    cost_s = restart_s if policy.endswith("+restart") else 0.0
    found = figures(philly_jobs.played(policy, jobs, gpus, cost_s))
    return Row(policy, gpus, "planner", **asdict(found), took_s=time.process_time() - began)


def rows(options: argparse.Namespace, jobs: Sequence[pool.Job]) -> list[Row]:
    """Return every row that was asked for."""
    is_known = options.jobs == 6000 and options.window == 0 and options.synthetic is None
    found: list[Row] = []
    for gpus in options.gpus:
        for policy in options.policies:
            one = row(policy, jobs, gpus, options.restart)
            known = REFERENCE.get(gpus, {}).get(policy) if is_known else None
            found.append(replace(one, reference=known))
            if options.played and policy in philly_jobs.SETTINGS:
                found.append(played(policy, jobs, gpus, options.restart))
    return found


def within(found: Sequence[Row]) -> bool:
    """Say whether the bars are met by all rows that have one."""
    return all(
        one.completion_s <= bar[0] and one.wait_p99_s <= bar[1] and one.wait_max_s <= bar[2]
        for one in found
        if one.gpus == 480 and one.by == "pool" and (bar := BARS.get(one.policy)) is not None
    )


def as_text(found: Sequence[Row], jobs: Sequence[pool.Job], says: str) -> str:
    """Return the table."""
    load = sum(length_s * wide for _, length_s, wide in jobs) / (jobs[-1][0] - jobs[0][0])
    lines = [f"{len(jobs)} jobs of {says}; they ask for {load:.0f} GPUs on average"]
    for gpus in dict.fromkeys(one.gpus for one in found):
        bound = bound_s(jobs, gpus)
        lines.append(f"{gpus} GPUs; no schedule's mean completion is below {bound:.0f} s")
        lines.append(f"{'':<28}{'completion':>11}{'p99 wait':>10}{'longest':>10}{'stops':>7}"
                     f"{'took':>8}   reference")  # fmt: skip
        for one in (one for one in found if one.gpus == gpus):
            name = one.policy if one.by == "pool" else f"  {one.by}"
            known = "" if one.reference is None else " / ".join(map(str, one.reference))
            lines.append(
                f"{name:<28}{one.completion_s:>11.0f}{one.wait_p99_s:>10.0f}"
                f"{one.wait_max_s:>10.0f}{one.stops:>7}{one.took_s:>6.1f} s   {known}"
            )
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return "\n".join([*lines, f"peak memory {peak_mib:.0f} MiB"])


def _named(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in RULES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(RULES)}")
    return names


def main() -> int:
    """Print the table; 1 when the whale misses its bars on the first 6,000 jobs and 480 GPUs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=6000, help="how many; default 6000")
    parser.add_argument("--gpus", type=int, nargs="+", default=[480, 376], help="sizes of the pool")
    parser.add_argument("--window", type=int, default=0, help="jobs to skip before the first")
    parser.add_argument("--cap", type=int, default=64, help="jobs of more GPUs are left out")
    parser.add_argument(
        "--policies", type=_named, default=list(RULES), help=f"some of {','.join(RULES)}",
    )  # fmt: skip
    parser.add_argument("--played", action="store_true", help="by the house's planner as well")
    parser.add_argument("--synthetic", type=int, help="a heavy-tailed trace of this seed instead")
    parser.add_argument("--restart", type=float, default=300.0, help="seconds; default 300")
    parser.add_argument("--json", action="store_true", help="one document instead of a table")
    options = parser.parse_args()
    try:
        jobs, says = _jobs(options)
    except TraceError as fault:
        print(fault, file=sys.stderr)
        return 2
    found = rows(options, jobs)
    if options.json:
        bounds = {gpus: bound_s(jobs, gpus) for gpus in options.gpus}
        print(json.dumps({"rows": [asdict(one) for one in found], "bound_s": bounds}, indent=1))
    else:
        print(as_text(found, jobs, says))
    is_the_bar = options.jobs == 6000 and options.window == 0 and options.synthetic is None
    return 0 if within(found) or not is_the_bar else 1


def _jobs(options: argparse.Namespace) -> tuple[Sequence[pool.Job], str]:
    if options.synthetic is not None:
        made = philly_jobs.synthetic(options.synthetic, options.jobs, options.gpus[0])
        return made, f"a heavy-tailed trace, seed {options.synthetic}"
    read = philly_jobs.philly(options.jobs, options.window, options.cap)
    return read, f"philly from number {options.window}"


if __name__ == "__main__":
    sys.exit(main())
