"""What duty answers with, and how one attempt's turn becomes part of it; pure."""

from dataclasses import replace
from typing import TypeAlias

from cloudwhale.agent import course
from cloudwhale.agent.actions import Action
from cloudwhale.agent.seen import Key
from cloudwhale.agent.state import AgentState, Attempt

Answer: TypeAlias = tuple[AgentState, tuple[Action, ...]]
"""The agent's next state, and what it must do."""


def turned(state: AgentState, key: Key, turn: course.Turn) -> Answer:
    """Return the state after one attempt's turn; a closed attempt is under way no more."""
    attempt, actions = turn
    if attempt is not None and attempt is state.attempts.get(key):
        return state, actions  # nothing was due of it: most turns
    if attempt is not None:
        return including(state, attempt), actions
    rest = {other: one for other, one in state.attempts.items() if other != key}
    return replace(state, attempts=rest), actions


def including(state: AgentState, attempt: Attempt) -> AgentState:
    """Return the state with an attempt, new or as it is now."""
    known = knowing(state, attempt.order.job, attempt.order.attempt)
    return replace(known, attempts={**state.attempts, attempt.key: attempt})


def knowing(state: AgentState, job: str, number: int) -> AgentState:
    """Return the state that remembers an attempt of a job, so that it never starts again."""
    if state.newest.get(job, 0) >= number:
        return state
    return replace(state, newest={**state.newest, job: number})
