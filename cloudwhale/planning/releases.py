"""The release profile of a node: what becomes free on it when, from the ends of what runs there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from cloudwhale.model.job import GpuRequest, Job, Placement
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.plan import Decision
from cloudwhale.model.units import GiB, Instant, Seconds
from cloudwhale.model.world import Sighting
from cloudwhale.planning import speeds
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import fit, matches_model, refused
from cloudwhale.planning.hopes import nodes_of_each
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.needs import spec_of

Shape = tuple[tuple[str, GiB], ...]
"""The devices of a node, each by model and nominal memory."""

# Of a job that has run for two thirds of what was expected or longer, nobody knows when it ends:
# lengths that are off by up to two either way leave it half of its age, on average.
OUTRUN = 0.5

# Nine in ten jobs end within twice what was expected of them (lengths off by up to two).
LATE = 2.0

# From the signal to the end of a job that was asked to stop, when it heeds the signal.
STOPS_WITHIN_S: Seconds = 10.0
GRACE_S: Seconds = 90.0  # the default of a job's file


@dataclass(frozen=True, slots=True)
class Release:
    """A running job will leave its place."""

    at: Instant
    """Expected."""
    late_at: Instant
    """As late as nine in ten."""
    job: Job


@dataclass(frozen=True, slots=True)
class Start:
    """When a job could start on a node that is full now."""

    node: str
    at: Instant
    late_at: Instant
    after: str
    """The job whose end makes the room."""
    placement: Placement
    free: Free
    """What is free on the node by then."""


class Profile:
    """When what becomes free on each node; worked out for a node when it is asked for."""

    def __init__(
        self,
        now: Instant,
        free: Mapping[str, Free],
        running: Iterable[Job],
        durations: Durations,
    ) -> None:
        self.now = now
        self.free = free
        self.durations = durations
        self._here: dict[str, list[Job]] = {}
        self.running = tuple(running)
        for job in self.running:
            if job.placement is not None:
                self._here.setdefault(job.placement.node, []).append(job)
        self._releases: dict[str, tuple[Release, ...]] = {}
        self._frees: dict[tuple[str, int], Free] = {}

    def with_places(self, places: Iterable[tuple[Job, Decision]]) -> "Profile":
        """Return the profile after some places were given; when those end is not in it."""
        free = dict(self.free)
        for job, decision in places:
            if decision.chosen is not None:
                where = decision.chosen.placement
                free[where.node] = free[where.node].less(job.wants, where)
        return Profile(self.now, free, self.running, self.durations)

    def jobs_on(self, node: str) -> Iterable[Job]:
        """Return the jobs that hold a place on a node."""
        return self._here.get(node, ())

    def releases(self, node: str) -> tuple[Release, ...]:
        """Return what leaves a node, in the order in which it is expected to; ties by id."""
        found = self._releases.get(node)
        if found is None:
            found = tuple(
                sorted(
                    (self._release(job) for job in self.jobs_on(node)),
                    key=lambda release: (release.at, release.job.id),
                )
            )
            self._releases[node] = found
        return found

    def earliest(self, job: Job, nodes: Iterable[str]) -> Start | None:
        """Return the first start that the job could have on some nodes; ties end at their id."""
        starts = [start for node in nodes if (start := self.start(job, node)) is not None]
        return min(starts, key=lambda start: (start.at, start.node), default=None)

    def changing(self, nodes: Iterable[str], until: Instant) -> Iterator[str]:
        """Yield those of some nodes that somebody is expected to leave by then."""
        for node in nodes:
            releases = self.releases(node)
            if releases and releases[0].at <= until:
                yield node

    def start(self, job: Job, node: str) -> Start | None:
        """Return when the job could start on a node as others leave it; None when it never could.

        Whether it fits there now is not looked at.
        """
        spec = spec_of(job)
        steps = self.releases(node)
        # Room only grows along the profile: halving finds the first step with enough of it.
        low, high = 0, len(steps)
        while low < high:
            middle = (low + high) // 2
            if refused(spec, self._free_after(node, middle)) is None:
                high = middle
            else:
                low = middle + 1
        if low == len(steps):
            return None
        free = self._free_after(node, low)
        place = fit(spec, free)
        assert isinstance(place, Placement), "nothing refuses it there"
        late_at = max(release.late_at for release in steps[: low + 1])
        return Start(node, steps[low].at, late_at, steps[low].job.id, place, free)

    def _free_after(self, node: str, step: int) -> Free:
        """Return what is free after a release, the promises of today alone in mind."""
        found = self._frees.get((node, step))
        if found is None:
            left = [release.job for release in self.releases(node)[: step + 1]]
            gone = [(job.wants, job.placement) for job in left if job.placement is not None]
            found = self._frees[node, step] = self.free[node].more_of(gone)
        return found

    def _release(self, job: Job) -> Release:
        assert job.placement is not None
        ran_s = 0.0 if job.started_at is None else max(0.0, self.now - job.started_at)
        expected_s = run_s(job, job.placement, self.free[job.placement.node], self.durations)
        left_s = max(expected_s - ran_s, OUTRUN * ran_s)
        late_s = max(LATE * expected_s - ran_s, 2 * OUTRUN * ran_s)
        if job.spec.max_duration_s is not None:
            most_s = max(0.0, job.spec.max_duration_s - job.ran_s(self.now))
            left_s, late_s = min(left_s, most_s), min(late_s, most_s)
        if job.wish is not None:
            rule = job.spec.checkpoint
            left_s = min(left_s, STOPS_WITHIN_S)
            late_s = min(late_s, GRACE_S if rule is None else rule.grace_s)
        return Release(self.now + left_s, self.now + max(left_s, late_s), job)


def run_s(job: Job, placement: Placement, free: Free, durations: Durations) -> Seconds:
    """Return how long the job is expected to run at a place, beside those that sit there."""
    positions = free.node.facts.positions
    here = [free.devices[positions[name]] for name in placement.devices if name in positions]
    if not here:
        return speeds.run_s(job, None, 0, durations)
    itself = 1 if job.placement == placement else 0
    return max(speeds.run_s(job, d.device.model, d.jobs - itself, durations) for d in here)


class Whole:
    """Where jobs could run if none of ours did, on nodes that take jobs now; asked for a few."""

    def __init__(self, nodes: Iterable[Node], sightings: Mapping[str, Sighting]) -> None:
        self._ready = [node for node in nodes if node.state is NodeState.READY]
        self._sightings = sightings
        self._empty: Mapping[str, Free] | None = None
        self._nodes: dict[str, tuple[str, ...]] = {}
        self._parts: dict[object, float] = {}

    @property
    def count(self) -> int:
        """Return how many nodes take jobs."""
        return len(self._ready)

    def nodes(self, job: Job) -> tuple[str, ...]:
        """Return the ids of the nodes that could take the job, in their order."""
        if job.demand not in self._nodes:
            self.look((job,))
        return self._nodes[job.demand]

    def look(self, jobs: Iterable[Job]) -> None:
        """Find out for many jobs at once where they could run: far cheaper than one by one."""
        new = {job.demand: spec_of(job) for job in jobs if job.demand not in self._nodes}
        if not new:
            return
        if self._empty is None:
            self._empty = free_capacity(self._ready, (), self._sightings)
        found = nodes_of_each(list(new.values()), list(self._empty.values()))
        self._nodes |= dict(zip(new, found, strict=True))

    def part(self, job: Job) -> float:
        """Return how large a part of all devices has the model and memory it asks for: 0 to 1.

        Counted in its own size, so that four GPUs on one node have fewer places than one; 1 for a
        job without GPUs. The smaller, the fewer places will ever do. Asked for every waiting job.
        """
        found = self._parts.get(job.demand)
        if found is None:
            found = self._parts[job.demand] = self._part(job.wants.gpu)
        return found

    def _part(self, gpu: GpuRequest) -> float:
        if not gpu.count:
            return 1.0
        key = (gpu.count, gpu.models, gpu.memory_gib.least, gpu.memory_gib.most)
        found = self._parts.get(key)
        if found is None:
            could = sum(
                times * (sum(suits(gpu, device) for device in devices) // gpu.count)
                for devices, times in self._shapes.items()
            )
            every = sum(times * len(devices) for devices, times in self._shapes.items())
            found = self._parts[key] = could / max(1, every)
        return found

    @cached_property
    def _shapes(self) -> Mapping[Shape, int]:
        """Return how many nodes have the same devices, each by model and nominal memory."""
        return Counter(
            tuple((d.model, d.memory_gib) for d in node.facts.devices) for node in self._ready
        )


def suits(gpu: GpuRequest, device: tuple[str, GiB]) -> bool:
    """Say whether a device, by model and nominal memory, is what a job asks for."""
    model, memory_gib = device
    is_named = not gpu.models or any(matches_model(name, model) for name in gpu.models)
    return is_named and gpu.memory_gib.holds(memory_gib)
