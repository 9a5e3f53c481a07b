"""A dry run: where the next round would put some jobs, without storing or starting anything."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from cloudwhale.control import desk as desks
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobSpec, JobState
from cloudwhale.model.node import Node
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import NOTHING, Instant, MicroUsd
from cloudwhale.model.value import Value
from cloudwhale.model.world import Sighting, World
from cloudwhale.planning.planner import plan


class PreviewJob(Value):
    """Where one job would go."""

    name: str
    project: str
    state: Literal["runs-now", "waits", "impossible"]
    node: str | None
    devices: tuple[str, ...]
    reason: Reason
    runner_up: str | None
    """The best place that lost, with its score."""


class Preview(Value):
    """What would happen if the jobs were submitted now."""

    jobs: tuple[PreviewJob, ...]
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
    return Preview(jobs=tuple(_one(job, made) for job in jobs), budget_usd=None)


def _with_this_host(desk: desks.Desk, world: World) -> World:
    """Add this host when its agent never reported, as its provider describes it."""
    nodes = dict(world.nodes)
    for name, provider in desks.providers(desk.settings).items():
        for machine in provider.machines():
            if machine.node not in nodes and machine.facts is not None:
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
            submitted_at=now,
            after=tuple(other for name in spec.after for other in ids.get(name, ())),
        )
        for number, spec in enumerate(specs)
    ]


def _one(job: Job, made: p.Plan) -> PreviewJob:
    decision = next((d for d in made.decisions if d.job == job.id), None)
    rivals = decision.rivals if decision is not None else ()
    runner_up = f"{rivals[0].placement.node} ({rivals[0].total:.3f})" if rivals else None
    state, reason, place = _fate(job, made)
    return PreviewJob(
        name=job.spec.name,
        project=job.spec.project,
        state=state,
        node=place.placement.node if place is not None else None,
        devices=place.placement.devices if place is not None else (),
        reason=reason,
        runner_up=runner_up,
    )


def _fate(
    job: Job, made: p.Plan
) -> tuple[Literal["runs-now", "waits", "impossible"], Reason, p.Place | None]:
    for step in made.steps:
        if getattr(step, "job", None) != job.id:
            continue
        match step:
            case p.Place():
                return "runs-now", step.reason, step
            case p.GiveUp() | p.Park():
                return "impossible", step.reason, None
            case p.Explain():
                never = step.reason.code is Code.NOTHING_FITS
                return "impossible" if never else "waits", step.reason, None
            case _:
                continue
    raise AssertionError(f"the plan says nothing of {job.id}, which is {JobState.PENDING}")
