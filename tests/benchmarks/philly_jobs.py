"""Jobs for the pool: windows of the Philly trace, heavy-tailed ones, and how they are played."""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import philly_pool as pool

from cloudwhale.control.controller import Chosen
from cloudwhale.control.desk import policies
from cloudwhale.model.job import CheckpointRule, GpuRequest, JobSpec, Resources
from cloudwhale.model.node import Device, Facts, Node, NodeState
from cloudwhale.settings import Settings
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.playing import Arrival, Played, Setting, play
from cloudwhale.simulation.traces import named
from cloudwhale.simulation.traces.reading import Reading, read

LONGEST_S = 2e6
WIDTHS = ((1, 2, 4, 8, 16, 32), (0.7, 0.1, 0.08, 0.08, 0.03, 0.01))
"""About the sizes of Philly's jobs and how often each comes."""

PLAIN = {"hold": False, "reserve": False, "preempt": False, "score": "first-fit"}
STOPS = {**PLAIN, "preempt": True, "preempt_after_s": 0.0, "restart_s": 0.0}

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "fifo": {**PLAIN, "order": "fifo", "strict": True},
    "fit-first": {**PLAIN, "order": "fifo"},
    "easy-backfill": {**PLAIN, "order": "fifo", "wait": "easy"},
    "sjf": {**PLAIN, "order": "sjf"},
    "sgf": {**PLAIN, "order": "sgf"},
    "srtf": {**STOPS, "order": "srtf"},
    "srsf": {**STOPS, "order": "srsf"},
    "srsf+restart": {**STOPS, "order": "srsf"},
    "las": {**STOPS, "order": "las"},
    "whale": {**PLAIN, "order": "whale", "reserve": True},
    "whale-displacing+restart": {
        **STOPS, "order": "whale", "reserve": True, "displace": True, "restart_s": 300.0,
    },
}  # fmt: skip
"""The policies of the table in the settings of the product."""


def philly(count: int, skip: int, cap: int) -> list[pool.Job]:
    """Return a window of the trace; raise TraceError where it is not there, or bad.

    `skip`: jobs before the first one. `cap`: jobs of more GPUs are left out.
    """
    arrivals = read(named.file_of("philly"), Reading(most=None)).arrivals[skip:]
    found = [(one.at, one.work_s, one.spec.resources.gpu.count) for one in arrivals]
    return [job for job in found if job[2] <= cap][:count]


def synthetic(seed: int, count: int, gpus: int, load: float = 1.05) -> list[pool.Job]:
    """Return jobs with log-normal lengths (a thousandth is 500 times the median) that fill a pool.

    `load`: the GPUs that they ask for while they arrive, as a part of the pool.
    """
    dice = random.Random(f"heavy-{seed}")
    lengths_s = [min(LONGEST_S, math.exp(dice.gauss(7.0, 2.0))) for _ in range(count)]
    widths = dice.choices(*WIDTHS, k=count)
    work_s = sum(s * wide for s, wide in zip(lengths_s, widths, strict=True))
    at, found = 0.0, list[pool.Job]()
    for length_s, wide in zip(lengths_s, widths, strict=True):
        at += dice.expovariate(load * gpus * count / work_s)
        found.append((at, length_s, wide))
    return found


def played(policy: str, jobs: Sequence[pool.Job], gpus: int, restart_s: float) -> list[pool.Task]:
    """Return what the house makes of the jobs, in the words of the pool."""
    found = the_play(policy, jobs, gpus, restart_s)
    tasks: list[pool.Task] = []
    for number, (at, length_s, wide) in enumerate(jobs):
        one = found.jobs[_name(number)]
        assert one.completion_s is not None, f"{_name(number)} did not end"
        tasks.append(
            pool.Task(
                number, at, length_s, wide, began=one.job.first_started_at,
                ended=at + one.completion_s, stops=one.preemptions,
            )
        )  # fmt: skip
    return tasks


def the_play(policy: str, jobs: Sequence[pool.Job], gpus: int, restart_s: float) -> Played:
    """Play the jobs on one node that has all the GPUs.

    Its machines start and stop at once; a job that goes on first spends `restart_s`.
    """
    settings = Settings.model_validate({"home": "/nowhere", **SETTINGS[policy]})
    chosen = Chosen(policies(settings), order=settings.order, score=settings.score)
    physics = Physics(neighbour=1.0, start_s=0.0, restore_s=restart_s, stop_s=0.0)
    return play(Setting([a_pool(gpus)], arrivals(jobs), physics, at_most_s=math.inf), chosen)


def a_pool(gpus: int) -> Node:
    """Return one node with so many GPUs, and more of all else than jobs ask for."""
    devices = tuple(Device(id=f"g{k:04}", model="V100-16GB", memory_gib=16.0) for k in range(gpus))
    facts = Facts(cpu=1e6, memory_gib=1e9, disk_gib=1e9, devices=devices)
    return Node(id="pool", state=NodeState.READY, facts=facts)


def arrivals(jobs: Sequence[pool.Job]) -> list[Arrival]:
    """Return the jobs as a play wants them: lengths known, and saved when they are stopped."""
    return [
        Arrival(at, _name(number), _spec(length_s, wide), length_s)
        for number, (at, length_s, wide) in enumerate(jobs)
    ]


def _name(number: int) -> str:
    return f"j{number:05}"


def _spec(length_s: float, wide: int) -> JobSpec:
    return JobSpec(
        name="job", command="true", duration_s=length_s,
        resources=Resources(cpu=0.001, gpu=GpuRequest(count=wide)),
        checkpoint=CheckpointRule(every_s=1e9),
    )  # fmt: skip
