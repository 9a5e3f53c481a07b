"""Which events may change what a round decides: after others alone, nobody needs to plan.

The table is conservative. An event that changes nothing which a round looks at is quiet; one that
tells of a running attempt's progress is quiet as long as nobody is there whom that could help: no
job waits, or nothing is set by which the progress of one job decides about another. What a job has
saved is quiet as long as nobody could be preempted or moved by that: see `_save_decides`. The end
of a job is quiet when no job waits.
"""

from collections.abc import Iterable

from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World
from cloudwhale.planning.homing import may_come_home
from cloudwhale.planning.leasing import is_fixed
from cloudwhale.planning.nights import nights
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.preempting import gives_way
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.reconcile import is_late, job_judged_at
from cloudwhale.planning.rules import Rules

QUIET: tuple[type[e.Event], ...] = (
    e.Read,  # how far an inbox was read
    e.Noted,  # worth telling, changes no state
    e.StoreUsed,  # the same
    e.Noticed,  # what people are told
    e.Notified,  # the same
    e.OrderPosted,  # what was decided is done; it would only be asked for again without it
)
PROGRESS: tuple[type[e.Event], ...] = (
    e.Started,  # its end is expected from now; it may be stopped for others after a while
    e.CheckpointSaved,  # stopping it would cost less
)
"""What tells of running attempts; when they are to be looked at for that says `judged_at`."""
LEAVES_EFFECTS: tuple[type[e.Event], ...] = (
    e.Read,
    e.Noted,
    e.StoreUsed,
    e.Noticed,
    e.Notified,
    e.CheckpointSaved,
)
"""After these alone, where they stir nobody, what was to be done still is."""
GONE: tuple[type[e.Event], ...] = (
    e.Finished,  # its room helps those who wait, if anybody does
    e.Failed,
    e.Cancelled,
)


WAITS_OR_WILL = (JobState.PENDING, JobState.RECOVERING)
FIRST = 1
"""The number of the first checkpoint of an attempt."""


def _is_quiet(event: e.Event) -> bool:
    """Say whether an event changes nothing that a round looks at: a boot goes on as it should."""
    if isinstance(event, e.BootTold):
        return event.state != "failed"
    return isinstance(event, QUIET)


def stir(events: Iterable[e.Event], world: World, policies: Policies) -> bool:
    """Say whether a round has to be made, as these came since the last; asked at every change.

    What is due at a time is asked for apart: see `judged_at`.
    """
    heard = [event for event in events if not _is_quiet(event)]
    if not all(isinstance(event, (*PROGRESS, *GONE)) for event in heard):
        return True
    if not heard or not _somebody_waits(world):
        return bool(heard) and any(night.closed_at is None for _, night in nights(world))
    if any(isinstance(event, GONE) for event in heard):
        return True
    return _progress_decides(policies) and any(_tells(event, world, policies) for event in heard)


def _tells(event: e.Event, world: World, policies: Policies) -> bool:
    """Say whether one that tells of progress may decide something, while somebody waits."""
    if not isinstance(event, e.CheckpointSaved):
        return True
    job = world.jobs.get(event.job)
    return job is not None and _save_decides(job, world, policies.rules)


def judged_at(events: Iterable[e.Event], world: World) -> Instant | None:
    """Return when the jobs whose progress was told are to be looked at: late, or too long."""
    jobs = {event.job for event in events if isinstance(event, (e.Started, e.CheckpointSaved))}
    times = (job_judged_at(world.jobs[job], world.now) for job in jobs if job in world.jobs)
    return earliest(*times)


def _save_decides(job: Job, world: World, rules: Rules) -> bool:
    """Say whether what a job has just saved may lead to another plan than if it had not.

    It counts for who is to be moved or to switch, for what is kept of a gang's, for what stopping
    it for others would cost, and for who may come home. How long a job still runs is counted from
    when its attempt began; the first that a later attempt saves may tell how much there was of it.
    """
    saved = job.checkpoint
    if job.state is not JobState.RUNNING or job.wish is not None or saved is None:
        return True
    if job.ranks or job.spec.deadline is not None or _is_to_move(job, world):
        return True
    if is_late(job, world.now) or (job.attempt > 1 and saved.seq <= FIRST):
        return True
    return _gives_way_to_some(job, world, rules) or may_come_home(job, world, rules)


def _is_to_move(job: Job, world: World) -> bool:
    """Say whether a job is to go on elsewhere, or its machine ends by itself."""
    rental = None if job.placement is None else world.rentals.get(job.placement.node)
    if rental is not None and is_fixed(rental):
        return True
    return any(job.id in other.moves for other in world.rentals.values())


def _gives_way_to_some(job: Job, world: World, rules: Rules) -> bool:
    """Say whether a job may be stopped for one that waits, by what they are.

    Nobody is stopped on a rented machine: those that wait for room wait for it here. Who is too
    young is looked at when it is old enough, saved or not.
    """
    node = None if job.placement is None else world.nodes.get(job.placement.node)
    if not rules.preempt or node is None or not node.owned:
        return False
    waiting = (one for one in world.jobs.values() if one.state in WAITS_OR_WILL)
    if rules.displace:
        return job.spec.preemptible and any(True for _ in waiting)
    return any(gives_way(job, one, rules.preempt_after_s, world.now) for one in waiting)


def _progress_decides(policies: Policies) -> bool:
    rules = policies.rules
    by_rule = rules.hold or rules.reserve or rules.preempt or rules.displace
    return by_rule or policies.wait is not None or policies.rent is not None


def _somebody_waits(world: World) -> bool:
    if world.rentals:
        return True  # whether a machine is kept depends on what runs there
    return any(job.state in WAITS_OR_WILL for job in world.jobs.values())
