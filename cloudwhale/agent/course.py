"""The course of one attempt on a machine: pure, from its order to its end."""

import math
from dataclasses import replace
from typing import TypeAlias

from cloudwhale.agent import seen
from cloudwhale.agent.actions import (
    Action,
    Close,
    Forget,
    KeepPeaks,
    KeepStop,
    Kill,
    Post,
    Publish,
    SaveOutputs,
    Signal,
    StartShim,
)
from cloudwhale.agent.saved import saved_words
from cloudwhale.agent.seen import ExitRecord, StopWish
from cloudwhale.agent.state import LEASE_S, Attempt, Outputs, Phase, Stopping
from cloudwhale.mailbox.documents import (
    AttemptEnded,
    AttemptStarted,
    CheckpointPublished,
    Remark,
    StartOrder,
)
from cloudwhale.model.job import Checkpoint, Peaks
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, Seconds

KEEP_PEAKS_EVERY_S: Seconds = 5.0  # of a restart, so much of a peak may be forgotten
HARDER_AFTER_S: Seconds = 5.0  # a shim kills within a second or two; then it is hung itself
PUBLISH_AGAIN_S: Seconds = 10.0  # a store that refused once is busy or gone for a while

Turn: TypeAlias = tuple[Attempt | None, tuple[Action, ...]]
"""The attempt as it is now (None: closed) and what to do."""


def next_turn(attempt: Attempt, event: seen.OfOneAttempt, now: Instant, agent: str) -> Turn:
    """Return the attempt after an event of it; an event that comes too late changes nothing."""
    match event:
        case seen.Prepared() if attempt.phase is Phase.PREPARING:
            return _prepared(attempt, event, now, agent)
        case seen.CannotStart() if attempt.phase in (Phase.PREPARING, Phase.STARTING):
            exit = ExitRecord(how=event.how, code=None, ended_at=now, says=event.says)
            return closed(attempt, exit, now, agent)
        case seen.Began() if attempt.phase is Phase.STARTING:
            return _begun(attempt, event.at, now, agent)
        case seen.Over() if attempt.phase in (Phase.STARTING, Phase.RUNNING):
            return _over(attempt, event.exit, now, agent)
        case seen.Lost() if attempt.phase in (Phase.STARTING, Phase.RUNNING):
            return _lost(attempt, event, now, agent)
        case seen.Whole() | seen.Published() | seen.Dropped() | seen.PublishFailed():
            return _of_checkpoint(attempt, event, now, agent)
        case seen.OutputsSaved() | seen.OutputsFailed() if attempt.outputs is Outputs.SAVING:
            return _of_outputs(attempt, event, now, agent)
        case _:
            return attempt, ()


def stopped(attempt: Attempt, wish: StopWish, now: Instant, agent: str) -> Turn:
    """Begin to stop an attempt; one that has not begun ends at once; a second wish changes nothing.

    An attempt whose process is over already ends as it did.
    """
    if attempt.stopping is not None or attempt.phase is Phase.CLOSING:
        return attempt, ()
    if attempt.phase is Phase.PREPARING:
        exit = ExitRecord(how=wish.how, code=None, ended_at=now, says=wish.why)
        return closed(attempt, exit, now, agent)
    return replace(attempt, stopping=stopping(wish, now)), (KeepStop(attempt.key, wish),)


def condemned(attempt: Attempt, wish: StopWish, now: Instant, agent: str) -> Turn:
    """Stop an attempt that must not run on; one that is being stopped has no more time than this.

    What was ordered before keeps its name.
    """
    if attempt.stopping is None or attempt.phase is Phase.PREPARING:
        return stopped(attempt, wish, now, agent)
    soon = min(attempt.stopping.next_at, now + wish.grace_s)
    return replace(attempt, stopping=replace(attempt.stopping, next_at=soon)), ()


