"""The world as seen against the world as recorded: lost, late, unposted, unwanted, asleep."""

from collections.abc import Iterator
from dataclasses import dataclass

from cloudwhale.model import plan as p
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState, Wish
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning import ganging
from cloudwhale.planning.next_machines import has_saved, is_retried_on, is_spent
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.rules import Patience

A_LITTLE_S: Seconds = 0.001
LISTENS_S: Seconds = 0.25


@dataclass(frozen=True, slots=True)
class Found:
    """What has to be done about what was seen."""

    steps: tuple[p.Step, ...]
    look_again_at: Instant | None


def differences(world: World, patience: Patience) -> Found:
    """Compare the world as seen with the world as recorded."""
    steps: list[p.Step] = []
    look_again_at: Instant | None = None
    on_node = _attempts_by_node(world)
    for node in world.nodes.values():
        steps += _lost(node, world, patience, on_node.get(node.id, []))
        steps += _asleep(node, world, on_node.get(node.id, []))
        look_again_at = earliest(look_again_at, _judged_at(node, world, patience))
    for job in world.jobs.values():
        if _is_calm(job):
            continue  # most of them, and nothing of theirs can differ
        steps += _of_job(job, world, patience)
        times = (job_judged_at(job, world.now), _out_judged_at(job, world, patience))
        look_again_at = earliest(look_again_at, *times)
    return Found(tuple(steps), look_again_at)


def _is_calm(job: Job) -> bool:
    """Say whether a job can neither differ from what is recorded nor become late."""
    if job.wish is not None:
        return False
    if job.state is JobState.PENDING:
        return True
    if job.ranks:
        return False
    posted = job.order_posted and job.state in (JobState.STARTING, JobState.RUNNING)
    return posted and job.spec.max_duration_s is None and job.spec.checkpoint is None


def _attempts_by_node(world: World) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in world.jobs.values():
        if job.state in HOLDS_A_PLACE and job.placement is not None:
            for name in job.placement.nodes:
                found.setdefault(name, []).append(job)
    return found


# -- nodes -----------------------------------------------------------------------------------


def _silence_s(node: Node, world: World) -> Seconds | None:
    """Return how long the node's agent has said nothing, or None when it was never heard."""
    sighting = world.sightings.get(node.id)
    return None if sighting is None else max(0.0, world.now - sighting.heard_at)


def _lost(node: Node, world: World, patience: Patience, here: list[Job]) -> Iterator[p.Step]:
    silent_s = _silence_s(node, world)
    if node.state not in (NodeState.READY, NodeState.DRAINING) or silent_s is None:
        return
    if _is_gone(node, world):
        return  # nobody waits for its lease: it is no more
    lease_s = patience.lost_after_s(node)
    if silent_s < lease_s:
        return
    reason = Reason(
        code=Code.NODE_LOST,
        says=f"{node.id} has said nothing for {silent_s:.0f} s, "
        f"as long as its lease of {lease_s:g} s",
        change=f"{node.id} is heard again, or its silence lasts "
        f"{patience.clock_skew_s:g} s longer and the job starts elsewhere",
    )
    lost = tuple((job.id, job.attempt) for job in here if job.state is not JobState.RECOVERING)
    yield p.DeclareLost(node=node.id, silent_s=silent_s, attempts=lost, reason=reason)


def _asleep(node: Node, world: World, here: list[Job]) -> Iterator[p.Step]:
    sighting = world.sightings.get(node.id)
    if not node.owned or sighting is None or sighting.agent_alive is not False:
        return
    if here or any(job.state is JobState.PENDING for job in world.jobs.values()):
        yield p.WakeAgent(node=node.id)


def _judged_at(node: Node, world: World, patience: Patience) -> Instant | None:
    silent_s = _silence_s(node, world)
    if silent_s is None or node.state is NodeState.EXPECTED:
        return None
    is_lost = node.state is NodeState.LOST
    borne_s = patience.out_after_s(node) if is_lost else patience.lost_after_s(node)
    return _once_silent(borne_s - silent_s, world.now)


def _once(left_s: Seconds, now: Instant) -> Instant | None:
    """Return when the rest of a time has passed for certain; None when it has.

    A sum of floats may fall short by a little: what is not due yet is looked at a little later.
    """
    return now + left_s + A_LITTLE_S if left_s > 0 else None


def _once_silent(left_s: Seconds, now: Instant) -> Instant | None:
    """Return when the rest of a silence has passed.

    Not at once: while nobody listens it gets no longer, however little is left of it.
    """
    return _once(max(left_s, LISTENS_S) if left_s > 0 else left_s, now)


