"""Wait or rent in a round: what the wait policy is shown, and what its verdicts come to."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from cloudwhale.model.job import HOLDS_A_PLACE, Job, Placement
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Free
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.policies import Policies
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.refusals import Verdict as Refused
from cloudwhale.planning.releases import STOPS_WITHIN_S, Profile, Whole, run_s
from cloudwhale.planning.reserving import clock
from cloudwhale.planning.standing import remaining_s
from cloudwhale.spi.waiting import Quote, Running, Verdict, Waiting, Waits

LOOKS_S: Seconds = 300.0
"""While somebody waits for a start, it is asked again whether that still pays."""


@dataclass(frozen=True, slots=True)
class Saying:
    """Who is asked, and what it may know beside the world."""

    policies: Policies
    quotes: Mapping[str, Quote]
    """The least that each job could be rented for now, by its id."""
    at_once: frozenset[str] = frozenset()
    """Ids of those that start wherever they fit: they waited too long, or others gave way."""


@dataclass(frozen=True, slots=True)
class Waited:
    """What the wait policy has made of a round."""

    classes: Sequence[tuple[Job, ...]]
    """The order, without those that do not start although they fit, and those that leave."""
    waits: tuple[tuple[Job, Reason], ...] = ()
    """Those that do not start although they fit, first first."""
    leaving: tuple[tuple[Job, Reason], ...] = ()
    """Those that had better be rented for, first first."""
    stays: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    """What those are told that fit nowhere now and wait for a start, by their id."""
    look_again_at: Instant | None = None
    there: Mapping[str, str] = field(default_factory=dict[str, str])
    """Ids of the nodes on which some start, or not at all now, by the ids of the jobs."""

    @property
    def is_planned(self) -> bool:
        """Say whether room was kept for those that wait: then no other is needed."""
        return bool(self.waits or self.stays or self.leaving)

    def told(self, job: Job, verdict: Refused) -> tuple[Job, Refused]:
        """Return a job that got no place, with what it is told of its start."""
        reason = self.stays.get(job.id)
        if reason is None or verdict.code is not Code.NO_ROOM_NOW:
            return job, verdict
        return job, verdict.because(reason)


def waited(
    classes: Sequence[tuple[Job, ...]],
    world: World,
    profile: Profile,
    whole: Whole,
    saying: Saying,
) -> Waited:
    """Ask the wait policy about all jobs of a round, in its order; without one, all may start."""
    policy = saying.policies.wait
    if policy is None or (policy.needs_quotes and not saying.quotes) or not any(classes):
        return Waited(classes)
    waits = _waits(list(chain.from_iterable(classes)), world, profile, whole, saying)
    verdicts = policy.verdicts(waits)
    kept: list[tuple[Job, Reason]] = []
    leaving: list[tuple[Job, Reason]] = []
    stays: dict[str, Reason] = {}
    for one in waits.waiting:
        verdict = verdicts.get(one.job.id)
        starts = one.fits_now and one.job.id in saying.at_once
        if verdict is None or verdict.kind == "start" or starts:
            continue
        if verdict.kind == "rent":
            leaving.append((one.job, _leaves(verdict)))
        elif not one.fits_now:
            stays[one.job.id] = _stays(one, verdict, world.now)
        else:
            kept.append((one.job, _stays(one, verdict, world.now)))
    gone = {job.id for job, _ in (*kept, *leaving)}
    return Waited(
        classes=[tuple(job for job in some if job.id not in gone) for some in classes],
        waits=tuple(kept),
        leaving=tuple(leaving),
        stays=stays,
        look_again_at=_look_again_at(verdicts.values(), world.now),
        there=_there(verdicts, saying.at_once),
    )


def _there(verdicts: Mapping[str, Verdict], at_once: Collection[str]) -> Mapping[str, str]:
    """Return who starts on one node alone; while nobody waits, all may go where they like."""
    if all(verdict.kind == "start" for verdict in verdicts.values()):
        return {}
    return {
        job: verdict.node
        for job, verdict in verdicts.items()
        if verdict.kind == "start" and verdict.fixed and job not in at_once
    }


def _look_again_at(verdicts: Iterable[Verdict], now: Instant) -> Instant | None:
    waits = [verdict.at for verdict in verdicts if verdict.kind == "wait"]
    if not waits:
        return None
    return earliest(now + LOOKS_S, *(at for at in waits if at is not None and at > now))


def _waits(
    jobs: Iterable[Job], world: World, profile: Profile, whole: Whole, saying: Saying
) -> Waits:
    ready = {n.id: n for n in world.nodes.values() if n.state is NodeState.READY}
    grounds = _Grounds(ready, profile, whole)
    return Waits(
        now=world.now,
        waiting=tuple(_waiting(job, grounds, profile.durations, saying) for job in jobs),
        running=tuple(_running(profile, ready)),
        devices={name: float(len(node.facts.devices) or 1) for name, node in ready.items()},
        free={name: _free(profile.free[name]) for name in ready if name in profile.free},
        ended_s=tuple(chain.from_iterable(times for _, times in sorted(world.durations.items()))),
    )


@dataclass(frozen=True, slots=True)
class _Ground:
    nodes: tuple[str, ...]
    fits_now: tuple[str, ...]
    devices: float


class _Grounds:
    """Where jobs could run, and do fit now; jobs that ask alike are looked at once."""

    def __init__(self, ready: Mapping[str, Node], profile: Profile, whole: Whole) -> None:
        self._ready, self._profile, self._whole = ready, profile, whole
        self._known: dict[str, _Ground] = {}

    def of(self, job: Job) -> _Ground:
        """Return the ground of a job."""
        found = self._known.get(job.demand)
        if found is None:
            found = self._known[job.demand] = self._looked(job)
        return found

    def _looked(self, job: Job) -> _Ground:
        spec, ready = spec_of(job), self._ready
        could = [name for name in self._whole.nodes(job) if name in ready]
        fits = tuple(
            name for name in could if isinstance(fit(spec, self._profile.free[name]), Placement)
        )
        # A rented machine goes back when it is empty: nobody waits for it.
        nodes = tuple(name for name in could if ready[name].owned or name in fits)
        return _Ground(nodes, fits, _devices(job, (ready[name] for name in nodes)))


def _waiting(job: Job, grounds: _Grounds, durations: Durations, saying: Saying) -> Waiting:
    ground, value = grounds.of(job), job.spec.value_of_time_usd_h
    is_known = durations.of(job.spec).source != "nothing"
    return Waiting(
        job=job,
        devices=ground.devices,
        length_s=remaining_s(job, durations) if is_known else None,
        nodes=ground.nodes,
        fits_now=ground.fits_now,
        quote=saying.quotes.get(job.id),
        start_by=_start_by(job, durations),
        usd_h=saying.policies.rules.value_usd_h if value is None else value,
    )


def _start_by(job: Job, durations: Durations) -> Instant | None:
    """Return until when the job's file wants it started: `wait.max`, and time for its deadline."""
    spec = job.spec
    waited = None if spec.wait_max_s is None else job.submitted_at + spec.wait_max_s
    done = None if spec.deadline is None else spec.deadline - remaining_s(job, durations)
    return earliest(waited, done)


