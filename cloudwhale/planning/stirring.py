"""Which events may change what a round decides: after others alone, nobody needs to plan.

The table is conservative. An event that changes nothing which a round looks at is quiet; one that
tells of a running attempt's progress is quiet as long as nobody is there whom that could help: no
job waits, or nothing is set by which the progress of one job decides about another. The end of a
job is quiet when no job waits.
"""

from collections.abc import Iterable

from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.reconcile import job_judged_at

QUIET: tuple[type[e.Event], ...] = (
    e.Read,  # how far an inbox was read
    e.Noted,  # worth telling, changes no state
    e.StoreUsed,  # the same
    e.OrderPosted,  # what was decided is done; it would only be asked for again without it
)
PROGRESS: tuple[type[e.Event], ...] = (
    e.Started,  # its end is expected from now; it may be stopped for others after a while
    e.CheckpointSaved,  # stopping it would cost less
)
GONE: tuple[type[e.Event], ...] = (
    e.Finished,  # its room helps those who wait, if anybody does
    e.Failed,
    e.Cancelled,
)


WAITS_OR_WILL = (JobState.PENDING, JobState.RECOVERING)


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
    decides = any(isinstance(event, GONE) for event in heard) or _progress_decides(policies)
    return bool(heard) and decides and _somebody_waits(world)


def judged_at(events: Iterable[e.Event], world: World) -> Instant | None:
    """Return when the jobs whose progress was told are to be looked at: late, or too long."""
    jobs = {event.job for event in events if isinstance(event, e.Started)}
    times = (job_judged_at(world.jobs[job], world.now) for job in jobs if job in world.jobs)
    return earliest(*times)


def _progress_decides(policies: Policies) -> bool:
    rules = policies.rules
    by_rule = rules.hold or rules.reserve or rules.preempt or rules.displace
    return by_rule or policies.wait is not None or policies.rent is not None


def _somebody_waits(world: World) -> bool:
    if world.rentals:
        return True  # whether a machine is kept depends on what runs there
    return any(job.state in WAITS_OR_WILL for job in world.jobs.values())