# -- jobs ------------------------------------------------------------------------------------


def _of_job(job: Job, world: World, patience: Patience) -> Iterator[p.Step]:
    if job.state in (JobState.STARTING, JobState.RUNNING):
        yield from _unposted(job, world.now)
        yield from _over_limit(job, world.now)
        yield from _late(job, world.now)
    elif job.state is JobState.RECOVERING:
        yield from _recovering(job, world, patience)
    else:
        yield from _unwanted(job)


def _unposted(job: Job, now: Instant) -> Iterator[p.Step]:
    """A stop is safe without a start: an agent never starts what it was told to stop."""
    if job.ranks:
        yield from ganging.orders(job, now)
        if gone := ganging.beyond(job):
            yield p.ForgetSaves(job=job.id, attempt=job.attempt, manifests=gone)
    elif job.wish is not None:
        if not job.stop_posted:
            yield p.PostStop(job=job.id, attempt=job.attempt)
    elif not job.order_posted:
        yield p.PostStart(job=job.id, attempt=job.attempt)


def _over_limit(job: Job, now: Instant) -> Iterator[p.Step]:
    limit_s = job.spec.max_duration_s
    if job.state is not JobState.RUNNING or job.wish is not None or limit_s is None:
        return
    if job.ran_s(now) >= limit_s:
        reason = Reason(
            code=Code.MAX_DURATION,
            says=f"has run for {job.ran_s(now):.0f} s; its max_duration is {limit_s:g} s",
            change="raise max_duration and submit it again",
        )
        yield p.AskToStop(job=job.id, attempt=job.attempt, wish="limit", reason=reason)


def _late_at(job: Job) -> Instant | None:
    rule, begun = job.spec.checkpoint, job.started_at
    if rule is None or begun is None or job.late_said or job.state is not JobState.RUNNING:
        return None
    saved = job.checkpoint.saved_at if job.checkpoint is not None else begun
    return max(begun, saved) + 2 * rule.every_s


def is_late(job: Job, now: Instant) -> bool:
    """Say whether a job is to be told that it saves too seldom."""
    late_at = _late_at(job)
    return late_at is not None and now >= late_at


def _late(job: Job, now: Instant) -> Iterator[p.Step]:
    late_at = _late_at(job)
    if late_at is None or now < late_at:
        return
    every_s = job.spec.checkpoint.every_s if job.spec.checkpoint is not None else 0.0
    since_s = now - late_at + 2 * every_s
    reason = Reason(
        code=Code.CHECKPOINT_LATE,
        says=f"no new checkpoint for {since_s:.0f} s; checkpoint.every is {every_s:g} s",
        change="save more often, or raise checkpoint.every",
    )
    yield p.Late(job=job.id, attempt=job.attempt, reason=reason)


def _recovering(job: Job, world: World, patience: Patience) -> Iterator[p.Step]:
    if job.ranks:
        yield from _gang_recovering(job, world, patience)
        return
    node = world.nodes.get(job.placement.node) if job.placement is not None else None
    silent_s = None if node is None else _silence_s(node, world)
    if node is None or silent_s is None:
        return
    if _is_gone(node, world) or world.now >= _out_at(job, node, world, patience):
        yield from _out_for_certain(job, world, silent_s)
    elif silent_s < patience.lost_after_s(node):
        yield from _heard_again(job, node, world.now)


def _out_judged_at(job: Job, world: World, patience: Patience) -> Instant | None:
    """Return when a lost attempt is out for certain, if nothing else happens before."""
    if job.state is not JobState.RECOVERING or job.placement is None:
        return None
    nodes = [world.nodes[name] for name in job.placement.nodes if name in world.nodes]
    heard = [node for node in nodes if _silence_s(node, world) is not None]
    times = [_out_at(job, node, world, patience) for node in heard]
    return earliest(*(_once_silent(at - world.now, world.now) for at in times))


def _heard_again(job: Job, node: Node, now: Instant) -> Iterator[p.Step]:
    """Its machine is there, or is there again: the answer tells how the attempt is.

    Of one that is given back, or taken away, nobody asks for anything but a stop.
    """
    takes_orders = node.state is NodeState.READY or (
        node.owned and node.state is NodeState.DRAINING
    )
    if takes_orders or (node.state is NodeState.DRAINING and job.wish is not None):
        yield from _unposted(job, now)


