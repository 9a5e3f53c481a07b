"""What an agent does next: pure; what was seen goes in, actions for the rim come out.

The rim (`agent/rim`, or a simulated machine) starts with `AgentState(node, agent)`, tells `Woke`
first, then everything it sees, and a `Tick` no later than `wakes_at` says.
"""

import math
from dataclasses import replace

from cloudwhale.agent import course, seen, sight, taking, tenure
from cloudwhale.agent.actions import Action, Close, Leave, Post, Prepare, Repeat
from cloudwhale.agent.answers import Answer, including, knowing, turned
from cloudwhale.agent.landing import Landing, land, stoppable, storing
from cloudwhale.agent.seen import Seen, StopWish
from cloudwhale.agent.state import HEARTBEAT_S as HEARTBEAT_S
from cloudwhale.agent.state import AgentState, Attempt, Phase
from cloudwhale.mailbox.documents import (
    AttemptEnded,
    IntroduceOrder,
    LeaseOrder,
    LeaveOrder,
    OrderRefused,
    StartOrder,
    StopOrder,
)
from cloudwhale.model.job import Ending
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, Seconds

IDLE_S: Seconds = 60.0  # an agent whose starter is gone waits so long for work, then leaves


def duty(state: AgentState, event: Seen, now: Instant) -> Answer:
    """Return the agent's next state and what it must do; `now` never goes backwards."""
    state, first = _reaction(state, event, now)
    state, then = _due(state, now)
    actions = (*first, *then)
    says = any(isinstance(action, Post | Close) for action in actions)
    if says or state.attempts:
        said_at = now if says else state.said_at
        idle_since = now if state.attempts else state.idle_since
        state = replace(state, said_at=said_at, idle_since=idle_since)
    return state, actions


def wakes_at(state: AgentState) -> Instant:
    """Return the latest time for the next Tick; it may be past: then at once."""
    if state.left:
        return math.inf
    times = [_beats_at(state), _leaves_at(state), tenure.wakes_at(state)]
    times += [course.wakes_at(one) for one in state.attempts.values() if course.may_be_due(one)]
    if state.silent_since is not None:
        times += [_lands_at(state, attempt) for attempt in stoppable(state)]
    if state.orphaned and not state.attempts:
        times.append(state.idle_since + IDLE_S)
    return min(times)


def _reaction(state: AgentState, event: Seen, now: Instant) -> Answer:
    match event:
        case seen.Woke():
            return _awake(state, event, now)
        case seen.Ordered():
            return _ordered(state, event, now)
        case seen.Unreadable():
            return state, _not_understood(state, event, now)
        case seen.Used() | seen.Devices() | seen.Runtimes() | seen.Noted():
            return sight.reaction(state, event, now)
        case seen.Warned():
            return taking.warned(state, event, now)
        case seen.StoreFailed() | seen.StoreWorks():
            since = event.since if isinstance(event, seen.StoreFailed) else None
            return replace(state, silent_since=since), ()
        case seen.Orphaned():
            return replace(state, orphaned=True), ()
        case seen.LeaveAsked():
            until = now + event.land_s + event.upload_s
            going = replace(storing(state, now), leaving=True, land_until=until)
            why = "this machine's agent was told to go"
            return land(going, going.attempts, Landing(why, event.land_s), now)
        case seen.Tick():
            return _ticked(state, now)
        case _:
            return _of_attempt(state, event, now)


def _ticked(state: AgentState, now: Instant) -> Answer:
    # Only here: the orders that were read with an order to leave come first.
    if state.left or now < _leaves_at(state):
        return state, ()
    return replace(state, left=True), (Leave(tenure.ends_machine(state)),)


def _leaves_at(state: AgentState) -> Instant:
    """Return when the agent goes: with nothing to do, or late with the last uploads undone.

    What is undone then, the next agent finds in its folder and does.
    """
    if not state.leaving:
        return math.inf
    if not state.attempts:
        return state.idle_since
    all_over = all(one.phase is Phase.CLOSING for one in state.attempts.values())
    return math.inf if state.land_until is None or not all_over else state.land_until


# -- waking up -------------------------------------------------------------------------------


def _awake(state: AgentState, event: seen.Woke, now: Instant) -> Answer:
    attempts = {
        (found.order.job, found.order.attempt): _adopted(found, now) for found in event.found
    }
    newest = dict(event.newest)
    for job, number in attempts:
        newest[job] = max(number, newest.get(job, 0))
    state = replace(
        state, attempts=attempts, newest=newest, fence=event.fence, said_at=now, idle_since=now,
        facts=event.facts, public_key=event.public_key, beat_at=now,
        tenure=event.tenure,
    )  # fmt: skip
    actions: list[Action] = [Post(sight.joined(state, event.facts, now))]
    for key, attempt in attempts.items():
        state, more = turned(state, key, _resumed(attempt, now, state))
        actions += more
    return state, tuple(actions)


