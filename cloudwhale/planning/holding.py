"""Whether a job waits for a better place although it fits somewhere: only when that pays."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from cloudwhale.model.job import Job, Placement
from cloudwhale.model.plan import Decision
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning import speeds
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Reservation
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.releases import Profile, Start, Whole, run_s
from cloudwhale.planning.reserving import reservation_of
from cloudwhale.spi.policy import priority_class

HEAD = 16
"""Jobs that are looked at in a round, first first."""
LONGEST_S: Seconds = 3600.0
"""Nobody is held for longer."""
LEAST_GAIN = 0.25
"""Of the run time here: what a hold must save at least, when the release comes as expected."""
PER_WAIT = 2.0
"""Times the expected wait: what it must save at least, for releases come late more than early."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A job that fits somewhere is to wait for a better place."""

    job: Job
    start: Start
    until: Instant
    reason: Reason


@dataclass(frozen=True, slots=True)
class Holding:
    """Which of the jobs that were held before wait on."""

    ready: tuple[Job, ...]
    """Those that do not."""
    reserved: Mapping[str, Reservation] = field(default_factory=dict[str, Reservation])
    """The room that the others wait for, by node."""
    until: Instant | None = None
    """When the first of the holds ends."""


def still_held(
    ready: Sequence[Job], profile: Profile, whole: Whole, taken: Collection[str]
) -> Holding:
    """Return which jobs wait on; a hold that has run out, or pays no more, is over.

    `taken`: nodes that are kept for others. What a waiting job of a higher class could use is not
    waited for either.
    """
    free: list[Job] = []
    reserved: dict[str, Reservation] = {}
    ends: list[Instant] = []
    for job in ready:
        if job.held_until is None or profile.now >= job.held_until:
            free.append(job)  # all but a few
            continue
        closed = {*taken, *reserved, *_of_higher_class(job, ready, whole)}
        start = _awaited(job, profile, whole, closed)
        if start is None:
            free.append(job)
            continue
        reserved[start.node] = reservation_of(job, start)
        ends.append(job.held_until)
    return Holding(tuple(free), reserved, min(ends, default=None))


def _of_higher_class(job: Job, ready: Iterable[Job], whole: Whole) -> Iterator[str]:
    own = priority_class(job.spec.priority)
    above = (other for other in ready if priority_class(other.spec.priority) > own)
    for other in islice(above, HEAD):
        yield from whole.nodes(other)


def _awaited(job: Job, profile: Profile, whole: Whole, taken: Collection[str]) -> Start | None:
    """Return the start that is still better than all that the job could have now."""
    here_s = [
        run_s(job, place, profile.free[node], profile.durations)
        for node in whole.nodes(job)
        if isinstance(place := fit(spec_of(job), profile.free[node]), Placement)
    ]
    found = _soonest(job, profile, [node for node in whole.nodes(job) if node not in taken])
    if found is None or not here_s:
        return None
    start, ends_at = found
    return start if ends_at < profile.now + min(here_s) else None


def _soonest(job: Job, profile: Profile, nodes: Iterable[str]) -> tuple[Start, Instant] | None:
    """Return the start in the future that ends the job first, and when it would end."""
    found: tuple[Start, Instant] | None = None
    for node in nodes:
        start = profile.start(job, node)
        if start is None:
            continue
        ends_at = start.at + run_s(job, start.placement, start.free, profile.durations)
        if found is None or ends_at < found[1]:
            found = start, ends_at
    return found


def holds(
    places: Iterable[tuple[Job, Decision]],
    ahead: Mapping[str, Sequence[Job]],
    profile: Profile,
    whole: Whole,
    taken: Collection[str],
) -> tuple[Hold, ...]:
    """Return which of the jobs that were just given a place had better wait.

    `ahead`: the jobs without a place that come before each of them: what they could use is
    theirs. `profile`: after the places of this round. `taken`: nodes that are kept for others.
    """
    found: list[Hold] = []
    closed = set(taken)
    for job, decision in islice(places, HEAD):
        passed = ahead.get(job.id, ())
        if job.held_until is not None or decision.chosen is None or len(passed) > HEAD:
            continue
        theirs = {node for other in passed for node in whole.nodes(other)}
        hold = _hold(job, decision.chosen.placement, profile, whole, closed | theirs)
        if hold is not None:
            found.append(hold)
            closed.add(hold.start.node)
    return tuple(found)


def _hold(
    job: Job, place: Placement, profile: Profile, whole: Whole, closed: Collection[str]
) -> Hold | None:
    free = profile.free[place.node].more(job.wants, place)  # it is no neighbour of itself
    here_s = run_s(job, place, free, profile.durations)
    nodes = [
        node
        for node in _faster(job, (1 - LEAST_GAIN) * here_s, profile)
        if node not in closed and node != place.node and node in whole.nodes(job)
    ]
    found = _soonest(job, profile, nodes)
    if found is None:
        return None
    start, ends_at = found
    now = profile.now
    wait_s, gain_s = start.at - now, now + here_s - ends_at
    if gain_s < LEAST_GAIN * here_s or gain_s < PER_WAIT * wait_s:
        return None
    until = min(start.late_at, now + gain_s, now + LONGEST_S)
    reason = Reason(
        code=Code.HELD,
        says=f"would run for {here_s:.0f} s on {place.node} now; {start.node} is expected to be "
        f"free in {wait_s:.0f} s, when {start.after} ends, and would have it done {gain_s:.0f} s "
        "sooner",
        change=f"{start.after} ends, or {until - now:.0f} s have passed",
    )
    return Hold(job, start, until, reason)


def _faster(job: Job, than_s: Seconds, profile: Profile) -> Iterator[str]:
    """Yield the nodes with a GPU on which the job would run for less than a time."""
    runs: dict[str, Seconds] = {}
    for name, free in profile.free.items():
        for device in free.devices:
            model = device.device.model
            if model not in runs:
                runs[model] = speeds.run_s(job, model, 0, profile.durations)
            if runs[model] < than_s:
                yield name
                break
