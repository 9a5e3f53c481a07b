"""The checker's rules about time: who gives way, who is held, what is kept for whom, foreign use.

Classes, room and limits are worked out here anew: nothing of the planner's own is asked.
"""

import math
from collections.abc import Iterable, Iterator

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.node import Device, Node
from cloudwhale.model.world import World
from cloudwhale.planning.fault import Fault, Rule
from cloudwhale.planning.rules import Rules

CLASS_STARTS = (0, 34, 67)  # README, "priority": batch, normal, interactive
LONGEST_HOLD_S = 3600.0
HOLDS_PLACE = ("starting", "running", "recovering")
BORNE = 0.05  # of a device's memory: the driver's own share is nobody's use
CLOSE = 1e-6


def _class(job: Job) -> int:
    return sum(job.spec.priority >= start for start in CLASS_STARTS)


OTHERWISE = ("lease-ends", "brings-home", "switches", "hops", "night")
"""Why jobs are stopped other than for others; who stops for these has rules of its own."""


def _stops(plan: p.Plan) -> list[p.AskToStop]:
    """Return the stops for the sake of others: not those with a lease, nor who moves."""
    return [
        step
        for step in plan.steps
        if isinstance(step, p.AskToStop)
        and step.wish == "give-way"
        and step.reason.code.value not in OTHERWISE
    ]


def _promised_to(plan: p.Plan, world: World) -> list[Job]:
    """Return the waiting jobs that the plan says others give way to."""
    told = {
        step.job
        for step in plan.steps
        if isinstance(step, p.Explain) and step.reason.code.value == "makes-room"
    }
    return [world.jobs[name] for name in sorted(told & world.jobs.keys())]