def _adopted(found: seen.Found, now: Instant) -> Attempt:
    """Go on with an attempt; its next checkpoint is due as if this agent had been there always."""
    stopping = course.stopping(found.stop, now) if found.stop else None
    every_s = course.every_s(found.order)
    newest_at = found.published[-1].saved_at if found.published else found.began_at or now
    return Attempt(
        order=found.order,
        phase=Phase.PREPARING if found.began_at is None else Phase.RUNNING,
        began_at=found.began_at,
        stopping=stopping,
        seq=found.seq,
        published=found.published,
        publish_at=min(newest_at, now) + every_s,
        peaks=found.peaks,
        kept_peaks=found.peaks,
    )


def _resumed(attempt: Attempt, now: Instant, state: AgentState) -> course.Turn:
    """Say again what may not have been said, or prepare again what may not have been done.

    What was ordered longer ago than the lease may run elsewhere by now: it never begins here.
    """
    agent = state.agent
    if attempt.phase is Phase.RUNNING:
        again: list[Action] = [Post(course.started(attempt, now, agent))]
        again += [Post(course.saved(attempt, one, now, agent)) for one in attempt.published[-1:]]
        return attempt, tuple(again)
    if attempt.stopping is not None:
        exit = seen.ExitRecord(how="stopped", code=None, ended_at=now)
        return course.closed(attempt, exit, now, agent)
    if now - attempt.order.at < state.lease_s:
        return attempt, (Prepare(attempt.order),)
    says = "it had not begun when this machine's agent went away, for longer than its lease"
    exit = seen.ExitRecord(how="start-failed", code=None, ended_at=now, says=says)
    return course.closed(attempt, exit, now, agent)


# -- orders ----------------------------------------------------------------------------------


def _ordered(state: AgentState, event: seen.Ordered, now: Instant) -> Answer:
    order = event.order
    if isinstance(order, IntroduceOrder):
        known = state.facts
        return state, () if known is None else (Post(sight.joined(state, known, now)),)
    if order.fence < state.fence:
        return state, _refused(
            state, order, Code.STALE_FENCE, now,
            f"the order is of controller epoch {order.fence}, and {state.fence} was seen already",
        )  # fmt: skip
    state = replace(state, fence=order.fence, idle_since=now)
    if isinstance(order, LeaseOrder):
        return tenure.renewed(state, order, now)
    if isinstance(order, LeaveOrder):
        meant = not event.missed and order.agent in ("", state.agent)
        return replace(state, leaving=state.leaving or meant), ()
    if isinstance(order, StopOrder):
        return _stop_ordered(state, order, now)
    if event.missed:
        return _not_started(
            state, order, now, "this machine's agent has lost what it knew of earlier orders"
        )
    return _start_ordered(state, order, now)


def _start_ordered(state: AgentState, order: StartOrder, now: Instant) -> Answer:
    key = (order.job, order.attempt)
    known = state.newest.get(order.job, 0)
    if key in state.attempts:
        attempt = state.attempts[key]
        running = attempt.phase is Phase.RUNNING
        return state, ((Post(course.started(attempt, now, state.agent)),) if running else ())
    if order.attempt == known:
        return state, (Repeat(key),)
    if order.attempt < known:
        return state, _refused(
            state, order, Code.STALE_ATTEMPT, now,
            f"attempt {known} of {order.job} was accepted here, {order.attempt} is older",
        )  # fmt: skip
    if not _is_a_name(order.job):
        return state, _refused(
            state, order, Code.START_FAILED, now, f"{order.job!r} cannot be the name of a folder"
        )
    refused = tenure.refusal(state, order, now) or _too_late(state, order, now)
    if refused:
        return _not_started(state, order, now, refused, how="stopped")
    obstacle = _obstacle(state, order)
    if obstacle:
        return _not_started(state, order, now, obstacle)
    # An order to leave that came earlier is taken back by this one.
    return including(replace(state, leaving=False), Attempt(order=order)), (Prepare(order),)


def _too_late(state: AgentState, order: StartOrder, now: Instant) -> str:
    """Say why an order that lay unread for its lease is not obeyed: it may run elsewhere by now."""
    age_s = now - order.at
    if age_s < state.lease_s:
        return ""
    return f"it was ordered {age_s:.0f} s ago, longer than the lease of this machine's agent"


def _obstacle(state: AgentState, order: StartOrder) -> str:
    """Say why an attempt that is new here cannot be started; empty when it can."""
    older = [number for job, number in state.attempts if job == order.job]
    if older:
        return f"attempt {max(older)} of the job still runs here"
    if state.land_until is not None:
        return "this machine's agent is leaving"
    lost = sorted(one.id for one in order.devices if one.id in state.gone)
    if lost:
        return f"{', '.join(lost)} no longer answers"
    runtimes = state.facts.runtimes if state.facts is not None else ()
    if order.image is not None and "container" not in runtimes:
        return f"Docker did not answer here, and the job wants the image {order.image}"
    return ""


