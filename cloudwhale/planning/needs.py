"""What of a waiting job matters to its place: jobs of one need are judged once."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cloudwhale.model import gpus
from cloudwhale.model.job import Job, JobSpec, Resources
from cloudwhale.model.node import Device, Node
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import model_suits, suits
from cloudwhale.planning.inventory import Reservation
from cloudwhale.planning.speeds import run_s, speed, work_s

# Lengths are rounded up to four steps a doubling: an estimate is never better than a fifth.
STEPS_A_DOUBLING = 4

NOWHERE = frozenset[str]()

YARDSTICK = "A100-40GB"  # any model would do: only ratios are used


@dataclass(frozen=True)
class Need:
    """What a class of equal jobs wants of a place."""

    spec: JobSpec
    """Of the first of them; its resources are what the job asks for now."""
    length_s: Seconds
    """How long it is expected to run where its speed is 1, rounded up."""
    barred: frozenset[str] = frozenset()
    """Nodes on which it would run into a reservation: there it must fit beside that."""
    speeds: Mapping[str, float] = field(default_factory=dict[str, float])
    """How fast it runs on each GPU model that is here and suits it."""
    asks: str = ""
    """`Job.demand` of the first of them and the node that it is kept to: a spec that was changed
    may not know its own; empty: the spec's."""

    @property
    def demand(self) -> str:
        """Return what makes two needs equal to every hard fact of a place."""
        return self.asks or self.spec.demand

    @property
    def wants(self) -> Resources:
        """Return what it wants."""
        return self.spec.resources

    @cached_property
    def fastest(self) -> float:
        """Return its speed on the fastest model that is here and suits it."""
        return max(self.speeds.values(), default=1.0)

    @cached_property
    def likes(self) -> tuple[str, ...]:
        """Return what it would like to find on a node, as `Node.cached` names it."""
        spec = self.spec
        labels = (f"label:{label}" for label in spec.affinity)
        image = (f"image:{spec.image}",) if spec.image is not None else ()
        return (*labels, *image, *(f"input:{one}" for one in spec.inputs))


class Needs:
    """Folds jobs into needs; asked for every waiting job in every round."""

    def __init__(
        self,
        now: Instant,
        durations: Durations,
        reserved: Mapping[str, Reservation],
        nodes: Mapping[str, Node],
        there: Mapping[str, str] | None = None,
    ) -> None:
        self._now = now
        self._there = there or {}
        self._durations = durations
        self._reserved = sorted(reserved.items())
        self._nodes = nodes
        self.devices = models_of(nodes.values())
        """One device of each model and size that some node has, by name."""
        self._found: dict[tuple[object, ...], int] = {}
        self._known_models: dict[tuple[str, tuple[str, ...] | None], Collection[str | None]] = {}
        self._known_speeds: dict[tuple[object, ...], Mapping[str, float]] = {}
        self.all: list[Need] = []
        """Every need, in the order in which it was first seen."""

    def of(self, job: Job) -> int:
        """Return the number of a job's need."""
        spec, left_s = job.spec, work_s(job, self._durations)
        step = math.ceil(STEPS_A_DOUBLING * math.log2(max(1.0, left_s)))
        barred = self._barred(job, left_s) if self._reserved else NOWHERE
        speeds = tuple(sorted(spec.speeds.items())) if spec.speeds else ()
        likes = (spec.affinity, spec.image, spec.inputs)
        there = self._there.get(job.id)
        key = (job.demand, step, likes, spec.reference, speeds, barred, there)
        number = self._found.get(key)
        if number is None:
            number = self._found[key] = len(self.all)
            length_s = float(2.0 ** (step / STEPS_A_DOUBLING))
            wanted = self._only_on(there, spec_of(job))
            asks = job.demand if there is None else f"{job.demand} on {there}"
            self.all.append(Need(wanted, length_s, barred, self._speeds(wanted), asks))
        return number

    def _only_on(self, there: str | None, spec: JobSpec) -> JobSpec:
        if there is None:
            return spec
        others = (name for name in self._nodes if name != there)
        return spec.but(where=spec.where.but(not_on=(*spec.where.not_on, *others)))

    def _speeds(self, spec: JobSpec) -> Mapping[str, float]:
        gpu = spec.resources.gpu
        span, said = gpu.memory_gib, tuple(spec.speeds.items())
        key = (gpu.count > 0, gpu.models, span.least, span.most, spec.reference, said)
        found = self._known_speeds.get(key)
        if found is None:
            found = self._known_speeds[key] = relative_speeds(spec, self.devices)
        return found

    def _barred(self, job: Job, left_s: Seconds) -> frozenset[str]:
        found = [
            node
            for node, kept in self._reserved
            if kept.job != job.id and self._now + self._longest_s(job, node, left_s) > kept.start_at
        ]
        return frozenset(found) if found else NOWHERE

    def _longest_s(self, job: Job, node: str, left_s: Seconds) -> Seconds:
        """Return how long the job runs on the slowest device of the node that it may get."""
        if job.spec.reference is None and not job.spec.speeds:
            return left_s  # it is as fast on each, as far as anybody knows
        models = self._models_on(job, node)
        return max(run_s(job, model, 0, self._durations) for model in models)

    def _models_on(self, job: Job, node: str) -> Collection[str | None]:
        gpu = job.wants.gpu
        key = (node, gpu.models if gpu.count else None)
        found = self._known_models.get(key)
        if found is None:
            devices = self._nodes[node].facts.devices if gpu.count and node in self._nodes else ()
            models = {d.model for d in devices if model_suits(job.spec, d)}
            found = self._known_models[key] = models or {None}
        return found


def spec_of(job: Job) -> JobSpec:
    """Return what the job's file says, with what it asks for now: sized, or grown."""
    wants = job.wants
    return job.spec if wants is job.spec.resources else job.spec.but(resources=wants)


def models_of(nodes: Iterable[Node]) -> tuple[Device, ...]:
    """Return one device of each model and size that the nodes have, by name."""
    found = {(d.model, d.memory_gib): d for node in nodes for d in node.facts.devices}
    return tuple(found[key] for key in sorted(found))


def relative_speeds(spec: JobSpec, devices: Sequence[Device]) -> dict[str, float]:
    """Return how fast a job runs on each model that suits it; nothing for one without GPUs.

    Without a reference nobody knows where its duration holds: on the fastest that is here.
    """
    if not spec.resources.gpu.count:
        return {}
    models = [device.model for device in devices if suits(spec, device)]
    if spec.reference is not None or spec.speeds:
        return {model: speed(spec, model) for model in models}
    known = {model: gpus.speed(model, YARDSTICK) or 1.0 for model in models}
    return {model: rate / max(known.values()) for model, rate in known.items()}
