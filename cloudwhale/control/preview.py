"""A dry run: where the next round would put some jobs, without storing or starting anything."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from cloudwhale.control import desk as desks
from cloudwhale.control.recounted import recounted
from cloudwhale.control.submission import FILE_ORDER_S
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobSpec
from cloudwhale.model.node import Node
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import NOTHING, Instant, MicroUsd
from cloudwhale.model.value import Value
from cloudwhale.model.world import Sighting, World
from cloudwhale.planning.durations import Durations, Expected
from cloudwhale.planning.planner import plan


class PreviewJob(Value):
    """Where one job would go."""

    name: str
    project: str
    state: Literal["runs-now", "waits", "impossible"]
    node: str | None
    devices: tuple[str, ...]
    reason: Reason
    expected: Expected
    """How long it is expected to run, on its reference GPU."""
    runner_up: str | None
    """The best place that lost, with its score."""
    held_until: Instant | None = None
    """It fits somewhere and is held back for a better place, no longer than this."""


class Preview(Value):
    """What would happen if the jobs were submitted now."""

    jobs: tuple[PreviewJob, ...]
    gives_way: tuple[str, ...] = ()
    """Ids of running jobs that would be stopped for others, checkpoint first."""
    machines: tuple[str, ...] = ()
    """Machines that would be rented."""
    cost_usd: MicroUsd = NOTHING
    bound_usd: MicroUsd = NOTHING
    gap: float = 0.0
    one_each_usd: MicroUsd = NOTHING
    worst_case_usd: MicroUsd = NOTHING
    budget_usd: MicroUsd | None = None


def preview(desk: desks.Desk, specs: Sequence[JobSpec], now: Instant) -> Preview:
    """Plan the jobs together with all that waits and runs; change nothing."""
    world = _with_this_host(desk, desk.store.world(now))
    jobs = _as_jobs(specs, now)
    world = replace(world, jobs={**world.jobs, **{job.id: job for job in jobs}})
    made = plan(world, desks.policies(desk.settings))
    decisions = {decision.job: decision for decision in made.decisions}
    durations = Durations(world.durations)
    fates = {step.job: step for step in made.steps if isinstance(step, _FATES)}
    return Preview(
        jobs=tuple(
            _one(job, fates[job.id], decisions.get(job.id), durations.of(job.spec)) for job in jobs
        ),
        gives_way=tuple(
            step.job
            for step in made.steps
            if isinstance(step, p.AskToStop) and step.wish == "give-way"
        ),
        budget_usd=None,
    )


_FATES = (p.Place, p.Hold, p.GiveUp, p.Park, p.Explain)
Fate = p.Place | p.Hold | p.GiveUp | p.Park | p.Explain


def _with_this_host(desk: desks.Desk, world: World) -> World:
    """Add this host as its provider describes it, where its agent has not said so itself."""
    nodes = dict(world.nodes)
    for name, provider in desks.providers(desk.settings).items():
        for machine in provider.machines():
            known = nodes.get(machine.node)
            if known is not None:
                nodes[machine.node] = recounted(known, machine, name)
            elif machine.facts is not None:
                nodes[machine.node] = Node(id=machine.node, facts=machine.facts, provider=name)
    sightings = {name: Sighting(node=name, heard_at=world.now) for name in nodes}
    return replace(world, nodes=nodes, sightings=sightings)


def _as_jobs(specs: Sequence[JobSpec], now: Instant) -> list[Job]:
    ids: dict[str, list[str]] = {}
    for number, spec in enumerate(specs):
        ids.setdefault(spec.name, []).append(f"{spec.name}#{number}")
    return [
        Job(
            id=f"{spec.name}#{number}",
            run="preview",
            # Secrets are sealed at submit; a place that cannot take them yet is not a refusal.
            spec=spec.but(secrets=()),
            submitted_at=now + number * FILE_ORDER_S,
            after=tuple(other for name in spec.after for other in ids.get(name, ())),
        )
        for number, spec in enumerate(specs)
    ]


def _one(job: Job, fate: Fate, decision: p.Decision | None, expected: Expected) -> PreviewJob:
    rivals = decision.rivals if decision is not None else ()
    place = fate.placement if isinstance(fate, p.Place) else None
    return PreviewJob(
        name=job.spec.name,
        project=job.spec.project,
        state=_state(fate),
        node=place.node if place is not None else None,
        devices=place.devices if place is not None else (),
        reason=fate.reason,
        expected=expected,
        runner_up=f"{rivals[0].placement.node} ({rivals[0].total:.3f})" if rivals else None,
        held_until=fate.until if isinstance(fate, p.Hold) else None,
    )


def _state(fate: Fate) -> Literal["runs-now", "waits", "impossible"]:
    if isinstance(fate, p.Place):
        return "runs-now"
    if isinstance(fate, p.Hold):
        return "waits"
    if isinstance(fate, p.Explain) and fate.reason.code is not Code.NOTHING_FITS:
        return "waits"
    return "impossible"
