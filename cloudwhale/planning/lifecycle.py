"""The states of a job and of a rental as tables: which event leads where, and why."""

from cloudwhale.model import event as e
from cloudwhale.model.job import ENDED, HOLDS_A_PLACE, Job, JobState, Wish
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning import ganging
from cloudwhale.spi.errors import IllegalTransition

PENDING, STARTING, RUNNING = JobState.PENDING, JobState.STARTING, JobState.RUNNING
RECOVERING, PAUSED, PARKED = JobState.RECOVERING, JobState.PAUSED, JobState.PARKED
COMPLETED, FAILED, CANCELLED = JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED

TRANSITIONS: dict[tuple[JobState, type[e.OfJob]], JobState] = {
    (PENDING, e.Placed): STARTING,  # the plan gave it a place
    (PENDING, e.Waits): PENDING,  # why it waits has changed
    (PENDING, e.Held): PENDING,  # it fits somewhere and waits for a better place
    (PENDING, e.Sized): PENDING,  # what it asks for is what its family was seen to use
    (PENDING, e.Parked): PARKED,  # nothing to do until a person acts
    (PENDING, e.GaveUp): FAILED,  # it can never run: its dependency failed
    (PENDING, e.CancelAsked): PENDING,  # the next round drops it
    (PENDING, e.PauseAsked): PENDING,  # the next round sets it aside
    (PENDING, e.ResumeAsked): PENDING,  # takes a pause back that no round has seen yet
    (PENDING, e.Cancelled): CANCELLED,  # as somebody asked, nothing was running
    (PENDING, e.Paused): PAUSED,  # as somebody asked, nothing was running
    (STARTING, e.OrderPosted): STARTING,  # its order lies in the mailbox
    (STARTING, e.StopPosted): STARTING,  # the order to stop lies in the mailbox
    (STARTING, e.Unconfirmed): STARTING,  # its order is posted again
    (STARTING, e.DeadlineMissed): STARTING,  # it is late, and goes on
    (STARTING, e.Waits): STARTING,  # what it is to be moved to has changed
    (STARTING, e.Started): RUNNING,  # the agent says so, nobody else
    (STARTING, e.MemberStarted): STARTING,  # one rank of a gang runs; the others are awaited
    (STARTING, e.MemberEnded): STARTING,  # one rank of a gang has ended; the others are stopped
    (STARTING, e.SavesForgotten): STARTING,  # what a gang goes on from has become newer
    (STARTING, e.CheckpointSaved): STARTING,  # it saves faster than its start is told
    (STARTING, e.Finished): COMPLETED,  # its start and end were told in one breath
    (STARTING, e.Failed): FAILED,  # it could not be started
    (STARTING, e.Retried): PENDING,  # it could not be started here; elsewhere perhaps
    (STARTING, e.Parked): PARKED,  # its order could not be written; nothing has gone out
    (STARTING, e.Cancelled): CANCELLED,  # stopped before it ran
    (STARTING, e.Paused): PAUSED,  # stopped before it ran
    (STARTING, e.GaveWay): PENDING,  # stopped before it ran
    (STARTING, e.AttemptLost): RECOVERING,  # its node fell silent, or is taken away
    (STARTING, e.CancelAsked): STARTING,  # a stop order goes out
    (STARTING, e.PauseAsked): STARTING,  # a stop order goes out
    (STARTING, e.ResumeAsked): STARTING,  # too late to take a stop back: it pends again after
    (STARTING, e.StopWished): STARTING,  # a stop order goes out
    (RUNNING, e.OrderPosted): RUNNING,  # the answer was faster than the note of the question
    (RUNNING, e.StopPosted): RUNNING,  # the order to stop lies in the mailbox
    (RUNNING, e.Unconfirmed): RUNNING,  # its order is posted again: the answer tells how it is
    (RUNNING, e.DeadlineMissed): RUNNING,  # it is late, and goes on
    (RUNNING, e.Started): RUNNING,  # an agent that adopted it says so again
    (RUNNING, e.MemberStarted): RUNNING,  # an agent that adopted it says so again
    (RUNNING, e.MemberEnded): RUNNING,  # one rank of a gang has ended; how all have, is told then
    (RUNNING, e.SavesForgotten): RUNNING,  # what a gang goes on from has become newer
    (RUNNING, e.CheckpointSaved): RUNNING,  # the place to resume from moves on
    (RUNNING, e.CheckpointLate): RUNNING,  # it has saved nothing for twice its interval
    (RUNNING, e.Finished): COMPLETED,  # its process ended with 0
    (RUNNING, e.Failed): FAILED,  # it ended badly and is not tried again
    (RUNNING, e.Retried): PENDING,  # it ended badly and is tried again
    (RUNNING, e.Cancelled): CANCELLED,  # stopped, as somebody asked
    (RUNNING, e.Paused): PAUSED,  # stopped, as somebody asked
    (RUNNING, e.GaveWay): PENDING,  # stopped for a job of higher priority
    (RUNNING, e.AttemptLost): RECOVERING,  # its node fell silent, or is taken away
    (RUNNING, e.CancelAsked): RUNNING,  # a stop order goes out
    (RUNNING, e.PauseAsked): RUNNING,  # a stop order goes out
    (RUNNING, e.ResumeAsked): RUNNING,  # too late to take a stop back: it pends again after
    (RUNNING, e.StopWished): RUNNING,  # a stop order goes out
    (RUNNING, e.Waits): RUNNING,  # what it is to be moved to has changed
    (RECOVERING, e.OrderPosted): RECOVERING,  # noted late
    (RECOVERING, e.Parked): PARKED,  # its order could not be written; nothing has gone out
    (RECOVERING, e.StopPosted): RECOVERING,  # noted late
    (RECOVERING, e.Unconfirmed): RECOVERING,  # its node is heard again, and is asked how it is
    (RECOVERING, e.DeadlineMissed): RECOVERING,  # it is late, and goes on
    (RECOVERING, e.GaveUp): FAILED,  # the old attempt is out, and no retry is left or wanted
    (RECOVERING, e.Started): RUNNING,  # the node is back, and the attempt ran on
    (RECOVERING, e.AttemptLost): RECOVERING,  # another machine of its gang is lost, too
    (RECOVERING, e.MemberStarted): RECOVERING,  # told late: the gang is stopped anyway
    (RECOVERING, e.MemberEnded): RECOVERING,  # one rank of a gang has ended, as it was told to
    (RECOVERING, e.SavesForgotten): RECOVERING,  # what a gang goes on from has become newer
    (RECOVERING, e.CheckpointSaved): RECOVERING,  # published before the silence, read after
    (RECOVERING, e.Finished): COMPLETED,  # it won the race
    (RECOVERING, e.Failed): FAILED,  # the old agent said how it ended
    (RECOVERING, e.Retried): PENDING,  # the old agent said how it ended
    (RECOVERING, e.Cleared): PENDING,  # the old attempt is out for certain
    (RECOVERING, e.Waits): RECOVERING,  # why its next attempt waits has changed
    (RECOVERING, e.Cancelled): CANCELLED,  # the old attempt is out, and nobody wants another
    (RECOVERING, e.Paused): PAUSED,  # the old attempt is out; the next waits for a person
    (RECOVERING, e.GaveWay): PENDING,  # it stopped as it was asked to before the silence
    (RECOVERING, e.CancelAsked): RECOVERING,  # takes effect when the old attempt is out
    (RECOVERING, e.PauseAsked): RECOVERING,  # takes effect when the old attempt is out
    (RECOVERING, e.ResumeAsked): RECOVERING,  # takes a pause back
    (PAUSED, e.ResumeAsked): PENDING,  # a person wants it to go on
    (PAUSED, e.PauseAsked): PAUSED,  # it is already
    (PAUSED, e.CancelAsked): PAUSED,  # the next round drops it
    (PAUSED, e.Cancelled): CANCELLED,  # as somebody asked
    (PARKED, e.ResumeAsked): PENDING,  # a person has acted
    (PARKED, e.PauseAsked): PARKED,  # nothing runs anyway
    (PARKED, e.CancelAsked): PARKED,  # the next round drops it
    (PARKED, e.Cancelled): CANCELLED,  # as somebody asked
}
"""Every edge of a job's life; a pair that is missing is a bug, not a wish."""

