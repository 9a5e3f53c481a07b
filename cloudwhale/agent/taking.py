"""What a rented machine does when its provider says that it will be taken away; pure.

A notice of minutes stops its jobs at once: half of the time is for them to save, the rest for
uploads. One of hours or days changes nothing yet; as soon as it is near it is told again, so that
others are rented, and is like the first. A machine does not end itself for a notice: it is not
billed for what its provider takes.
"""

import math
from dataclasses import replace

from cloudwhale.agent import course
from cloudwhale.agent.actions import Action, Post
from cloudwhale.agent.answers import Answer, turned
from cloudwhale.agent.landing import Landing, land, stoppable, storing
from cloudwhale.agent.seen import Warned
from cloudwhale.agent.state import AgentState, Phase
from cloudwhale.mailbox import documents as d
from cloudwhale.model.terms import SOON_S
from cloudwhale.model.units import Instant, Seconds

UPLOAD_SHARE = 0.5  # of the time that a notice leaves, for what a job saves last
LAST_WORDS_S: Seconds = 3.0  # what is not stored then is not any more, and that is still said
TAKES_IT = "the provider takes this machine away"


def warned(state: AgentState, event: Warned, now: Instant) -> Answer:
    """Tell what the provider says; the sooner of two ends counts, and `due` sees to it."""
    goes_at = now if event.at_once else event.goes_at
    known = math.inf if state.goes_at is None else state.goes_at
    if goes_at is not None and goes_at < known:
        state = replace(state, goes_at=goes_at, goes_why=event.says)
        if now >= _near_at(state):
            state = replace(state, goes_since=now)
    stops = state.goes_since is not None
    told = d.Warned(at=now, agent=state.agent, goes_at=goes_at, stops=stops, says=event.says)
    return state, (Post(told),)


def refusal(state: AgentState, order: d.StartOrder, now: Instant) -> str:
    """Say why a machine that goes takes no new attempt; empty when it does."""
    if state.goes_at is None:
        return ""
    is_near = now >= state.goes_at - _lead_s(order)
    return TAKES_IT if state.goes_since is not None or is_near else ""


def due(state: AgentState, now: Instant) -> Answer:
    """Stop jobs once it is near that the machine goes; give up at last what is not stored."""
    if state.goes_at is None or state.left:
        return state, ()
    actions: list[Action] = []
    if state.goes_since is None:
        if now < _near_at(state):
            return state, ()
        again = d.Warned(at=now, agent=state.agent, goes_at=state.goes_at, says=state.goes_why)
        actions.append(Post(again))
        state = replace(state, goes_since=now)
    state, more = _stopped(state, now)
    actions += more
    if now >= _last_words_at(state):
        state, more = _given_up(state, now)
        actions += more
    return state, tuple(actions)


def wakes_at(state: AgentState) -> Instant:
    """Return when a notice makes something due; infinity without one."""
    if state.goes_at is None:
        return math.inf
    if state.goes_since is None:
        return _near_at(state)
    closing = any(one.phase is Phase.CLOSING for one in state.attempts.values())
    return _last_words_at(state) if closing else math.inf


def _stopped(state: AgentState, now: Instant) -> Answer:
    keys, goes_at = [one.key for one in stoppable(state)], state.goes_at
    if not keys or goes_at is None:
        return state, ()
    grace_s = max(0.0, goes_at - now) * UPLOAD_SHARE
    return land(storing(state, now), keys, Landing(state.goes_why, grace_s, goes_at), now)


def _given_up(state: AgentState, now: Instant) -> Answer:
    """End what could not be stored in time, while there is time to say so."""
    actions: list[Action] = []
    for key, one in state.attempts.items():
        if one.phase is Phase.CLOSING:
            turn = course.given_up(one, "before the machine was taken away", now, state.agent)
            state, more = turned(state, key, turn)
            actions += more
    return state, tuple(actions)


def _near_at(state: AgentState) -> Instant:
    """Return when its jobs have to stop so that each has its whole grace, and as long to upload."""
    if state.goes_at is None:
        return math.inf
    leads = [_lead_s(one.order) for one in state.attempts.values()]
    return state.goes_at - max(leads, default=SOON_S)


def _lead_s(order: d.StartOrder) -> Seconds:
    return max(SOON_S, order.checkpoint.grace_s / UPLOAD_SHARE)


def _last_words_at(state: AgentState) -> Instant:
    """Return when nothing more is waited for; never where the notice left no time at all."""
    if state.goes_at is None or state.goes_since is None:
        return math.inf
    at = state.goes_at - LAST_WORDS_S
    return at if at > state.goes_since else math.inf