def _not_started(
    state: AgentState, order: StartOrder, now: Instant, says: str, how: Ending = "start-failed"
) -> Answer:
    """End an attempt that never was; it is remembered, so that it can never start later."""
    report = AttemptEnded(
        at=now, agent=state.agent, job=order.job, attempt=order.attempt,
        how=how, exit_code=None, says=says,
    )  # fmt: skip
    newest = max(order.attempt, state.newest.get(order.job, 0))
    return knowing(state, order.job, newest), (Close(report),)


def _stop_ordered(state: AgentState, order: StopOrder, now: Instant) -> Answer:
    key = (order.job, order.attempt)
    attempt = state.attempts.get(key)
    if attempt is not None:
        wish = StopWish(order.signal, order.grace_s, seen.ORDERED)
        return turned(state, key, course.stopped(attempt, wish, now, state.agent))
    if order.attempt <= state.newest.get(order.job, 0):
        return state, (Repeat(key),)
    report = AttemptEnded(
        at=now, agent=state.agent, job=order.job, attempt=order.attempt,
        how="stopped", exit_code=None, says="the attempt was never started here", asked=True,
    )  # fmt: skip
    if not _is_a_name(order.job):
        return state, (Post(report),)
    return knowing(state, order.job, order.attempt), (Close(report),)


def _not_understood(state: AgentState, event: seen.Unreadable, now: Instant) -> tuple[Action, ...]:
    """Refuse an attempt that nobody can start from what was read; others go on as they are."""
    if event.key is None or event.key[1] <= state.newest.get(event.key[0], 0):
        return ()
    job, attempt = event.key
    refusal = OrderRefused(
        at=now, agent=state.agent, job=job, attempt=attempt, code=Code.START_FAILED,
        says=event.says,
    )  # fmt: skip
    return (Post(refusal),)


def _refused(
    state: AgentState, order: StartOrder | StopOrder | LeaveOrder | LeaseOrder, code: Code,
    now: Instant, says: str,
) -> tuple[Action, ...]:  # fmt: skip
    if isinstance(order, LeaveOrder | LeaseOrder):
        return ()  # a refusal names an attempt, and there is none
    refusal = OrderRefused(
        at=now, agent=state.agent, job=order.job, attempt=order.attempt, code=code, says=says,
        fence=state.fence,
    )  # fmt: skip
    return (Post(refusal),)


# -- attempts under way ----------------------------------------------------------------------


def _of_attempt(state: AgentState, event: seen.OfOneAttempt, now: Instant) -> Answer:
    attempt = state.attempts.get(event.key)
    if attempt is None:
        return state, ()
    return turned(state, event.key, course.next_turn(attempt, event, now, state.agent))


def _due(state: AgentState, now: Instant) -> Answer:
    state, actions = tenure.due(state, now)
    state, more = _cut_off(state, now)
    actions = (*actions, *more)
    for key, attempt in state.attempts.items():
        if course.may_be_due(attempt):  # of hundreds that run, none or two
            state, more = turned(state, key, course.due(attempt, now, state.agent))
            actions = (*actions, *more)
    if state.orphaned and not state.attempts and now - state.idle_since >= IDLE_S:
        state = replace(state, leaving=True)
    if now >= _beats_at(state) and not state.left:
        state, more = sight.heard(state, now)
        actions = (*actions, *more)
    return state, actions


def _beats_at(state: AgentState) -> Instant:
    """Return when to be heard again; what is measured is told even if other things are said."""
    if state.measured is None:
        return state.said_at + state.heartbeat_s
    return min(state.said_at, state.beat_at) + state.heartbeat_s


def _cut_off(state: AgentState, now: Instant) -> Answer:
    """Stop what must be over when the lease ends: then its job may be started elsewhere."""
    if state.silent_since is None:
        return state, ()
    keys = [one.key for one in stoppable(state) if now >= _lands_at(state, one)]
    if not keys:
        return state, ()
    why = f"the store was silent for {now - state.silent_since:.0f} s"
    return land(state, keys, Landing(why, state.lease_s / 2), now)


def _lands_at(state: AgentState, attempt: Attempt) -> Instant:
    """Return when an attempt must begin to stop because the store is silent."""
    if state.silent_since is None:
        return math.inf
    grace_s = min(attempt.order.checkpoint.grace_s, state.lease_s / 2)
    kill_s = min(2 * course.HARDER_AFTER_S, state.lease_s / 4)
    return state.silent_since + state.lease_s - grace_s - kill_s


def _is_a_name(job: str) -> bool:
    """Say whether a job's id can be the name of a folder, here and in the store."""
    plain = all(letter.isalnum() or letter in "-_." for letter in job)
    return plain and 0 < len(job) <= 200 and not job.startswith(".")