def victims(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Only who may be stopped is: once, running for long enough, not one that age put first."""
    seen: set[str] = set()
    for step in _stops(plan):
        job = world.jobs.get(step.job)
        if job is None:
            continue
        ran_s = -1.0 if job.started_at is None else world.now - job.started_at
        broken = {
            "preemption is switched off": not rules.preempt,
            "it is asked twice": step.job in seen,
            f"it is {job.state}": job.state.value != "running",
            f"it stops already: {job.wish}": job.wish is not None,
            "it is not preemptible": not job.spec.preemptible,
            f"it has run for {ran_s:g} s": ran_s < rules.preempt_after_s - CLOSE,
            "it had waited too long": job.reason is not None and job.reason.code.value == "aged",
        }
        seen.add(step.job)
        for why in (why for why, is_broken in broken.items() if is_broken):
            yield Fault("victims", f"{step.job} gives way although {why}")


def not_in_vain(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Whoever gives way does so for a waiting job that its node could take, of a higher class.

    Where an order displaces, one of its own class will do; where it knows no classes, any.
    """
    above = 0 if rules.displace else 1
    if rules.displace and rules.classless:
        above = -len(CLASS_STARTS)
    waiting = [job for job in _promised_to(plan, world) if job.state.value == "pending"]
    placed = {step.job for step in plan.steps if isinstance(step, p.Place)}
    for step in _stops(plan):
        victim = world.jobs.get(step.job)
        node = None
        if victim is not None and victim.placement is not None:
            node = world.nodes.get(victim.placement.node)
        if victim is None or node is None:
            continue
        if not any(
            _class(job) >= _class(victim) + above and job.id not in placed and takes(node, job, [])
            for job in waiting
        ):
            yield Fault("not-in-vain", f"{victim.id} gives way on {node.id} to nobody who gains")


def holds(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A hold is of a waiting job, has an end that is near, and is the only one of its attempt."""
    placed = {step.job for step in plan.steps if isinstance(step, p.Place)}
    seen: set[str] = set()
    for step in plan.steps:
        job = world.jobs.get(step.job) if isinstance(step, p.Hold) else None
        if job is None or not isinstance(step, p.Hold):
            continue
        broken = {
            "holds are switched off": not rules.hold,
            f"it is {job.state}": job.state.value != "pending",
            "it is to be stopped": job.wish is not None,
            "it was held before": job.held_until is not None,
            "it is held twice": job.id in seen,
            "it is placed too": job.id in placed,
            "its end has passed": step.until <= world.now,
            "its end is far": step.until > world.now + LONGEST_HOLD_S + CLOSE,
        }
        seen.add(job.id)
        for why in (why for why, is_broken in broken.items() if is_broken):
            yield Fault("holds", f"{job.id} is held although {why}")


def kept_room(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """The room that others give way for goes to nobody else while they stop."""
    if not rules.preempt:
        return
    places = [step for step in plan.steps if isinstance(step, p.Place)]
    owed = [job for job in world.jobs.values() if _is_owed(job)]
    mine = {job.id for job in owed}
    taken = [step for step in places if step.job not in mine]
    got = {step.job for step in places}
    for job in (job for job in owed if job.id not in got):
        making = _making_room(world)
        before = [name for name in making if _fits_after(world, world.nodes[name], job, [])]
        if before and not any(_fits_after(world, world.nodes[name], job, taken) for name in before):
            yield Fault("kept-room", f"the room made for {job.id} on {before[0]} goes to others")


def _is_owed(job: Job) -> bool:
    told = job.reason is not None and job.reason.code.value == "makes-room"
    return told and job.state.value == "pending" and job.wish is None


def _making_room(world: World) -> list[str]:
    """Return the nodes on which somebody gives way, and nobody else was seen."""
    found: set[str] = set()
    for job in world.jobs.values():
        if job.placement is not None and job.state.value in HOLDS_PLACE:
            if job.wish is not None and job.wish.value == "give-way":
                found.add(job.placement.node)
    return sorted(
        name
        for name in found
        if name in world.nodes
        and world.nodes[name].state.value == "ready"
        and not any(_foreign(world, name, d) for d in world.nodes[name].facts.devices)
    )


def _fits_after(world: World, node: Node, job: Job, places: Iterable[p.Place]) -> bool:
    """Say whether the node takes the job once all that stop have, these places given."""
    stay = (other for other in world.jobs.values() if other.wish is None)
    return takes(node, job, beside(node, world, stay, places))


def beside(
    node: Node, world: World, jobs: Iterable[Job], places: Iterable[p.Place]
) -> list[tuple[Job, tuple[str, ...]]]:
    """Return those of some jobs that are on a node, and who comes there, with their devices."""
    there = [
        (other, other.placement.devices)
        for other in jobs
        if other.placement is not None
        and other.placement.node == node.id
        and other.state.value in HOLDS_PLACE
    ]
    coming = [
        (world.jobs[step.job], step.placement.devices)
        for step in places
        if step.placement.node == node.id and step.job in world.jobs
    ]
    return there + coming


def takes(node: Node, job: Job, there: list[tuple[Job, tuple[str, ...]]]) -> bool:
    """Say whether a node has room for a job beside others, by its sums alone."""
    facts, wants = node.facts, job.wants
    spent = [other.wants for other, _ in there]
    if sum(other.cpu for other in spent) + wants.cpu > facts.cpu + CLOSE:
        return False
    memory = sum(other.memory_gib or 0.0 for other in spent) + (wants.memory_gib or 0.0)
    if memory > facts.memory_gib + CLOSE:
        return False
    disk = sum(other.disk_gib or 0.0 for other in spent) + (wants.disk_gib or 0.0)
    if disk > facts.disk_gib + CLOSE or not _may_be_on(node, job):
        return False
    open_ones = sum(_is_open(device, job, there) for device in facts.devices)
    return open_ones >= wants.gpu.count


def _may_be_on(node: Node, job: Job) -> bool:
    spec, facts = job.spec, node.facts
    return (
        node.id not in spec.where.not_on
        and spec.where.labels.items() <= facts.labels.items()
        and (spec.market == "auto" or (spec.market == "local") == node.owned)
        and ("container" if spec.image else "process") in facts.runtimes
        and (spec.nodes == 1 or not node.owned)
        and all(any(_lies_in(path, mount) for mount in facts.mounts) for path in spec.mounts)
    )


def _lies_in(path: str, mount: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{mount.rstrip('/')}/")


def _is_open(device: Device, job: Job, there: list[tuple[Job, tuple[str, ...]]]) -> bool:
    gpu = job.wants.gpu
    parts = device.model.split("-")
    names = {"-".join(parts[:n]) for n in range(1, len(parts) + 1)}
    if (gpu.models and names.isdisjoint(gpu.models)) or not gpu.memory_gib.holds(device.memory_gib):
        return False
    here = [other.wants.gpu for other, devices in there if device.id in devices]
    share = sum(other.share for other in here) + gpu.share
    memory = sum(_memory(other.share, other.memory_gib.least, device) for other in here)
    memory += _memory(gpu.share, gpu.memory_gib.least, device)
    return share <= 1 + CLOSE and memory <= device.packs_gib + CLOSE


def _memory(share: float, least_gib: float, device: Device) -> float:
    """Return what a job takes of a device's memory: all of it when it does not share."""
    if share >= 1:
        return device.packs_gib
    return min(device.packs_gib, least_gib or share * device.packs_gib)


def foreign_use(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Nobody is put onto device memory that others than our jobs were seen to use."""
    for step in plan.steps:
        if not isinstance(step, p.Place) or step.job not in world.jobs:
            continue
        node = world.nodes.get(step.placement.node)
        for device in () if node is None else node.facts.devices:
            if device.id not in step.placement.devices:
                continue
            foreign = _foreign(world, step.placement.node, device)
            gpu = world.jobs[step.job].wants.gpu
            wanted = _memory(gpu.share, gpu.memory_gib.least, device)
            if foreign and foreign + wanted > device.packs_gib + CLOSE:
                says = f"{step.job} wants {wanted:g} GiB, others use {foreign:g}"
                yield Fault("foreign-use", f"{device.id} of {step.placement.node}: {says}")


def _foreign(world: World, node: str, device: Device) -> float:
    """Return what others were seen to use of a device, in GiB; 0 when that is next to nothing."""
    heard = world.sightings.get(node)
    use = None
    if heard is not None and heard.measured is not None:
        use = heard.measured.devices.get(device.id)
    if use is None or use.foreign_gib <= BORNE * device.packs_gib:
        return 0.0
    return use.foreign_gib


def sane_rules(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """What a user has set can be reckoned with: weights that sum to 1, shares and times from 0."""
    weights, shares = rules.weights, rules.shares
    if weights and not abs(sum(weights.values()) - 1) <= CLOSE:
        yield Fault("sane-rules", f"the weights sum to {sum(weights.values()):g}")
    for kind, amounts in (("weight", weights), ("share", shares)):
        for name, amount in amounts.items():
            if not (amount >= 0 and math.isfinite(amount)):
                yield Fault("sane-rules", f"the {kind} of {name} is {amount:g}")
    if not rules.preempt_after_s >= 0:
        yield Fault("sane-rules", f"jobs are stopped after {rules.preempt_after_s:g} s")


RULES: tuple[Rule, ...] = (victims, not_in_vain, holds, kept_room, foreign_use, sane_rules)