RENTAL_TRANSITIONS: dict[RentalState, frozenset[RentalState]] = {
    RentalState.RESERVED: frozenset(
        # the launch was called, or was refused: its money goes back
        {RentalState.REQUESTED, RentalState.RETURNED}
    ),
    RentalState.REQUESTED: frozenset(
        {RentalState.BOOTING, RentalState.RETURNED, RentalState.NEEDS_ATTENTION}
    ),
    RentalState.BOOTING: frozenset(
        {RentalState.READY, RentalState.DRAINING, RentalState.LOST, RentalState.NEEDS_ATTENTION}
    ),
    RentalState.READY: frozenset(
        {RentalState.DRAINING, RentalState.LOST, RentalState.NEEDS_ATTENTION}
    ),
    RentalState.DRAINING: frozenset(
        {RentalState.RETURNED, RentalState.LOST, RentalState.NEEDS_ATTENTION}
    ),
    RentalState.LOST: frozenset({RentalState.RETURNED, RentalState.NEEDS_ATTENTION}),
    # retried for ever, never forgotten
    RentalState.NEEDS_ATTENTION: frozenset({RentalState.DRAINING, RentalState.RETURNED}),
    RentalState.RETURNED: frozenset(),
}


def apply(job: Job, event: e.OfJob) -> Job:
    """Return the job after an event; the same job when the event is of an older attempt.

    An ended job swallows what is said of it late. A pair that the table lacks raises
    IllegalTransition.
    """
    if job.state in ENDED or (isinstance(event, e.OfAttempt) and _is_stale(job, event)):
        return job
    target = TRANSITIONS.get((job.state, type(event)))
    if target is None:
        raise IllegalTransition(
            f"job {job.id} is {job.state} (attempt {job.attempt}) and cannot meet "
            f"{type(event).__name__}: {event.model_dump_json(exclude={'first'})}"
        )
    changes = _changes(job, event, target)
    if target in ENDED:
        changes["ended_at"] = _ended_at(job, event)
    return job.but(state=target, **changes)


