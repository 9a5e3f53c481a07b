"""How long a job would run at a place: what is left of its work over how fast it goes there."""

from collections.abc import Iterable

from cloudwhale.model import gpus
from cloudwhale.model.job import Job, JobSpec, Placement
from cloudwhale.model.node import Device
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.durations import Durations

# What a job keeps of its speed for each other job on its most crowded device: a first guess
# until pairs are measured.
BESIDE_A_NEIGHBOUR = 0.95

# A job that has run for longer than was expected of it is not about to end: it is expected to
# run for a tenth of its age, or of its expected length, longer.
OVERDUE = 0.1


def run_s(job: Job, model: str | None, neighbours: int, durations: Durations) -> Seconds:
    """Return how long an attempt of a job is expected to run on a device model, in seconds.

    `model`: None for a job without GPUs; `neighbours`: other jobs on its most crowded device.
    A job that resumes has done what its attempts ran and did not lose.
    """
    return work_s(job, durations) / (speed(job.spec, model) * throughput(neighbours))


def work_s(job: Job, durations: Durations) -> Seconds:
    """Return how long an attempt is expected to run at speed 1, alone; never 0 of a length."""
    length_s = durations.length_s(job.spec)
    if job.checkpoint is None:
        return length_s
    left_s = length_s - job.kept_s
    return left_s if left_s > 0 else OVERDUE * length_s


def left_s(
    job: Job, model: str | None, neighbours: int, durations: Durations, now: Instant
) -> Seconds:
    """Return how much longer a job that has its place is expected to run; never 0."""
    expected_s = run_s(job, model, neighbours, durations)
    ran_s = 0.0 if job.started_at is None else max(0.0, now - job.started_at)
    return max(expected_s - ran_s, OVERDUE * max(expected_s, ran_s))


def speed(spec: JobSpec, model: str | None) -> float:
    """Return how fast a job runs on a model beside where its duration holds; 1 when unknown."""
    if model is None:
        return 1.0
    said = spec.speeds.get(model)
    if said is not None and said > 0:
        return said
    known = gpus.speed(model, spec.reference) if spec.reference is not None else None
    return 1.0 if known is None else known


def model_of(place: Placement | None, devices: Iterable[Device]) -> str | None:
    """Return the model of a placement's first device, of some that lie there; None: it has none."""
    models = {device.id: device.model for device in devices}
    given = () if place is None else place.devices
    return next((models[name] for name in given if name in models), None)


def pace(spec: JobSpec, place: Placement, devices: Iterable[Device]) -> float:
    """Return how fast a job goes at a place beside where its duration holds."""
    models = {device.id: device.model for device in devices}
    given = [models[name] for name in place.devices if name in models]
    return min((speed(spec, model) for model in given), default=1.0)


def throughput(neighbours: float) -> float:
    """Return the share of its speed that a job keeps beside others on its device, in (0, 1]."""
    return float(BESIDE_A_NEIGHBOUR**neighbours)