def used(attempt: Attempt, using: Peaks, now: Instant, *, keep: bool) -> Turn:
    """Note what the attempt uses; its folder is told of a new peak now and then, or to `keep` it.

    The first peaks are kept at once.
    """
    peaks = attempt.peaks.and_(using)
    attempt = replace(attempt, peaks=peaks)
    is_due = keep or now - attempt.peaks_kept_at >= KEEP_PEAKS_EVERY_S
    if peaks == attempt.kept_peaks or not is_due:
        return attempt, ()
    return replace(attempt, kept_peaks=peaks, peaks_kept_at=now), (KeepPeaks(attempt.key, peaks),)


def stopping(wish: StopWish, now: Instant) -> Stopping:
    """Return the beginning of a stop; also of one that an earlier incarnation had begun."""
    return Stopping(wish=wish, next_at=now + wish.grace_s)


def due(attempt: Attempt, now: Instant, agent: str) -> Turn:
    """Do what time has made due: the next step of a stop, a publish, giving up a publish."""
    if attempt.phase is Phase.CLOSING:
        return _closing_due(attempt, now, agent)
    if attempt.stopping is not None and attempt.phase is not Phase.PREPARING:
        stop, then = _stop_due(attempt, attempt.stopping, now)
        if then:
            return stop, then
    if attempt.whole is not None and not attempt.publishing and now >= attempt.publish_at:
        return _publish(attempt, last=False)
    return attempt, ()


def _stop_due(attempt: Attempt, stop: Stopping, now: Instant) -> tuple[Attempt, tuple[Action, ...]]:
    if attempt.phase is Phase.RUNNING and not stop.signalled:
        signalled = replace(stop, signalled=True, next_at=now + stop.wish.grace_s)
        return replace(attempt, stopping=signalled), (Signal(attempt.key, stop.wish),)
    if now < stop.next_at:
        return attempt, ()
    harder = replace(stop, kills=stop.kills + 1, next_at=now + HARDER_AFTER_S)
    return replace(attempt, stopping=harder), (Kill(attempt.key, hard=stop.kills > 0),)


def may_be_due(attempt: Attempt) -> bool:
    """Say whether time alone may ever ask for something; called for every attempt, so cheap."""
    if attempt.whole is not None or attempt.stopping is not None:
        return True
    return attempt.phase is Phase.CLOSING


def wakes_at(attempt: Attempt) -> Instant:
    """Return when something becomes due for it; infinity when only an event can change it."""
    if attempt.phase is Phase.CLOSING:
        is_busy = attempt.publishing or attempt.outputs is Outputs.SAVING
        return math.inf if is_busy else attempt.publish_at
    times = [attempt.stopping.next_at] if attempt.stopping else []
    if attempt.whole is not None and not attempt.publishing:
        times.append(attempt.publish_at)
    return min(times, default=math.inf)


def closed(attempt: Attempt, exit: ExitRecord, now: Instant, agent: str) -> Turn:
    """End the attempt: nothing of it runs and nothing more is published."""
    how, says = exit.how, exit.says
    had_finished = exit.by_itself and exit.code == 0
    asked = attempt.stopping is not None and attempt.stopping.wish.is_ordered
    if attempt.stopping is not None and not had_finished:
        how = attempt.stopping.wish.how
        says = "; ".join(part for part in (attempt.stopping.wish.why, exit.says) if part)
    report = AttemptEnded(
        at=now, agent=agent, job=attempt.order.job, attempt=attempt.order.attempt,
        how=how, exit_code=exit.code, says=says, ran_s=exit.ran_s,
        unsaved_s=_unsaved_s(attempt, exit), peaks=attempt.peaks, asked=asked and not had_finished,
    )  # fmt: skip
    words = "" if had_finished else saved_words(attempt, exit, report.unsaved_s, now)
    told = (_remark(attempt, Code.TAKEN_AWAY, words, now, agent),) if words else ()
    return None, (*told, Close(report))


def started(attempt: Attempt, now: Instant, agent: str) -> AttemptStarted:
    """Return the report that the attempt runs."""
    restore = attempt.order.restore
    return AttemptStarted(
        at=now, agent=agent, job=attempt.order.job, attempt=attempt.order.attempt,
        resumed_from=restore.attempt if restore else None,
    )  # fmt: skip


