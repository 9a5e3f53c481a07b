"""Worlds that a match is measured on: many shapes of nodes, thousands of distinct demands."""

import random
from dataclasses import dataclass, replace

from cloudwhale.model.job import (
    GpuRequest,
    Job,
    JobSpec,
    JobState,
    Placement,
    Resources,
    Span,
)
from cloudwhale.model.node import Device, Facts, Node, NodeState
from cloudwhale.model.reason import Refusal
from cloudwhale.model.world import World
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import free_capacity

NOW = 1_800_000_000.0

CARDS = {
    "RTX3090": 24.0, "RTX4090": 24.0, "L4": 24.0, "A10G": 24.0, "A100-40GB": 40.0,
    "A100-80GB": 80.0, "L40S": 48.0, "H100-80GB": 80.0,
}  # fmt: skip

SHAPES = [(card, count, 16.0 * count) for card in CARDS for count in (1, 2, 4, 8)]
"""32 shapes: card, how many, CPUs; 8 GiB of memory for each CPU."""


DEMANDS = 4000
"""So many kinds of jobs; a few of them want the same."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a world is."""

    waiting: int
    nodes: int


def a_big_world(size: Size, seed: int) -> World:
    """Make a world of nodes that are filled to a random part, and jobs that wait."""
    draw = random.Random(seed)
    nodes = [_node(number, draw) for number in range(size.nodes)]
    world = World(version=1, now=NOW, seed=seed, nodes={node.id: node for node in nodes}, jobs={})
    running = _filled(nodes, draw)
    kinds = [_spec(f"kind-{number:04}", draw) for number in range(DEMANDS)]
    waiting = [
        _of(f"job-{number:05}", kinds[number] if number < DEMANDS else draw.choice(kinds), draw)
        for number in range(size.waiting)
    ]
    return replace(world, jobs={job.id: job for job in (*running, *waiting)})


def distinct_demands(world: World) -> int:
    """Return how many different demands wait."""
    return len({job.demand for job in world.jobs.values() if job.state is JobState.PENDING})


def _node(number: int, draw: random.Random) -> Node:
    card, count, cpu = SHAPES[number % len(SHAPES)]
    name = f"node-{number:04}"
    devices = tuple(
        Device(
            id=f"{name}-gpu-{n}",
            model=card,
            memory_gib=CARDS[card],
            usable_gib=CARDS[card] * 0.98,
        )
        for n in range(count)
    )
    facts = Facts(
        cpu=cpu, memory_gib=8 * cpu, disk_gib=2000.0, devices=devices,
        disk_io_mb_s=2000.0, network_mb_s=1200.0,
        labels={"rack": f"r{number % 7}"},
        runtimes=("process", "container") if draw.random() < 0.8 else ("process",),
    )  # fmt: skip
    cached = tuple(sorted(f"label:set-{draw.randrange(20)}" for _ in range(draw.randrange(4))))
    return Node(id=name, state=NodeState.READY, facts=facts, cached=cached)


def _filled(nodes: list[Node], draw: random.Random) -> list[Job]:
    """Return running jobs that fill each node up to a part of its own, drawn evenly."""
    running: list[Job] = []
    for node in nodes:
        free = free_capacity([node], [])[node.id]
        left_at = draw.random() * len(node.facts.devices)
        for _ in range(40):
            if sum(device.share for device in free.devices) <= left_at:
                break
            job = _of(f"run-{len(running):05}", _spec("running", draw), draw)
            place = fit(job.spec, free)
            if isinstance(place, Refusal):
                continue
            free = free.less(job.wants, place)
            running.append(_started(job, place, draw))
    return running


def _started(job: Job, place: Placement, draw: random.Random) -> Job:
    return job.but(
        state=JobState.RUNNING, attempt=1, placement=place, order_posted=True,
        started_at=NOW - draw.uniform(60, 7200), submitted_at=NOW - 10_000,
        placed_at=NOW - 7300,
    )  # fmt: skip


def _spec(name: str, draw: random.Random) -> JobSpec:
    count = draw.choices((0, 1, 2, 4, 8), (10, 70, 10, 6, 4))[0]
    share = draw.choice((0.1, 0.2, 0.25, 0.5, 1.0, 1.0, 1.0)) if count == 1 else 1.0
    gpu = GpuRequest(
        count=count,
        share=share,
        memory_gib=Span(least=draw.choice((0.0, 4.0, 8.0, 12.0, 16.0, 24.0, 40.0))),
        models=draw.choice(((), (), (), ("A100",), ("L4", "A10G"), ("H100-80GB",))),
    )
    resources = Resources(
        gpu=gpu,
        cpu=float(draw.choice((1, 2, 3, 4, 6, 8, 12, 16))),
        memory_gib=float(draw.choice((2, 4, 8, 16, 24, 32, 48, 64))),
        disk_gib=draw.choice((None, 10.0, 50.0, 100.0)),
        disk_io_mb_s=draw.choice((None, None, 100.0)),
    )
    return JobSpec(
        name=name, project=f"p{draw.randrange(5)}", command="true", resources=resources,
        duration_s=draw.lognormvariate(7.5, 1.2), reference=draw.choice((None, "A100-40GB")),
        priority=draw.choice((20, 50, 80)),
        affinity=draw.choice(((), (), (f"set-{draw.randrange(20)}",))),
    )  # fmt: skip


def _of(name: str, spec: JobSpec, draw: random.Random) -> Job:
    return Job(id=name, run="run-1", spec=spec, submitted_at=NOW - draw.uniform(0, 600))
