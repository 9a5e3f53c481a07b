"""What a rented machine does about its lease; pure.

While the controller is heard, nothing. When it is not, no new order is taken, what runs goes on,
and with nothing left to do the machine ends itself at once. Jobs are stopped, checkpoint first, so
that they have landed when the lease is over; then the machine ends whatever is left.
"""

import math
from dataclasses import replace

from cloudwhale.agent import course, taking
from cloudwhale.agent.actions import Action, KeepTenure, Kill, Leave
from cloudwhale.agent.answers import Answer, turned
from cloudwhale.agent.landing import Landing, land, stoppable
from cloudwhale.agent.seen import Tenure
from cloudwhale.agent.state import AgentState, Attempt, Phase
from cloudwhale.mailbox import documents as d
from cloudwhale.model.terms import SAVING_S, WATCHED_S
from cloudwhale.model.units import Instant, Seconds

SKEW_S: Seconds = 30.0  # as far as two clocks may differ


def begun(number: int, away_s: Seconds, now: Instant) -> Tenure:
    """Return the lease that a machine was launched with: its controller was heard just now."""
    return Tenure(number, now + min(WATCHED_S, away_s), now + away_s)


def renewed(state: AgentState, order: d.LeaseOrder, now: Instant) -> Answer:
    """Hold to a later lease, or to the same one for longer; an older one changes nothing.

    Its seconds count from when it is read. One that has lain for longer than clocks may differ
    counts from when it was written: so much less is paid for.
    """
    tenure = state.tenure
    if tenure is None or order.number < tenure.number:
        return state, ()
    begins = now - max(0.0, now - order.at - SKEW_S)
    watched, away = begins + order.watched_s, begins + order.away_s
    if order.number == tenure.number:
        watched, away = max(watched, tenure.watched_until), min(away, tenure.away_until)
    told = Tenure(order.number, min(watched, away), away)
    lands = state.lands and order.number == tenure.number
    return replace(state, tenure=told, lands=lands), (KeepTenure(told),)


def refusal(state: AgentState, order: d.StartOrder, now: Instant) -> str:
    """Say why a rented machine takes no new attempt now; empty when it does."""
    tenure = state.tenure
    taken = taking.refusal(state, order, now)
    if taken:
        return taken
    if tenure is None:
        return ""
    if now >= tenure.watched_until:
        return "this machine's lease was not renewed in time: it takes no new orders"
    if now >= _lands_at(tenure, order):
        left_s = max(0.0, tenure.away_until - now)
        return f"this machine's lease ends in {left_s:.0f} s"
    return ""


def due(state: AgentState, now: Instant) -> Answer:
    """Do what a notice or the lease makes due: stop jobs in time, end the machine at last."""
    state, actions = taking.due(state, now)
    state, more = _of_lease(state, now)
    return state, (*actions, *more)


def _of_lease(state: AgentState, now: Instant) -> Answer:
    tenure = state.tenure
    if tenure is None or state.left:
        return state, ()
    if now >= tenure.away_until:
        return _over(state, now)
    if now >= _quits_at(state, tenure):
        return replace(state, left=True), (Leave(ends_machine=True),)
    keys = [one.key for one in stoppable(state) if now >= _lands_at(tenure, one.order)]
    if not keys:
        return state, ()
    grace_s = tenure.away_until - now - SAVING_S
    why = f"this machine's lease ends in {tenure.away_until - now:.0f} s"
    return land(replace(state, lands=True), keys, Landing(why, grace_s), now)


def _over(state: AgentState, now: Instant) -> Answer:
    """End the machine with whatever is left; what could not be stored in time is said."""
    actions: list[Action] = []
    for key, one in state.attempts.items():
        if one.phase is Phase.CLOSING:
            turn = course.given_up(one, "before this machine's lease was over", now, state.agent)
            state, more = turned(state, key, turn)
            actions += more
        elif _lives(one):
            actions.append(Kill(key, hard=True))
    return replace(state, left=True), (*actions, Leave(ends_machine=True))


def wakes_at(state: AgentState) -> Instant:
    """Return when lease or notice make something due; infinity where nobody rents the machine."""
    tenure = state.tenure
    if tenure is None:
        return taking.wakes_at(state)
    lands = [_lands_at(tenure, one.order) for one in stoppable(state)]
    return min(tenure.away_until, _quits_at(state, tenure), taking.wakes_at(state), *lands)


def ends_machine(state: AgentState) -> bool:
    """Say whether the machine ends with its agent: a rented one does, unless it is restarted."""
    return state.tenure is not None and state.land_until is None


def _quits_at(state: AgentState, tenure: Tenure) -> Instant:
    """Return when the machine ends because nothing runs and nobody is heard who could order."""
    if state.attempts or state.goes_since is not None:
        return math.inf
    if state.lands:
        return state.idle_since
    return min(tenure.watched_until, tenure.away_until - SAVING_S)


def _lands_at(tenure: Tenure, order: d.StartOrder) -> Instant:
    return tenure.away_until - order.checkpoint.grace_s - SAVING_S


def _lives(attempt: Attempt) -> bool:
    return attempt.phase in (Phase.STARTING, Phase.RUNNING)