def _devices(job: Job, nodes: Iterable[Node]) -> float:
    """Return the devices that a job takes; without GPUs its part of the CPUs counts as one."""
    gpu = job.wants.gpu
    if gpu.count:
        return gpu.count * gpu.share
    cpus = max((node.facts.cpu for node in nodes), default=0.0)
    return min(1.0, job.wants.cpu / cpus) if cpus > 0 else 1.0


def _free(free: Free) -> float:
    if free.devices:
        return sum(max(0.0, device.share) for device in free.devices)
    return max(0.0, free.cpu / free.node.facts.cpu) if free.node.facts.cpu > 0 else 0.0


def _running(profile: Profile, ready: Mapping[str, Node]) -> Iterator[Running]:
    for job in profile.running:
        place = job.placement
        if place is None or place.node not in ready or job.state not in HOLDS_A_PLACE:
            continue
        ran_s = 0.0 if job.started_at is None else max(0.0, profile.now - job.started_at)
        length_s: Seconds | None = None
        if job.wish is not None:
            length_s = ran_s + STOPS_WITHIN_S
        elif profile.durations.of(job.spec).source != "nothing":
            length_s = run_s(job, place, profile.free[place.node], profile.durations)
        yield Running(job, place.node, _devices(job, (ready[place.node],)), ran_s, length_s)


def _stays(one: Waiting, verdict: Verdict, now: Instant) -> Reason:
    says = verdict.says
    if verdict.at is not None and verdict.node:
        start = f"is to start on {verdict.node} about {clock(max(now, verdict.at))}"
        says = f"{start}; {says}" if says else start
    return Reason(code=Code.WAITS_FOR_START, says=says, change="somebody ends, or time passes")


def _leaves(verdict: Verdict) -> Reason:
    change = "room here, a lower `value_of_time_usd_h`, or no machine that may be rented"
    return Reason(code=Code.BETTER_RENTED, says=verdict.says, change=change)
