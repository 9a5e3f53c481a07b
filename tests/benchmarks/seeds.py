"""The seed's comparison: the Whale match against first come first served and priority order.

    python tests/benchmarks/seeds.py [--seeds 20] [--noise 2] [--json] [--picture FILE]

Over each seed 200 mixed jobs (training, fine-tuning, inference; shares and memory of GPUs; three
priorities) arrive within hours at four small nodes. Every contestant is played by the house's
own planner, checker and store; only the machines are pretended (cloudwhale/simulation/playing).

    completion    from a job's arrival to its end, mean over the jobs
    longest wait  the longest time that one job held no place, before its start or after it gave way
    utilisation   share-seconds that jobs held on all devices, of the seconds from the first arrival
                  to the end of the last job

Exit code 1 when whale does not win all three against both orders, the interval over the seeds
included.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import intervals
import mix

from cloudwhale.control.controller import Chosen
from cloudwhale.control.desk import policies
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.plan import Plan
from cloudwhale.model.world import World
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.settings import Settings
from cloudwhale.simulation.playing import Decide, Played, Setting, play

PLAIN = {"hold": False, "reserve": False, "preempt": False}
"""What plain schedulers do not do."""

CONTESTANTS: Mapping[str, Mapping[str, object]] = {
    "fifo": {"order": "fifo", "score": "best-fit", **PLAIN},
    "fifo, others pass": {"order": "fifo", "score": "best-fit", **PLAIN},
    "priority": {"order": "priority", "score": "best-fit", **PLAIN},
    "priority, others pass": {"order": "priority", "score": "best-fit", **PLAIN},
    "whale": {"order": "whale", "score": "whale"},
}
STRICT: Mapping[str, Callable[[Job], tuple[object, ...]]] = {
    "fifo": lambda job: (job.submitted_at, job.id),
    "priority": lambda job: (-job.spec.priority, job.submitted_at, job.id),
}
"""Those in which nobody passes a job that does not fit yet, and who stands at the head."""

RIVALS = ("fifo", "priority")
METRICS = ("completion_s", "utilisation", "longest_wait_s")
MORE_IS_BETTER = ("utilisation",)


@dataclass(frozen=True, slots=True)
class Result:
    """What one contestant came to on one seed."""

    contestant: str
    seed: int
    completion_s: float
    utilisation: float
    longest_wait_s: float
    makespan_s: float
    preemptions: int
    completed: int


def chosen(contestant: str) -> Chosen:
    """Return the contestant's policies, as the settings of the product make them."""
    settings = Settings.model_validate({"home": "/nowhere", **CONTESTANTS[contestant]})
    return Chosen(policies(settings), order=settings.order, score=settings.score)


def strictly(key: Callable[[Job], tuple[object, ...]], of: Policies, world: World) -> Plan:
    """Plan for the job at the head of the queue alone: who does not fit blocks all others."""
    waiting = [job for job in world.jobs.values() if job.state is JobState.PENDING]
    behind = {job.id for job in sorted(waiting, key=key)[1:]}
    jobs = {name: job for name, job in world.jobs.items() if name not in behind}
    return plan(replace(world, jobs=jobs), of)


def played(contestant: str, seed: int, noise: float) -> Played:
    """Play one contestant on one seed."""
    who = chosen(contestant)
    decide: Decide | None = None
    if contestant in STRICT:
        decide = partial(strictly, STRICT[contestant], who.policies)
    return play(Setting(mix.nodes(), mix.arrivals(seed, noise)), who, decide)


def result(contestant: str, seed: int, noise: float) -> Result:
    """Return what one contestant comes to on one seed."""
    found = played(contestant, seed, noise)
    jobs = list(found.jobs.values())
    done = [job.completion_s for job in jobs if job.completion_s is not None]
    use = found.device_use(mix.nodes())
    return Result(
        contestant=contestant,
        seed=seed,
        completion_s=sum(done) / len(done),
        utilisation=sum(use.values()) / len(use),
        longest_wait_s=max(job.wait_s for job in jobs),
        makespan_s=found.ended_at - found.began_at,
        preemptions=sum(job.preemptions for job in jobs),
        completed=len(done),
    )


