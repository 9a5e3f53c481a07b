"""The checker's rule about who is brought home: from rented to owned, rested, saved, with room."""

from collections.abc import Iterator

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.world import World
from cloudwhale.planning.checker_waits import beside, takes
from cloudwhale.planning.fault import Fault, Rule
from cloudwhale.planning.rules import Rules

REST_S = 1800.0  # README, "brings-home": at most once in half an hour
SAVED_WITHIN_S = 90.0
CLOSE = 1e-6


def homes(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Who is brought home comes alone, from a rented machine, has just saved, and has room here."""
    coming = [job.id for job in world.jobs.values() if _is_coming(job)]
    for step in plan.steps:
        if not isinstance(step, p.AskToStop) or step.reason.code.value != "brings-home":
            continue
        job = world.jobs.get(step.job)
        if job is None:
            continue
        for why in _broken(job, world, rules):
            yield Fault("homes", f"{job.id} is brought home although {why}")
        if coming:
            yield Fault("homes", f"{job.id} is brought home while {coming[0]} is on its way")
        elif not any(_has_room(node, job, plan, world) for node in world.nodes.values()):
            yield Fault("homes", f"{job.id} is brought home, and no owned node has room for it")
        coming.append(job.id)


def _is_coming(job: Job) -> bool:
    told = job.reason is not None and job.reason.code.value == "brings-home"
    return told and (job.state.value == "pending" or job.wish is not None)


def _broken(job: Job, world: World, rules: Rules) -> Iterator[str]:
    node = None if job.placement is None else world.nodes.get(job.placement.node)
    saved, started = job.checkpoint, job.started_at
    if not rules.bring_home:
        yield "that is switched off"
    if node is None or node.owned:
        yield "it is on no rented machine"
    if job.state.value != "running" or job.wish is not None:
        yield f"it is {job.state}, and somebody wants of it: {job.wish}"
    if not job.spec.preemptible:
        yield "it is not preemptible"
    if saved is None or saved.attempt != job.attempt:
        yield "it has saved nothing there"
    elif world.now - saved.saved_at > SAVED_WITHIN_S + CLOSE:
        yield f"it saved {world.now - saved.saved_at:g} s ago"
    if job.interruptions and (started is None or world.now - started < REST_S - CLOSE):
        yield "it has moved less than half an hour ago"


def _has_room(node: Node, job: Job, plan: p.Plan, world: World) -> bool:
    """Say whether an owned node takes the job beside all that are there or come in this round."""
    if not node.owned or node.state.value != "ready":
        return False
    places = [step for step in plan.steps if isinstance(step, p.Place)]
    return takes(node, job, beside(node, world, world.jobs.values(), places))


RULES: tuple[Rule, ...] = (homes,)
