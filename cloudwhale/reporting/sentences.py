"""What happened to a job, each event in a few words."""

from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobSpec, Placement
from cloudwhale.model.reason import Code, Reason
from cloudwhale.reporting.figures import counted, size
from cloudwhale.reporting.rented import small

SILENT = (e.OrderPosted, e.StopPosted, e.MemberStarted, e.SavesForgotten)
"""Steps between controller and agent that a reader of the story does not ask about."""


Tellable = e.OfJob | e.Noted | e.Brought


def headline(event: Tellable, place: Placement | None) -> str | None:
    """Say what happened, without the reason; None for what is not worth telling.

    `place` is where the job's newest attempt is or was, if anywhere.
    """
    match event:
        case e.Placed():
            return f"starting on {where(event.placement)}"
        case e.Started():
            return _started(event, place)
        case e.CheckpointSaved():
            return _saved(event)
        case e.MemberEnded():
            return f"rank {event.rank} has ended{_code_of(event.end.exit_code)}"
        case e.Finished():
            return "completed"
        case e.Failed() | e.Retried():
            return _ended_badly(event)
        case e.AttemptLost() | e.GaveWay() if event.reason.code in _OF_MACHINES:
            return _of_machine(event, place)
        case e.StopWished():
            return _stops(event, place)
        case e.Noted():
            return _NOTED.get(event.reason.code, "something is worth knowing")
        case _:
            return _plain(event)


def _plain(event: e.OfJob | e.Brought) -> str | None:
    if isinstance(event, e.Brought):
        return brought_words(event)
    if isinstance(event, e.Waits) and event.reason.code is Code.SWITCHES:
        return "is to switch to on-demand"
    if isinstance(event, e.Waits) and event.reason.code is Code.HOPS:
        return "is to go on on another machine"
    return _PLAIN.get(type(event))


def _saved(event: e.CheckpointSaved) -> str:
    of_rank = f" by rank {event.rank}" if event.rank else ""
    return (
        f"checkpoint {event.checkpoint.name} saved{of_rank} ({size(event.checkpoint.size_bytes)})"
    )


def _stops(event: e.StopWished, place: Placement | None) -> str:
    alone = (Code.LEASE_ENDS, Code.BRINGS_HOME, Code.SWITCHES, Code.HOPS)
    is_for_others = event.wish == "give-way" and event.reason.code not in alone
    what = "gives way" if is_for_others else "is asked to stop"
    return f"{what}{f' on {where(place)}' if place else ''}"


_PLAIN: dict[type[e.OfJob], str] = {
    e.Submitted: "queued",
    e.CancelAsked: "asked to cancel",
    e.PauseAsked: "asked to pause",
    e.ResumeAsked: "asked to go on",
    e.Waits: "waits",
    e.Sized: "asks for other amounts of memory",
    e.Held: "is held back although it fits somewhere",
    e.Parked: "parked until a person acts",
    e.GaveUp: "failed, it can never run",
    e.CheckpointLate: "saves later than it asked for",
    e.DeadlineMissed: "is not done by its deadline",
    e.AttemptLost: "its node fell silent",
    e.Unconfirmed: "its agent is asked how it is: nobody can say whether its order was obeyed",
    e.Cleared: "the lost attempt is out, it can start again",
    e.Cancelled: "cancelled",
    e.Paused: "paused",
    e.GaveWay: "gave way, is queued again",
}

_OF_MACHINES: dict[Code, str] = {
    Code.MACHINE_GONE: "its machine is gone",
    Code.TAKEN_AWAY: "has stopped as its machine is taken away, is queued again",
    Code.BRINGS_HOME: "has stopped to go on at home, is queued again",
    Code.SWITCHES: "has stopped to go on on on-demand, is queued again",
    Code.HOPS: "has stopped to go on on its next machine, is queued again",
    Code.NIGHT: "has stopped as its night closed, is queued again",
    Code.LEASE_ENDS: "has stopped before its lease ended, is queued again",
}

_NOTED: dict[Code, str] = {
    Code.CANNOT_ACT: "something cannot be done now, and is tried again",
    Code.LEFTOVER_STAYS: "something that was left over cannot be removed now, and is tried again",
    Code.CHECKPOINT_DROPPED: "a checkpoint was not kept",
    Code.RESTORE_FAILED: "its checkpoint could not be put back",
    Code.LOG_SHORTENED: "its log was shortened",
    Code.IMAGE_PULLED: "its image was fetched",
    Code.INPUTS_FETCHED: "its inputs come",
    Code.OUTPUTS_DROPPED: "not all that it left was kept",
    Code.TAKEN_AWAY: "what the notice was good for",
    Code.STALE_ATTEMPT: "an attempt that does not count any more reports",
}


def _of_machine(event: e.AttemptLost | e.GaveWay, place: Placement | None) -> str:
    if isinstance(event, e.AttemptLost) and event.reason.code is Code.TAKEN_AWAY:
        return f"its machine{f' {place.node}' if place else ''} is taken away"
    return _OF_MACHINES[event.reason.code]


def gave_way(job: Job) -> int:
    """Return how often a job was stopped for another one."""
    return max(0, job.interruptions - job.retries - job.grows)


def brought_words(event: e.Brought) -> str:
    """Say what was copied from one cloud to another, and for how much: `checkpoint …, 0.05 USD`."""
    paid = f", {small(event.cost)}" if event.cost else ""
    left = event.left
    return (
        f"its checkpoint {event.checkpoint} was brought from {left.provider} {left.region} "
        f"({size(event.size_bytes)}{paid})"
    )


def reason_of(event: Tellable) -> Reason | None:
    """Return the reason that an event carries, if it carries one."""
    found = getattr(event, "reason", None)
    return found if isinstance(found, Reason) else None


def array_words(spec: JobSpec) -> str:
    """Return what tells a member of an array from the others: `lr=1e-3 seed=0`."""
    return " ".join(f"{key}={value}" for key, value in spec.array.items())


def where(placement: Placement) -> str:
    """Name a place: its node, and the devices in brackets; of a gang also how many others."""
    more = f" and {len(placement.others)} more" if placement.others else ""
    if not placement.devices:
        return f"{placement.node}{more}"
    if len(placement.devices) > 2:
        return f"{placement.node} ({counted(len(placement.devices), 'GPU')}){more}"
    return f"{placement.node} ({', '.join(placement.devices)}){more}"


def _started(event: e.Started, place: Placement | None) -> str:
    on = f" on {where(place)}" if place else ""
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    resumed = (
        f", resumed from the checkpoint of attempt {event.resumed_from}"
        if event.resumed_from is not None
        else ""
    )
    return f"running{on}{again}{resumed}"


def _code_of(exit_code: int | None) -> str:
    return f" with exit code {exit_code}" if exit_code is not None else ""


def _ended_badly(event: e.Failed | e.Retried) -> str:
    code = _code_of(event.exit_code)
    if isinstance(event, e.Failed):
        return f"failed{code}"
    larger = " with more" if event.grown is not None else ""
    return f"attempt {event.attempt} ended{code}, will start again{larger}"