def compared(results: Sequence[Result], rival: str) -> Mapping[str, intervals.Interval]:
    """Return how much better whale is than a rival, by metric, as fractions of the rival's mean."""
    ours = {each.seed: each for each in results if each.contestant == "whale"}
    theirs = {each.seed: each for each in results if each.contestant == rival}
    gains: dict[str, intervals.Interval] = {}
    for metric in METRICS:
        sign = 1 if metric in MORE_IS_BETTER else -1
        pairs = [
            (float(getattr(theirs[seed], metric)), float(getattr(ours[seed], metric)))
            for seed in sorted(ours)
        ]
        gains[metric] = intervals.gain(pairs, sign)
    return gains


def is_won(results: Sequence[Result]) -> bool:
    """Say whether whale wins all three against both orders, the whole interval above zero."""
    return all(
        gain.low > 0 for rival in RIVALS for gain in compared(results, rival).values()
    ) and all(each.completed == mix.JOBS for each in results)


def main() -> int:
    """Play what was asked for, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=20, help="how many; default 20")
    parser.add_argument(
        "--noise", type=float, default=mix.NOISE,
        help="files say lengths that are off by up to this factor; default 2",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one document instead of a table")
    parser.add_argument("--picture", type=Path, help="draw the comparison into this PNG")
    options = parser.parse_args()
    todo = [(name, seed) for seed in range(options.seeds) for name in CONTESTANTS]
    with ProcessPoolExecutor() as pool:
        results = list(
            pool.map(
                result, [n for n, _ in todo], [s for _, s in todo], [options.noise] * len(todo)
            )
        )
    print(as_json(results) if options.json else as_text(results, options.noise))
    if options.picture is not None:
        import seeds_picture

        seeds_picture.draw(results, options.picture)
    return 0 if is_won(results) else 1


def as_json(results: Sequence[Result]) -> str:
    """Return everything as one document; gains are fractions of the rival's mean."""
    rivals = [name for name in CONTESTANTS if name != "whale"]
    gains = {
        rival: {metric: asdict(gain) for metric, gain in compared(results, rival).items()}
        for rival in rivals
    }
    return json.dumps({"results": [asdict(each) for each in results], "gains": gains}, indent=1)


def as_text(results: Sequence[Result], noise: float) -> str:
    """Return the table: means over the seeds, and what whale gains with its 95 % interval."""
    seeds = {each.seed for each in results}
    busy = sum(mix.load(mix.arrivals(seed)) for seed in seeds) / len(seeds)
    lines = [
        f"{mix.JOBS} jobs on 4 nodes with 6 GPUs, {len(seeds)} seeds, arrivals over "
        f"{mix.HOURS:g} h, load {busy:.2f}, lengths off by up to {noise:g}x",
        f"{'':<24}{'completion':>12}{'utilisation':>13}{'longest wait':>14}{'gave way':>10}",
    ]
    for name in CONTESTANTS:
        mine = [each for each in results if each.contestant == name]
        lines.append(
            f"{name:<24}{_mean(mine, 'completion_s') / 60:>8.1f} min"
            f"{100 * _mean(mine, 'utilisation'):>11.1f} %"
            f"{_mean(mine, 'longest_wait_s') / 3600:>12.2f} h{_mean(mine, 'preemptions'):>10.1f}"
        )
    lines.append("whale is better by, with the 95 % interval over the seeds:")
    for rival in [name for name in CONTESTANTS if name != "whale"]:
        gains = compared(results, rival)
        each = "".join(f"{_percent(gains[metric]):>26}" for metric in METRICS)
        lines.append(f"  than {rival:<22}{each}")
    return "\n".join(lines)


def _mean(results: Sequence[Result], metric: str) -> float:
    return sum(float(getattr(each, metric)) for each in results) / len(results)


def _percent(gain: intervals.Interval) -> str:
    return f"{100 * gain.middle:+.1f} % ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"


if __name__ == "__main__":
    sys.exit(main())