def _gang_recovering(job: Job, world: World, patience: Patience) -> Iterator[p.Step]:
    """Stop what is left of a gang; it is out once each of its ranks has ended, or is out."""
    lost_s: list[Seconds] = []
    is_out = True
    for name, rank in zip(job.placement.nodes if job.placement else (), job.ranks, strict=False):
        if rank.end is not None:
            continue
        node = world.nodes.get(name)
        silent_s = None if node is None else _silence_s(node, world)
        if node is None or silent_s is None:
            is_out = False  # nobody knows
        elif _is_gone(node, world) or world.now >= _out_at(job, node, world, patience):
            lost_s.append(silent_s)
        else:
            is_out = False
    if is_out:
        yield from _out_for_certain(job, world, min(lost_s, default=0.0))
    else:
        yield from ganging.orders(job, world.now)


def _out_at(job: Job, node: Node, world: World, patience: Patience) -> Instant:
    """Return from when on nothing of a lost attempt runs on a silent node for certain.

    Its agent must have stopped it by then for want of the store. An order that it reads as soon as
    it has its store again it obeys for as long after that was written: and it may have been written
    when the node had been silent for long.
    """
    since = world.now - (_silence_s(node, world) or 0.0)
    if job.placed_at is not None:
        since = max(since, job.placed_at)
    if not job.order_posted and not job.ranks and node.lost_at is not None:
        since = max(since, node.lost_at)  # until then it was tried again and again to be written
    return since + patience.out_after_s(node)


def _is_gone(node: Node, world: World) -> bool:
    """Say whether a rented machine is no more, as its provider says: nothing runs there."""
    rental = world.rentals.get(node.id)
    return rental is not None and rental.ended_at is not None


def _out_for_certain(job: Job, world: World, silent_s: Seconds) -> Iterator[p.Step]:
    """A lost attempt is out once its agent must have stopped it for want of the store."""
    rule, spent = job.spec.retry, is_spent(job)
    if job.wish is Wish.CANCEL:
        says = "cancelled, as asked; its node was lost"
        reason = Reason(code=Code.USER_ASKED, says=says)
        yield p.Drop(job=job.id, wish="cancel", reason=reason)
    elif spent or not is_retried_on(job, world.rentals):
        causes = ", ".join(rule.on) or "nothing"
        says = f"its node was lost; retry.max is {rule.max}, retry.on is {causes}"
        code = Code.RETRIES_SPENT if spent else Code.NODE_LOST
        change = "submit it again; its newest checkpoint is kept"
        yield p.GiveUp(job=job.id, reason=Reason(code=code, says=says, change=change))
    else:
        saved = job.checkpoint.saved_at if job.checkpoint is not None else None
        begun, until = job.started_at, _ran_until(job, world, world.now - silent_s)
        lost_s = 0.0 if begun is None else max(0.0, until - max(begun, saved or begun))
        yield p.Clear(job=job.id, attempt=job.attempt, lost_s=lost_s, counts=not has_saved(job))


def _ran_until(job: Job, world: World, heard_at: Instant) -> Instant:
    """Return when a lost attempt ran last: until its machine ended, or as long as it was heard."""
    rental = None if job.placement is None else world.rentals.get(job.placement.node)
    if rental is None:
        return heard_at
    if rental.ended_at is not None:
        return max(heard_at, min(rental.ended_at, world.now))
    # A controller that was away counts its silence anew; there is no machine any more all the same.
    return heard_at if rental.goes_at is None else min(heard_at, rental.goes_at)


def _unwanted(job: Job) -> Iterator[p.Step]:
    if job.wish is Wish.CANCEL:
        reason = Reason(code=Code.USER_ASKED, says="cancelled, as asked; it was not running")
        yield p.Drop(job=job.id, wish="cancel", reason=reason)
    elif job.wish is Wish.PAUSE and job.state is JobState.PENDING:
        reason = Reason(
            code=Code.PAUSED,
            says="paused, as asked; it was not running",
            change=f"`cloudwhale resume {job.id}` queues it again",
        )
        yield p.Drop(job=job.id, wish="pause", reason=reason)


def job_judged_at(job: Job, now: Instant) -> Instant | None:
    """Return when time alone makes something of a job due: its limit, or a late checkpoint."""
    limit_s = job.spec.max_duration_s
    limit_at = None
    if limit_s is not None and job.state is JobState.RUNNING and job.wish is None:
        limit_at = _once(limit_s - job.ran_s(now), now)
    times = (limit_at, _late_at(job), ganging.stopped_at(job))
    return earliest(*(at for at in times if at is not None and at > now))
