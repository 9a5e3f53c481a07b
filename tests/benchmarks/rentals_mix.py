"""Jobs to be rented for: mixes that are drawn, the same for the same seed.

`mixed-100`, `mixed-1000`: all different. A job has no GPU (15 %), a quarter or half of one (25 %),
or 1, 2, 4 or 8 (60 %, small ones more often); 0.5 to 12 h on its reference model (log-uniform);
GPU memory, CPU, memory and disk that grow with its GPUs; in 30 % a list of models that it insists
on; in 40 % a deadline at 1.3 to 4 times its run time on the reference; in 35 % data of 5 to 300 GB
that lie in one of four regions. Only deadlines say when one must start. `classes-2000`: 2,000 jobs
of 50 classes, each drawn so.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloudwhale.model.gpus import MODELS
from cloudwhale.model.job import CheckpointRule, GpuRequest, Job, JobSpec, Resources, Span

REGIONS = ("us-east-1", "eu-west-1", "us-central1", "europe-west4")
"""Where data lie: two regions of AWS, two of GCP."""
REFERENCES = ("T4", "A10G", "L4", "L40S", "A100-40GB", "A100-80GB", "H100-80GB")
REFERENCE_ODDS = (0.15, 0.2, 0.2, 0.1, 0.15, 0.1, 0.1)
COUNTS, COUNT_ODDS = (1, 2, 4, 8), (0.5, 0.25, 0.15, 0.1)
SHARES = (0.25, 0.5)
SIZES = (0.5, 1.0, 2.0, 4.0)
"""Of jobs without GPUs, beside one with a whole GPU."""
CORES = (2.0, 3.0, 4.0, 6.0)
"""Per GPU."""
NO_GPU, SHARED, RESTRICTED, HURRIED, WITH_DATA = 0.15, 0.25, 0.3, 0.4, 0.35
LEAST_H, MOST_H = 0.5, 12.0
SLACK = (1.3, 4.0)
GIGABYTES = (5.0, 300.0)
LEAD_S = 600.0
"""A deadline counts from when a machine could have booted, twice a usual boot."""
CHECKPOINT = CheckpointRule(every_s=600.0)


@dataclass(frozen=True, slots=True)
class Task:
    """A job and where its data lie; times count from 0."""

    job: Job
    data: str = ""
    """A region; empty: it has none to speak of."""
    data_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Mix:
    """How many jobs are drawn, and of how many classes."""

    jobs: int
    classes: int | None = None
    """None: all are different."""

    def draw(self, seed: int) -> list[Task]:
        """Return the jobs of a seed."""
        rng = np.random.default_rng([seed, self.jobs, self.classes or 0])
        if self.classes is None:
            return [_task(rng, f"job-{number:04d}") for number in range(self.jobs)]
        kinds = [_task(rng, f"class-{number:02d}") for number in range(self.classes)]
        weights = rng.dirichlet(np.full(self.classes, 2.0))
        picked = rng.choice(self.classes, self.jobs, p=weights)
        named = [f"job-{number:04d}" for number in range(self.jobs)]
        return [_renamed(kinds[int(at)], name) for at, name in zip(picked, named, strict=True)]


MIXES: Mapping[str, Mix] = {
    "mixed-100": Mix(100),
    "mixed-1000": Mix(1000),
    "classes-2000": Mix(2000, 50),
}


def _renamed(task: Task, name: str) -> Task:
    return Task(task.job.but(id=name), task.data, task.data_gb)


def _task(rng: np.random.Generator, name: str) -> Task:
    reference = str(rng.choice(REFERENCES, p=REFERENCE_ODDS))
    kind = float(rng.random())
    if kind < NO_GPU:
        gpu, reference = GpuRequest(), ""
    elif kind < NO_GPU + SHARED:
        gpu = _shared(rng, reference)
    else:
        gpu = _whole(rng, reference)
    hours = _spread(rng, LEAST_H, MOST_H)
    duration_s = round(hours * 3600.0)
    slack = float(rng.uniform(*SLACK))
    hurried = rng.random() < HURRIED
    fields: dict[str, Any] = {"deadline": LEAD_S + slack * duration_s} if hurried else {}
    spec = JobSpec(
        name=name, command="true", resources=_resources(rng, gpu), duration_s=duration_s,
        reference=reference or None, checkpoint=CHECKPOINT, wait_max_s=math.inf, **fields,
    )  # fmt: skip
    job = Job(id=name, run="run-1", spec=spec, submitted_at=0.0)
    if rng.random() >= WITH_DATA:
        return Task(job)
    gigabytes = _spread(rng, *GIGABYTES)
    return Task(job, str(rng.choice(REGIONS)), round(gigabytes, 1))


def _spread(rng: np.random.Generator, least: float, most: float) -> float:
    """Return a number in a range; each doubling is as likely as another."""
    return least * math.exp(float(rng.random()) * math.log(most / least))


def _shared(rng: np.random.Generator, reference: str) -> GpuRequest:
    share = float(rng.choice(SHARES))
    most = 0.9 * share * MODELS[reference].memory_gib
    return GpuRequest(
        count=1, share=share, memory_gib=Span(least=round(float(rng.uniform(2.0, most)), 1)),
        models=_models(rng, reference),
    )  # fmt: skip


def _whole(rng: np.random.Generator, reference: str) -> GpuRequest:
    count = int(rng.choice(np.array(COUNTS), p=COUNT_ODDS))
    most = 0.9 * MODELS[reference].memory_gib
    return GpuRequest(
        count=count, memory_gib=Span(least=round(float(rng.uniform(4.0, most)), 1)),
        models=_models(rng, reference),
    )  # fmt: skip


def _models(rng: np.random.Generator, reference: str) -> tuple[str, ...]:
    """Return nothing, or the reference and some of the others."""
    if rng.random() >= RESTRICTED:
        return ()
    others: Sequence[str] = [name for name in REFERENCES if name != reference]
    more = rng.choice(others, int(rng.integers(0, 3)), replace=False)
    return (reference, *sorted(str(name) for name in more))


def _resources(rng: np.random.Generator, gpu: GpuRequest) -> Resources:
    size = gpu.count * gpu.share if gpu.count else float(rng.choice(SIZES))
    cpu = max(1.0, round(float(rng.choice(CORES)) * size))
    memory_gib = max(2.0, round(float(rng.uniform(4.0, 14.0)) * size, 1))
    disk_gib = round(float(rng.uniform(10.0, 50.0)), 1)
    return Resources(gpu=gpu, cpu=cpu, memory_gib=memory_gib, disk_gib=disk_gib)