def moved(old: Rental | None, new: Rental) -> Rental:
    """Return a rental as it is now; the same state again is a lease that was renewed.

    Raise IllegalTransition when the table has no edge from the old state to the new one.
    """
    if old is None:
        legal = new.state is RentalState.RESERVED
    else:
        legal = new.state is old.state or new.state in RENTAL_TRANSITIONS[old.state]
    if not legal:
        was = "not known yet" if old is None else old.state
        raise IllegalTransition(f"rental {new.id} is {was} and cannot become {new.state}")
    return new


def _is_stale(job: Job, event: e.OfAttempt) -> bool:
    if isinstance(event, e.Placed):
        return event.attempt != job.attempt + 1
    return event.attempt != job.attempt or job.state not in HOLDS_A_PLACE


_SAID = {e.CheckpointLate: "late_said", e.DeadlineMissed: "deadline_said"}


def _changes(job: Job, event: e.OfJob, target: JobState) -> dict[str, object]:
    """Return the fields, the state excluded, that an event replaces."""
    match event:
        case e.Placed():
            return {
                "attempt": event.attempt, "placement": event.placement, "reason": event.reason,
                "placed_at": event.at, "order_posted": False, "stop_posted": False,
                "started_at": None, "not_before": None, "late_said": False, "held_until": None,
                "ranks": ganging.fresh(len(event.placement.members)),
                "pace": event.pace,
            }  # fmt: skip
        case _ if isinstance(event, OF_RANKS):
            return _of_gang(job, event) if job.ranks else _of_one(job, event)
        case e.Started():
            first = job.first_started_at if job.first_started_at is not None else event.at
            return {
                "started_at": job.started_at if job.started_at is not None else event.at,
                "first_started_at": first, "order_posted": True,
            }  # fmt: skip
        case e.CheckpointLate() | e.DeadlineMissed():
            return {_SAID[type(event)]: True}
        case e.Waits() | e.AttemptLost():
            return {"reason": event.reason}
        case e.Sized():
            return {"sized": event.wants}
        case e.Held():
            return {"reason": event.reason, "held_until": event.until}
        case e.CancelAsked() | e.PauseAsked() | e.ResumeAsked() | e.StopWished():
            return _wished(job, event)
        case _:
            return _left(job, event, target)


OF_RANKS = (
    e.OrderPosted, e.Unconfirmed, e.StopPosted, e.CheckpointSaved,
    e.MemberStarted, e.MemberEnded, e.SavesForgotten,
)  # fmt: skip


def _of_one(job: Job, event: e.OfJob) -> dict[str, object]:
    """Return what changes for a job that is no gang."""
    match event:
        case e.OrderPosted():
            return {"order_posted": True}
        case e.Unconfirmed():
            return {"order_posted": False, "stop_posted": False}
        case e.CheckpointSaved():
            return {"checkpoint": _newer(job, event), "late_said": False}
        case e.StopPosted():
            return _wished(job, event)
        case _:
            return {}


def _of_gang(job: Job, event: e.OfJob) -> dict[str, object]:
    """Return what changes for a gang of which one rank has got, said or done something."""
    match event:
        case e.CheckpointSaved():
            return ganging.with_save(job, event.checkpoint, event.rank)
        case e.OrderPosted():
            return ganging.with_rank(job, event.rank, order_posted=True)
        case e.Unconfirmed():
            return ganging.with_rank(job, event.rank, order_posted=False, stop_posted=False)
        case e.StopPosted():
            found = ganging.with_rank(job, event.rank, stop_posted=True)
            # As of one that is alone; where the gang ends anyway, its end says how.
            is_over = ganging.is_breaking(job) or ganging.stopped_at(job) is not None
            return found if is_over else {**found, "wish": Wish.GIVE_WAY}
        case e.MemberStarted():
            return ganging.with_rank(job, event.rank, has_started=True, order_posted=True)
        case e.MemberEnded():
            return ganging.with_rank(job, event.rank, end=event.end)
        case e.SavesForgotten():
            return ganging.without(job, event.manifests)
        case _:
            return {}