def saved(
    attempt: Attempt, checkpoint: Checkpoint, now: Instant, agent: str
) -> CheckpointPublished:
    """Return the report that a checkpoint lies in the store."""
    return CheckpointPublished(
        at=now, agent=agent, job=attempt.order.job, attempt=attempt.order.attempt,
        checkpoint=checkpoint,
    )  # fmt: skip


def _prepared(attempt: Attempt, event: seen.Prepared, now: Instant, agent: str) -> Turn:
    ready = replace(attempt, phase=Phase.STARTING)
    notes: list[tuple[Code, str]] = []
    if event.fetched:
        notes.append((Code.IMAGE_PULLED, event.fetched))
    if event.instead is not None:
        notes.append((Code.RESTORE_FAILED, event.says))
        ready = replace(ready, order=attempt.order.but(restore=event.instead))
    told = [_remark(attempt, code, says, now, agent) for code, says in notes]
    return ready, (*told, StartShim(attempt.key))


def _begun(attempt: Attempt, at: Instant, now: Instant, agent: str) -> Turn:
    running = replace(
        attempt,
        phase=Phase.RUNNING,
        began_at=at,
        publish_at=now + every_s(attempt.order),
    )
    return running, (Post(started(running, now, agent)),)


def _over(attempt: Attempt, exit: ExitRecord, now: Instant, agent: str) -> Turn:
    told: tuple[Action, ...] = ()
    if attempt.phase is Phase.STARTING and exit.code is not None:
        # It was over before it was seen to begin; the controller hears of both, in order.
        running, told = _begun(attempt, exit.ended_at - exit.ran_s, now, agent)
        attempt = running or attempt
    closing = replace(
        attempt, phase=Phase.CLOSING, exit=exit, whole=None, publish_at=now,
        give_up_at=now + LEASE_S,
    )  # fmt: skip
    return closing, told


def _lost(attempt: Attempt, event: seen.Lost, now: Instant, agent: str) -> Turn:
    began_at = event.at if attempt.began_at is None else attempt.began_at
    ended_at = max(event.at, began_at)
    exit = ExitRecord(
        how="shim-lost", code=None, ended_at=ended_at, ran_s=ended_at - began_at,
        says="the shim that watched the job died; what was left of the job was killed"
        + (f" ({event.says})" if event.says else ""),
    )  # fmt: skip
    return _over(attempt, exit, now, agent)


def _of_checkpoint(
    attempt: Attempt,
    event: seen.Whole | seen.Published | seen.Dropped | seen.PublishFailed,
    now: Instant,
    agent: str,
) -> Turn:
    if isinstance(event, seen.Whole):
        over = attempt.phase is Phase.CLOSING  # the last look will find it
        return (attempt if over else replace(attempt, whole=event)), ()
    free = replace(attempt, publishing=False, looked=False)
    if isinstance(event, seen.PublishFailed):
        return replace(free, publish_at=now + PUBLISH_AGAIN_S), ()
    told: tuple[Action, ...] = ()
    if isinstance(event, seen.Dropped):
        says = f"{event.name}: {event.says}"
        free = replace(free, whole=None)
        told = (_remark(attempt, Code.CHECKPOINT_DROPPED, says, now, agent),)
    elif event.checkpoint is None:
        # Not at once again: a publisher that finds nothing would be asked in a circle.
        free = replace(free, whole=None, publish_at=now + PUBLISH_AGAIN_S)
    else:
        free, told = _published(free, event.checkpoint, now, agent)
    if free.exit is None:
        return free, told
    if not attempt.looked:  # it was begun while the process lived: look once more
        return replace(free, publish_at=now), told
    last, then = _after_the_last_look(free, free.exit, now, agent)
    return last, (*told, *then)


def _after_the_last_look(attempt: Attempt, exit: ExitRecord, now: Instant, agent: str) -> Turn:
    """Store what the job has left, if it has ended by itself; a stopped one goes on elsewhere."""
    if attempt.order.outputs and (exit.by_itself or exit.code == 0):
        return replace(attempt, outputs=Outputs.SAVING), (SaveOutputs(attempt.key),)
    return closed(attempt, exit, now, agent)


