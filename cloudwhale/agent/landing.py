"""Stops that the agent itself begins: each job as its own rule says; pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cloudwhale.agent import course
from cloudwhale.agent.actions import Action
from cloudwhale.agent.answers import Answer, turned
from cloudwhale.agent.seen import Key, StopWish
from cloudwhale.agent.state import AgentState, Attempt, Phase
from cloudwhale.model.units import Instant, Seconds


@dataclass(frozen=True, slots=True)
class Landing:
    """Why the agent itself stops attempts, and the longest grace that it can give them."""

    why: str
    grace_s: Seconds
    goes_at: Instant | None = None
    """When the provider takes the machine, if that is why."""


def land(state: AgentState, keys: Iterable[Key], limit: Landing, now: Instant) -> Answer:
    """Begin to stop attempts, each as its own rule says."""
    actions: list[Action] = []
    for key in tuple(keys):
        attempt = state.attempts[key]
        rule = attempt.order.checkpoint
        grace_s = min(rule.grace_s, max(0.0, limit.grace_s))
        since = None if limit.goes_at is None else now
        wish = StopWish(rule.signal, grace_s, limit.why, since=since, goes_at=limit.goes_at)
        state, more = turned(state, key, course.stopped(attempt, wish, now, state.agent))
        actions += more
    return state, tuple(actions)


def storing(state: AgentState, now: Instant) -> AgentState:
    """Let what is whole already be stored at once, while jobs still save."""
    attempts = {
        key: replace(one, publish_at=now) if one.phase is Phase.RUNNING else one
        for key, one in state.attempts.items()
    }
    return replace(state, attempts=attempts)


def stoppable(state: AgentState) -> list[Attempt]:
    """Return the attempts that a stop would still change."""
    return [
        attempt
        for attempt in state.attempts.values()
        if attempt.stopping is None and attempt.phase is not Phase.CLOSING
    ]
