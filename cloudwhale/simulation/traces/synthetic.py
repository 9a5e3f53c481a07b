"""A made-up trace: jobs of three kinds and priorities, and four small nodes to run them on."""

import math
import random
from dataclasses import dataclass

from cloudwhale.model.gpus import MODELS, speed
from cloudwhale.model.job import CheckpointRule, GpuRequest, JobSpec, Resources, Span
from cloudwhale.model.node import Device, Facts, Node, NodeState
from cloudwhale.simulation.playing import Arrival

REFERENCE = "A100-80GB"
SPREAD = 0.8  # sigma of the log of run times: a few jobs are several times as long as the middle


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of job; ranges are drawn from uniformly."""

    name: str
    part: float
    """Of all jobs."""
    middle_s: float
    """Median run time on the reference GPU."""
    share: tuple[float, ...]
    memory_gib: tuple[float, float]
    cpu: tuple[int, int]
    priorities: tuple[tuple[int, float], ...]
    """Each with its probability."""
    save_every_s: float | None


KINDS = (
    Kind("training", 0.3, 1100, (1.0,), (12, 24), (2, 4), ((20, 0.7), (50, 0.3)), 600),
    Kind(
        "fine-tuning", 0.4, 640, (0.5, 0.6), (6, 14), (1, 3),
        ((20, 0.2), (50, 0.6), (80, 0.2)), 300,
    ),
    Kind("inference", 0.3, 240, (0.25, 0.3), (3, 8), (1, 2), ((50, 0.4), (80, 0.6)), None),
)  # fmt: skip

LARGE = 0.15
"""Part of the trainings that need a large GPU (40 GiB and more) or two at once, half each."""


@dataclass(frozen=True, slots=True)
class Mix:
    """How much of it there is."""

    jobs: int = 100
    hours: float = 6.0
    """Over which the jobs arrive; 100 jobs in 6 h are more than the four nodes keep up with."""
    noise: float = 2.0
    """What owners say of their jobs' lengths is off by up to this factor, either way."""


def small_nodes() -> list[Node]:
    """Return four small nodes: six GPUs of four models."""
    return [
        _node("desk", 16, 64, "RTX4090", 2),
        _node("big", 16, 128, "A100-80GB", 1),
        _node("lab", 12, 64, "A10G", 2),
        _node("old", 8, 32, "L4", 1),
    ]


def _node(name: str, cpu: float, memory_gib: float, model: str, count: int) -> Node:
    devices = tuple(
        Device(id=f"{name}-{n}", model=model, memory_gib=MODELS[model].memory_gib)
        for n in range(count)
    )
    facts = Facts(cpu=cpu, memory_gib=memory_gib, disk_gib=2000, devices=devices)
    return Node(id=name, state=NodeState.READY, facts=facts)


def mixed(seed: int, mix: Mix | None = None) -> list[Arrival]:
    """Return the jobs of one seed, by arrival; gaps between them are exponential."""
    mix = mix or Mix()
    dice = random.Random(f"seeds-{seed}")
    kinds = dice.choices(KINDS, [kind.part for kind in KINDS], k=mix.jobs)
    gaps = [dice.expovariate(1.0) for _ in range(mix.jobs)]
    scale = mix.hours * 3600 / sum(gaps) if gaps else 0.0
    found: list[Arrival] = []
    at = 0.0
    for number, (kind, gap) in enumerate(zip(kinds, gaps, strict=True)):
        at += gap * scale
        work_s = kind.middle_s * math.exp(dice.gauss(0.0, SPREAD))
        said_s = work_s * math.exp(dice.uniform(-1, 1) * math.log(mix.noise))
        spec = JobSpec(
            name=kind.name, command="true", reference=REFERENCE, duration_s=said_s,
            priority=_drawn(kind.priorities, dice), resources=_resources(kind, dice),
            checkpoint=None if kind.save_every_s is None
            else CheckpointRule(every_s=kind.save_every_s),
        )  # fmt: skip
        found.append(Arrival(at, f"{kind.name}-{number:03}", spec, work_s))
    return found


def _drawn(chances: tuple[tuple[int, float], ...], dice: random.Random) -> int:
    return dice.choices([each for each, _ in chances], [part for _, part in chances])[0]


def _resources(kind: Kind, dice: random.Random) -> Resources:
    gpu = GpuRequest(
        count=1,
        share=dice.choice(kind.share),
        memory_gib=Span(least=round(dice.uniform(*kind.memory_gib), 1)),
    )
    if kind.share == (1.0,) and dice.random() < LARGE:
        large = dice.random() < 0.5
        gpu = gpu.but(memory_gib=Span(least=40.0)) if large else gpu.but(count=2)
    cpu = float(dice.randint(*kind.cpu))
    return Resources(gpu=gpu, cpu=cpu, memory_gib=4.0 * cpu)


def load(jobs: list[Arrival], hours: float) -> float:
    """Return the work asked for beside what all devices could do while jobs arrive."""
    asked_s = sum(
        job.work_s * job.spec.resources.gpu.share * job.spec.resources.gpu.count for job in jobs
    )
    speeds = [speed(d.model, REFERENCE) or 0.0 for n in small_nodes() for d in n.facts.devices]
    return asked_s / (sum(speeds) * hours * 3600)
