"""Lints any plan with arithmetic of its own: what it finds is an incident, not a choice."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.world import World
from cloudwhale.planning import (
    checker_company,
    checker_deadlines,
    checker_homes,
    checker_money,
    checker_projects,
    checker_waits,
)
from cloudwhale.planning.fault import Fault
from cloudwhale.planning.fault import Rule as Rule
from cloudwhale.planning.rules import Rules


@dataclass(slots=True)
class _Use:
    """What sits on one node once the plan is carried out."""

    cpu: float = 0.0
    memory_gib: float = 0.0
    disk_gib: float = 0.0
    share: dict[str, float] = field(default_factory=dict[str, float])
    gpu_gib: dict[str, float] = field(default_factory=dict[str, float])


def check(plan: p.Plan, world: World, rules: Rules) -> tuple[Fault, ...]:
    """Return every fault of a plan; an empty answer lets it be carried out."""
    return tuple(fault for rule in RULES for fault in rule(plan, world, rules))


def _placements(plan: p.Plan) -> list[p.Place]:
    return [step for step in plan.steps if isinstance(step, p.Place)]


def version(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """The plan is of this world."""
    if plan.version != world.version:
        yield Fault("version", f"plan of version {plan.version}, world of {world.version}")


def subjects(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Every step is about a job and a node that exist."""
    for step in plan.steps:
        job = getattr(step, "job", None)
        node = getattr(step, "node", None)
        if isinstance(step, p.Place):
            node = step.placement.node
        if job is not None and job not in world.jobs:
            yield Fault("subjects", f"{step.kind} of job {job}, which is not alive")
        if node is not None and node not in world.nodes:
            yield Fault("subjects", f"{step.kind} on node {node}, which nobody knows")


