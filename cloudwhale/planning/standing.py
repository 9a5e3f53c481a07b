"""What an order may know of the waiting jobs: their work, their size, what projects have used."""

from collections.abc import Callable, Iterable

from cloudwhale.model.job import HOLDS_A_PLACE, Job
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning import use
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.rules import Rules
from cloudwhale.spi.policy import Queueing

OUTRUN = 0.1
"""Of its expected length: what a job is still expected to run that should have ended long ago."""


def queueing(world: World, durations: Durations, rules: Rules) -> Queueing:
    """Return what the order of a round may know; called once a round."""
    nodes = [node for node in world.nodes.values() if node.state is NodeState.READY]
    return Queueing(
        now=world.now,
        remaining_s=lambda job: remaining_s(job, durations, world.now),
        length_s=lambda job: durations.length_s(job.spec),
        served=lambda job: (
            job.ran_s(world.now) * (job.wants.gpu.count * job.wants.gpu.share or 1.0)
        ),
        size=sizes(nodes),
        use=used(world),
        shares=rules.shares,
        devices=max(1.0, float(sum(len(node.facts.devices) or 1 for node in nodes))),
    )


def remaining_s(job: Job, durations: Durations, now: Instant | None = None) -> Seconds:
    """Return how long a job is still expected to run, at its reference speed; never 0.

    What it has run and not lost lies in its checkpoint; without one it begins again. `now`: what
    a running attempt has done until then counts as well.
    """
    length_s = durations.length_s(job.spec)
    done_s = 0.0 if job.checkpoint is None else job.kept_s
    if now is not None and job.started_at is not None and job.state in HOLDS_A_PLACE:
        done_s += job.pace * max(0.0, now - job.started_at)
    return length_s if done_s <= 0 else max(OUTRUN * length_s, length_s - done_s)


def sizes(nodes: Iterable[Node]) -> Callable[[Job], float]:
    """Return the function that says which part of all machines a job takes, where it takes most.

    1 for a job that asks for something of which there is nothing.
    """
    cpus = devices = 0.0
    for node in nodes:
        cpus += node.facts.cpu
        devices += len(node.facts.devices)

    known: dict[str, float] = {}

    def size(job: Job) -> float:
        found = known.get(job.demand)
        if found is None:
            found = known[job.demand] = worked_out(job)
        return found

    def worked_out(job: Job) -> float:
        wants = job.wants
        cpu = wants.cpu / cpus if cpus > wants.cpu else 1.0
        gpu = wants.gpu
        if not gpu.count:
            return cpu
        return max(cpu, gpu.count * gpu.share / devices) if devices > gpu.count else 1.0

    return size


def used(world: World) -> dict[str, Seconds]:
    """Return the device-seconds of every project by now: what faded, and what runs."""
    found = {project: use.now(world.now) for project, use in world.use.items()}
    for job in world.jobs.values():
        if job.state in HOLDS_A_PLACE and job.placement is not None:
            running_s = _running_s(job, world.now) * use.rate(
                job, world.nodes.get(job.placement.node)
            )
            found[job.spec.project] = found.get(job.spec.project, 0.0) + running_s
    return found


def _running_s(job: Job, now: Instant) -> Seconds:
    return 0.0 if job.started_at is None else max(0.0, now - job.started_at)
