"""What an agent does about what it sees of its machine: tells, remembers, stops; pure."""

from dataclasses import replace

from cloudwhale.agent import course, guard, seen
from cloudwhale.agent.actions import Action, Post
from cloudwhale.agent.answers import Answer, turned
from cloudwhale.agent.seen import StopWish
from cloudwhale.agent.state import AgentState, Attempt, Phase
from cloudwhale.mailbox.documents import Heartbeat, Joined, Noticed
from cloudwhale.model.node import Facts, Measured
from cloudwhale.model.reason import Code
from cloudwhale.model.units import GiB, Instant, Seconds

TELL_AGAIN_S: Seconds = 2.0  # a neighbour that grows all the time is not told of more often
TELLING_GIB: GiB = 1.0  # as much more or less in others' hands may change where a job goes


def joined(state: AgentState, facts: Facts, now: Instant) -> Joined:
    """Return the report that the agent is there, with what its machine has."""
    return Joined(
        at=now, agent=state.agent, facts=facts, public_key=state.public_key,
        attempts=tuple(state.attempts), fence=state.fence, lease_s=state.lease_s,
    )  # fmt: skip


def heard(state: AgentState, now: Instant) -> Answer:
    """Say that the agent is there, and what is used of its machine."""
    beat = Heartbeat(at=now, agent=state.agent, measured=state.measured)
    return replace(state, told=state.measured, beat_at=now), (Post(beat),)


def reaction(
    state: AgentState, event: seen.Used | seen.Devices | seen.Runtimes | seen.Noted, now: Instant
) -> Answer:
    """Return what comes of something that was seen of the machine."""
    match event:
        case seen.Used():
            return _used(state, event, now)
        case seen.Devices():
            return _devices(state, event, now)
        case seen.Runtimes():
            return _runtimes(state, event, now)
        case seen.Noted():
            noticed = Noticed(at=now, agent=state.agent, code=event.code, says=event.says)
            return state, (Post(noticed),)


def _used(state: AgentState, event: seen.Used, now: Instant) -> Answer:
    """Remember each attempt's peaks, stop what has outgrown what it declared, tell what matters."""
    state, actions = replace(state, measured=event.measured), list[Action]()
    for key, using in event.by.items():
        attempt = state.attempts.get(key)
        if attempt is None or attempt.phase is Phase.CLOSING:
            continue
        wish = guard.outgrown(attempt.order, using.gpu_gib)
        wish = wish or guard.shut_out(attempt.order, using.shut)
        state, more = turned(state, key, course.used(attempt, using.now, now, keep=bool(wish)))
        actions += more
        if wish is not None:
            state, more = _condemned(state, attempt.key, wish, now)
            actions += more
    if now - state.beat_at >= TELL_AGAIN_S and differs(state.told, event.measured):
        state, more = heard(state, now)
        actions += more
    return state, tuple(actions)


def _devices(state: AgentState, event: seen.Devices, now: Instant) -> Answer:
    """Tell which GPUs there are now, and stop the attempts that have lost theirs."""
    if state.facts is None:
        return state, ()
    before = {one.id for one in state.facts.devices if not one.declared}
    present = {one.id for one in event.devices}
    gone = frozenset((state.gone | before) - present)
    stand_ins = tuple(one for one in state.facts.devices if one.declared)
    facts = state.facts.but(devices=(*event.devices, *stand_ins), links=event.links)
    actions: list[Action] = []
    if facts != state.facts:
        state = replace(state, facts=facts)
        actions += [_noticed(state, gone, state.gone, now), Post(joined(state, facts, now))]
    state = replace(state, gone=gone)
    for attempt in _under_way(state):
        wish = guard.bereft(attempt.order, present)
        if wish is not None:
            state, more = _condemned(state, attempt.key, wish, now)
            actions += more
    return state, tuple(actions)


def _runtimes(state: AgentState, event: seen.Runtimes, now: Instant) -> Answer:
    """Tell how jobs can be run now; those that run already go on, as their shims see to them."""
    if state.facts is None or event.runtimes == state.facts.runtimes:
        return state, ()
    facts = state.facts.but(runtimes=event.runtimes, images=event.images)
    says = (
        "Docker answers now: jobs with an image can run here"
        if "container" in event.runtimes
        else "Docker no longer answers: jobs with an image cannot start here"
    )
    noticed = Noticed(at=now, agent=state.agent, code=Code.RUNTIME, says=says)
    return replace(state, facts=facts), (Post(noticed), Post(joined(state, facts, now)))


def differs(told: Measured | None, now: Measured) -> bool:
    """Say whether others than our jobs use so much more or less of a GPU that it must be told."""
    before = {} if told is None else told.devices
    if before.keys() != now.devices.keys():
        return True
    return any(
        abs(one.foreign_gib - before[name].foreign_gib) >= TELLING_GIB
        for name, one in now.devices.items()
    )


def _noticed(state: AgentState, gone: frozenset[str], was: frozenset[str], now: Instant) -> Action:
    lost, back = sorted(gone - was), sorted(was - gone)
    parts = [f"{', '.join(lost)} no longer answers"] if lost else []
    parts += [f"{', '.join(back)} answers again"] if back else []
    says = "; ".join(parts) or "its GPUs are others than before"
    return Post(Noticed(at=now, agent=state.agent, code=Code.DEVICE_LOST, says=says))


def _under_way(state: AgentState) -> list[Attempt]:
    return [one for one in state.attempts.values() if one.phase is not Phase.CLOSING]


def _condemned(state: AgentState, key: seen.Key, wish: StopWish, now: Instant) -> Answer:
    attempt = state.attempts[key]
    return turned(state, key, course.condemned(attempt, wish, now, state.agent))