def _of_outputs(
    attempt: Attempt, event: seen.OutputsSaved | seen.OutputsFailed, now: Instant, agent: str
) -> Turn:
    if attempt.exit is None:
        return attempt, ()
    if isinstance(event, seen.OutputsFailed):
        at = now + PUBLISH_AGAIN_S
        return replace(attempt, outputs=Outputs.REFUSED, publish_at=at), ()
    told = (_remark(attempt, Code.OUTPUTS_DROPPED, event.says, now, agent),) if event.says else ()
    nothing, close = closed(attempt, attempt.exit, now, agent)
    return nothing, (*told, *close)


def _published(
    attempt: Attempt, checkpoint: Checkpoint, now: Instant, agent: str
) -> tuple[Attempt, tuple[Action, ...]]:
    keep = max(1, attempt.order.checkpoint.keep)
    restored = attempt.order.restore
    # What it began from counts until as many of its own are there; then all older ones go with it.
    first = (restored,) if restored is not None and len(attempt.published) < keep else ()
    everything = (*first, *attempt.published, checkpoint)
    told: tuple[Action, ...] = (Post(saved(attempt, checkpoint, now, agent)),)
    # What a gang has in common its controller knows, and forgets what lies beyond it.
    if len(everything) > keep and attempt.order.gang is None:
        told = (*told, Forget(attempt.key, everything[:-keep]))
    kept = replace(
        attempt,
        published=(*attempt.published, checkpoint)[-keep:],
        stored_at=now,
        seq=max(attempt.seq, checkpoint.seq),
        publish_at=now + every_s(attempt.order),
    )
    waiting = attempt.whole
    if waiting is not None and waiting.saved_at <= checkpoint.saved_at:
        kept = replace(kept, whole=None)
    return kept, told


def every_s(order: StartOrder) -> Seconds:
    """Return how long the next checkpoint is kept back at least.

    A rank of a gang publishes each: what one leaves out, no other rank has in common with it.
    """
    return order.checkpoint.every_s if order.gang is None else 0.0


def _publish(attempt: Attempt, *, last: bool) -> Turn:
    seq = attempt.seq + 1
    busy = replace(attempt, seq=seq, publishing=True, looked=last)
    return busy, (Publish(attempt.key, seq, last),)


def _closing_due(attempt: Attempt, now: Instant, agent: str) -> Turn:
    is_busy = attempt.publishing or attempt.outputs is Outputs.SAVING
    if attempt.exit is None or is_busy or now < attempt.publish_at:
        return attempt, ()
    if now >= attempt.give_up_at:
        return given_up(attempt, f"for {LEASE_S:.0f} s", now, agent)
    if attempt.outputs is Outputs.REFUSED:
        return replace(attempt, outputs=Outputs.SAVING), (SaveOutputs(attempt.key),)
    return _publish(attempt, last=True)


def given_up(attempt: Attempt, when: str, now: Instant, agent: str) -> Turn:
    """End an attempt that is closing, although the store has not taken all of it: that is said."""
    if attempt.exit is None:
        return attempt, ()
    if attempt.outputs is Outputs.UNASKED:
        code, says = Code.CHECKPOINT_DROPPED, "the last checkpoint could not be published"
    else:
        code, says = Code.OUTPUTS_DROPPED, "what it has left could not be stored"
    nothing, close = closed(attempt, attempt.exit, now, agent)
    return nothing, (_remark(attempt, code, f"{says} {when}", now, agent), *close)


def _remark(attempt: Attempt, code: Code, says: str, now: Instant, agent: str) -> Post:
    order = attempt.order
    return Post(
        Remark(at=now, agent=agent, job=order.job, attempt=order.attempt, code=code, says=says)
    )


def _unsaved_s(attempt: Attempt, exit: ExitRecord) -> Seconds:
    """Return the run time since the newest published checkpoint was saved, or since the start."""
    if not attempt.published:
        return exit.ran_s
    return min(exit.ran_s, max(0.0, exit.ended_at - attempt.published[-1].saved_at))
