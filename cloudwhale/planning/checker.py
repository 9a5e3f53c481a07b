"""Lints any plan with arithmetic of its own: what it finds is an incident, not a choice."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.rental import Rental
from cloudwhale.model.world import World
from cloudwhale.planning import (
    checker_company,
    checker_deadlines,
    checker_homes,
    checker_money,
    checker_nights,
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
        names = step.placement.nodes if isinstance(step, p.Place) else (node,)
        if job is not None and job not in world.jobs:
            yield Fault("subjects", f"{step.kind} of job {job}, which is not alive")
        for name in (name for name in names if name is not None and name not in world.nodes):
            yield Fault("subjects", f"{step.kind} on node {name}, which nobody knows")


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
    touched = {name for step in _placements(plan) for name in step.placement.nodes}
    use = {name: _Use() for name in touched if name in world.nodes}
    for job in world.jobs.values() if use else ():
        if job.placement is not None and job.state in ("starting", "running", "recovering"):
            for one in job.placement.members:
                _add(use, job, one.node, one.devices)
    for step in _placements(plan):
        for one in step.placement.members if step.job in world.jobs else ():
            _add(use, world.jobs[step.job], one.node, one.devices)
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
    for job, node, given in _members(plan, world):
        gpu = job.wants.gpu
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
    for job, node, _ in _members(plan, world):
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
    for job, node, _ in _members(plan, world):
        if node.state.value in ("draining", "lost"):
            yield Fault("nodes-take-jobs", f"{job.id} on {node.id}, which is {node.state}")
        if job.spec.secrets and node.state.value == "expected":
            yield Fault("nodes-take-jobs", f"{job.id} has secrets, {node.id} has no key yet")


def gangs(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A gang starts whole or not at all, on as many machines of one offer in one zone."""
    for step in _placements(plan):
        job, names = world.jobs.get(step.job), step.placement.nodes
        if job is None:
            continue
        if len(names) != job.spec.nodes or len(set(names)) != len(names):
            says = f"{job.id} needs {job.spec.nodes} nodes and gets {len(set(names))}"
            yield Fault("gangs", says)
        elif len(names) > 1:
            there = [world.rentals[name] for name in names if name in world.rentals]
            offers = {(one.offer, one.taken.zone if one.taken else "") for one in there}
            if len(there) < len(names) or any(one.state.value != "ready" for one in there):
                yield Fault("gangs", f"{job.id} starts where not all of its machines are there")
            elif len(offers) > 1 or len({one.gang for one in there}) > 1:
                yield Fault("gangs", f"{job.id} is spread over machines of several gangs")
    rented: dict[str, list[Rental]] = {}
    for one in (step.rental for step in plan.steps if isinstance(step, p.Rent)):
        rented.setdefault(one.gang or one.id, []).append(one)
    for name, machines in sorted(rented.items()):
        yield from _rented_whole(name, machines, world)


def _rented_whole(name: str, machines: list[Rental], world: World) -> Iterator[Fault]:
    """Look at the machines that a plan rents for one gang, or for jobs that are none."""
    sizes = {
        world.jobs[job].spec.nodes for one in machines for job in one.jobs if job in world.jobs
    }
    alike = {(one.offer, one.payer, frozenset(one.jobs), one.gang_size) for one in machines}
    if sizes and sizes != {len(machines)}:
        yield Fault("gangs", f"{len(machines)} machines of {name} for gangs of {sorted(sizes)}")
    if len(alike) > 1 or any(one.gang_size != len(machines) for one in machines):
        yield Fault("gangs", f"the machines of {name} are not alike")


def _members(plan: p.Plan, world: World) -> Iterator[tuple[Job, Node, tuple[str, ...]]]:
    """Yield who gets which devices of which node, each rank of a gang for itself."""
    for step in _placements(plan):
        for one in step.placement.members:
            if step.job in world.jobs and one.node in world.nodes:
                yield world.jobs[step.job], world.nodes[one.node], one.devices


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
            yield from _too_early(step.kind, step.node, rules.patience.lost_after_s, world)
        elif isinstance(step, p.Clear | p.GiveUp | p.Drop) and _recovers(step.job, world):
            for node in _unheard(world.jobs[step.job]):
                yield from _too_early(step.kind, node, rules.patience.out_after_s, world)


def _unheard(job: Job) -> list[str]:
    """Return the nodes of an attempt that have not said how it ended there."""
    if job.placement is None:
        return [""]
    ended = [one.end is not None for one in job.ranks] or [False]
    return [name for name, is_over in zip(job.placement.nodes, ended, strict=True) if not is_over]


def _too_early(
    kind: str, node: str, borne_s: Callable[[Node], float], world: World
) -> Iterator[Fault]:
    rented = world.rentals.get(node)
    if rented is not None and rented.ended_at is not None:
        return  # the machine is no more, as its provider says; its clock may be ahead of ours
    heard, known = world.sightings.get(node), world.nodes.get(node)
    if heard is None or known is None:
        yield Fault("not-too-early", f"{kind} on {node}, which was never heard")
    elif world.now - heard.heard_at < (least_s := borne_s(known)):
        yield Fault("not-too-early", f"{kind} on {node} before {least_s:g} s of silence")


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
    *checker_nights.RULES,
)