def _newer(job: Job, event: e.CheckpointSaved) -> object:
    old, new = job.checkpoint, event.checkpoint
    is_newer = old is None or (new.attempt, new.seq) > (old.attempt, old.seq)
    return new if is_newer else old


# -- wishes ----------------------------------------------------------------------------------

# From the weakest to the strongest: a wish gives way to a stronger one only. A cancel is final,
# a limit that was reached stays reached, a person's pause beats the planner's need for room.
_STRENGTH = (None, Wish.GIVE_WAY, Wish.PAUSE, Wish.LIMIT, Wish.CANCEL)


def _wished(job: Job, event: e.OfJob) -> dict[str, object]:
    match event:
        case e.CancelAsked():
            return {"wish": Wish.CANCEL}
        case e.PauseAsked():
            # What has stopped already has nothing to do for a pause.
            is_moot = job.state in (PAUSED, PARKED)
            return {} if is_moot else {"wish": _stronger(job.wish, Wish.PAUSE)}
        case e.ResumeAsked():
            return _resumed(job)
        case e.StopWished():
            return {} if job.wish else {"wish": Wish(event.wish), "reason": event.reason}
        case _:
            # The order is out, so the attempt will stop, although its pause was taken back
            # while the order was on its way: it starts again after.
            return {"stop_posted": True, "wish": job.wish or Wish.GIVE_WAY}


def _stronger(old: Wish | None, new: Wish) -> Wish | None:
    return new if _STRENGTH.index(new) > _STRENGTH.index(old) else old


def _resumed(job: Job) -> dict[str, object]:
    """A pause is taken back; once its stop order is out it becomes "stop, then start again"."""
    if job.wish is not Wish.PAUSE:
        return {}
    is_stopping = job.state in HOLDS_A_PLACE and job.stop_posted
    return {"wish": Wish.GIVE_WAY if is_stopping else None}


def _outlives(wish: Wish | None, target: JobState) -> bool:
    """Say whether a person's wish, that came while the end was on its way, is still to be met."""
    return wish is Wish.CANCEL or (wish is Wish.PAUSE and target is PENDING)


# -- leaving a place -------------------------------------------------------------------------


def _left(job: Job, event: e.OfJob, target: JobState) -> dict[str, object]:
    """Return what changes when a job leaves its place, or the queue."""
    ran_s, lost_s = _ran_s(job, event), getattr(event, "lost_s", 0.0)
    changes: dict[str, object] = {
        "reason": _why(job, event), "run_s": job.run_s + ran_s,
        "wish": job.wish if target not in ENDED and _outlives(job.wish, target) else None,
        "lost_s": job.lost_s + lost_s,
        "ahead_s": job.ahead_s + (job.pace - 1.0) * max(0.0, ran_s - lost_s),
        "exit_code": getattr(event, "exit_code", job.exit_code),
    }  # fmt: skip
    if isinstance(event, e.Leaves):
        changes["peaks"] = job.peaks.and_(event.peaks)
    if isinstance(event, e.Retried | e.GaveWay):
        changes["not_before"] = event.not_before
    if isinstance(event, e.Retried) and event.grown is not None:
        changes["grown"], changes["grows"] = event.grown, job.grows + 1
    elif isinstance(event, e.Retried | e.Cleared) and event.counts:
        changes["retries"] = job.retries + 1
    if isinstance(event, e.Retried | e.Cleared | e.GaveWay):
        changes["interruptions"] = job.interruptions + 1
    if not isinstance(event, e.Finished | e.Failed):
        changes["placement"], changes["started_at"], changes["ranks"] = None, None, ()
    return changes


def _ended_at(job: Job, event: e.OfJob) -> Instant:
    """Return when it ended, which may be long before that was read."""
    if job.started_at is None:
        return event.at
    return min(event.at, job.started_at + _ran_s(job, event))


def _ran_s(job: Job, event: e.OfJob) -> Seconds:
    """Return how long the attempt ran: its agent's word, or as long as it could have.

    An end may be read hours after it came, when no controller was there to read it.
    """
    if job.started_at is None:
        return 0.0
    could_s = max(0.0, event.at - job.started_at)
    if isinstance(event, e.Cleared):
        # Nobody has heard of it since: what went on after that, if anything, is no run of its.
        saved_at = job.started_at if job.checkpoint is None else job.checkpoint.saved_at
        return min(could_s, max(0.0, saved_at - job.started_at) + event.lost_s)
    told_s = event.ran_s if isinstance(event, e.Leaves) else None
    return could_s if told_s is None else told_s


def _why(job: Job, event: e.OfJob) -> Reason | None:
    if isinstance(event, e.Finished):
        return Reason(code=Code.FINISHED, says=f"its process ended with {event.exit_code}")
    return getattr(event, "reason", None) or job.reason