def one_place(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A job gets one place at most, and none while it may still have another."""
    seen: set[str] = set()
    for step in _placements(plan):
        job = world.jobs.get(step.job)
        if step.job in seen:
            yield Fault("one-place", f"{step.job} is placed twice")
        seen.add(step.job)
        if job is not None and job.state.value != "pending":
            yield Fault("one-place", f"{step.job} is {job.state}, not pending")
        if job is not None and job.wish is not None:
            yield Fault("one-place", f"{step.job} is placed although somebody wants: {job.wish}")


def fences(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Attempts are counted without gaps, and only the newest is ordered about."""
    for step in plan.steps:
        attempt: int | None = getattr(step, "attempt", None)
        job = world.jobs.get(getattr(step, "job", ""))
        if attempt is None or job is None:
            continue
        expected = job.attempt + 1 if isinstance(step, p.Place) else job.attempt
        if attempt != expected:
            says = f"{step.kind} of {job.id} names attempt {attempt}, expected {expected}"
            yield Fault("fences", says)


def capacity(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """No node holds more CPU, memory or disk than it has, however the places came about."""
    for node, use in _used(plan, world):
        facts = node.facts
        for what, used, has in (
            ("CPU", use.cpu, facts.cpu),
            ("GiB of memory", use.memory_gib, facts.memory_gib),
            ("GiB of disk", use.disk_gib, facts.disk_gib),
        ):
            if used > has * (1 + 1e-6):
                yield Fault("capacity", f"{node.id} would hold {used:g} {what} of {has:g}")


def device_capacity(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """No device is given away more than once, in share or in memory."""
    for node, use in _used(plan, world):
        memory = {device.id: device.memory_gib for device in node.facts.devices}
        for device, share in use.share.items():
            if share > 1 + 1e-6:
                yield Fault("device-capacity", f"{device} of {node.id}: share {share:g} of 1")
            if device not in memory:
                continue  # it is gone, and who was on it ends; `devices-suit` keeps others away
            if use.gpu_gib[device] > memory[device] * (1 + 1e-6):
                says = f"{use.gpu_gib[device]:g} GiB of {memory[device]:g}"
                yield Fault("device-capacity", f"{device} of {node.id}: {says}")


def _used(plan: p.Plan, world: World) -> Iterator[tuple[Node, _Use]]:
    """Add up the nodes that the plan touches, from the jobs themselves."""
    touched = {step.placement.node for step in _placements(plan)}
    use = {name: _Use() for name in touched if name in world.nodes}
    for job in world.jobs.values() if use else ():
        if job.placement is not None and job.state in ("starting", "running", "recovering"):
            _add(use, job, job.placement.node, job.placement.devices)
    for step in _placements(plan):
        if step.job in world.jobs:
            _add(use, world.jobs[step.job], step.placement.node, step.placement.devices)
    return ((world.nodes[name], used) for name, used in sorted(use.items()))


def _add(use: dict[str, _Use], job: Job, node: str, devices: tuple[str, ...]) -> None:
    if node not in use:
        return
    here, wants = use[node], job.wants
    here.cpu += wants.cpu
    here.memory_gib += wants.memory_gib or 0.0
    here.disk_gib += wants.disk_gib or 0.0
    for device in devices:
        here.share[device] = here.share.get(device, 0.0) + wants.gpu.share
        # What a sharing job did not say is not counted here: the planner may be stricter.
        here.gpu_gib[device] = here.gpu_gib.get(device, 0.0) + wants.gpu.memory_gib.least


def devices_suit(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A job gets the number, the model and the memory of GPUs that it asked for, each once."""
    for step in _placements(plan):
        job, node = world.jobs.get(step.job), world.nodes.get(step.placement.node)
        if job is None or node is None:
            continue
        gpu, given = job.wants.gpu, step.placement.devices
        most = gpu.count if gpu.count_most is None else gpu.count_most
        if len(set(given)) != len(given) or not gpu.count <= len(given) <= max(most, gpu.count):
            says = f"{job.id} asked for {gpu.count} GPUs and gets {len(set(given))}"
            yield Fault("devices-suit", says)
        there = {device.id: device for device in node.facts.devices}
        for name in given:
            device = there.get(name)
            if device is None:
                yield Fault("devices-suit", f"{node.id} has no device {name}")
            elif gpu.models and not _is_one_of(device.model, gpu.models):
                yield Fault("devices-suit", f"{job.id} gets a {device.model}")
            elif not gpu.memory_gib.holds(device.memory_gib):
                yield Fault("devices-suit", f"{job.id} gets {device.memory_gib:g} GiB")


def _is_one_of(model: str, asked: tuple[str, ...]) -> bool:
    parts = model.split("-")
    return any("-".join(parts[:n]) in asked for n in range(1, len(parts) + 1))


def rules_of_the_user(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """What the user forbade is not done: nodes, labels, markets, isolation."""
    for step in _placements(plan):
        job, node = world.jobs.get(step.job), world.nodes.get(step.placement.node)
        if job is None or node is None:
            continue
        spec = job.spec
        broken = {
            "where.not": node.id in spec.where.not_on,
            "where.labels": not spec.where.labels.items() <= node.facts.labels.items(),
            "market": spec.market != "auto" and (spec.market == "local") != node.owned,
            "image": ("container" if spec.image else "process") not in node.facts.runtimes,
            "deadline": spec.deadline is not None and world.now >= spec.deadline,
            "retry.backoff": job.not_before is not None and world.now < job.not_before,
            "mounts": any(not _is_offered(path, node) for path in spec.mounts),
        }
        for what in (name for name, is_broken in broken.items() if is_broken):
            yield Fault("rules-of-the-user", f"{job.id} on {node.id} breaks its {what}")


def _is_offered(path: str, node: Node) -> bool:
    parts = path.rstrip("/").split("/")
    above = {"/".join(parts[:n]) or "/" for n in range(1, len(parts) + 1)}
    return not above.isdisjoint(node.facts.mounts)


def nodes_take_jobs(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Nothing is placed on a node that drains, is lost, or cannot take the job's secrets yet."""
    for step in _placements(plan):
        job, node = world.jobs.get(step.job), world.nodes.get(step.placement.node)
        if job is None or node is None:
            continue
        if node.state.value in ("draining", "lost"):
            yield Fault("nodes-take-jobs", f"{job.id} on {node.id}, which is {node.state}")
        if job.spec.secrets and node.state.value == "expected":
            yield Fault("nodes-take-jobs", f"{job.id} has secrets, {node.id} has no key yet")


def gangs(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A gang starts whole or not at all."""
    for step in _placements(plan):
        job = world.jobs.get(step.job)
        if job is not None and job.spec.nodes > 1:
            yield Fault("gangs", f"{job.id} needs {job.spec.nodes} nodes and gets one")


def dependencies(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Nothing starts before what it waits for has completed."""
    for step in _placements(plan):
        job = world.jobs.get(step.job)
        for other in job.after if job is not None else ():
            state = world.ended.get(other)
            if other in world.jobs or (state is not None and state.value != "completed"):
                yield Fault("dependencies", f"{step.job} starts before {other} has completed")


def not_too_early(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Nothing counts as lost or out before its silence has lasted long enough."""
    for step in plan.steps:
        if isinstance(step, p.DeclareLost):
            node, borne_s = step.node, rules.patience.lost_after_s
        elif isinstance(step, p.Clear | p.GiveUp | p.Drop) and _recovers(step.job, world):
            placement = world.jobs[step.job].placement
            node = placement.node if placement is not None else ""
            borne_s = rules.patience.out_after_s
        else:
            continue
        rented = world.rentals.get(node)
        if rented is not None and rented.ended_at is not None:
            continue  # the machine is no more, as its provider says; its clock may be ahead of ours
        heard, known = world.sightings.get(node), world.nodes.get(node)
        if heard is None or known is None:
            yield Fault("not-too-early", f"{step.kind} on {node}, which was never heard")
        elif world.now - heard.heard_at < (least_s := borne_s(known)):
            yield Fault("not-too-early", f"{step.kind} on {node} before {least_s:g} s of silence")


def _recovers(job: str, world: World) -> bool:
    return job in world.jobs and world.jobs[job].state.value == "recovering"


def accounts(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """No amount is negative, and nobody has money taken who was never given any.

    More than a limit may be taken: it can have been lowered since.
    """
    for account in world.accounts.values():
        if account.reserved < 0 or account.spent < 0:
            yield Fault("accounts", f"{account.payer} has a negative amount")
        taken = account.reserved + account.spent
        if account.needs_limit and account.limit is None and taken > 0:
            yield Fault("accounts", f"{account.payer} has {taken} taken and no budget")


RULES: tuple[Rule, ...] = (
    version,
    subjects,
    one_place,
    fences,
    capacity,
    device_capacity,
    devices_suit,
    rules_of_the_user,
    nodes_take_jobs,
    gangs,
    dependencies,
    not_too_early,
    accounts,
    *checker_waits.RULES,
    *checker_money.RULES,
    *checker_projects.RULES,
    *checker_homes.RULES,
    *checker_company.RULES,
    *checker_deadlines.RULES,
)
