"""When jobs would be done if nothing was rented: the planner's rounds, played on in thought; pure.

Everything runs as long as it is expected to, on machines that are there now; nothing breaks, and
nobody is stopped for another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cloudwhale.model import plan as p
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState, Placement
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.inventory import free_capacity
from cloudwhale.planning.planner import plan
from cloudwhale.planning.policies import Policies
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.releases import run_s

ROUNDS_A_JOB = 4
"""After so many rounds a job it is given up: somebody is held for ever."""


@dataclass(frozen=True, slots=True)
class _Running:
    job: Job
    ends_at: Instant


def ends_at_home(world: World, policies: Policies) -> Mapping[str, Instant | None]:
    """Return when each job would be done on machines of ours; None: never, as far as is known.

    Rented machines are left out, and who is on one of them waits from now on.
    """
    waits, here = _at_home(world)
    policies = replace(
        policies, wait=None, rent=None, rules=policies.rules.but(preempt=False, bring_home=False)
    )
    running: list[_Running] = _underway(here, waits)
    found: dict[str, Instant | None] = dict.fromkeys(here.jobs)
    for _ in range(ROUNDS_A_JOB * (len(here.jobs) + 1)):
        now_here = replace(here, jobs={**waits, **{one.job.id: one.job for one in running}})
        made = plan(now_here, policies)
        started = _started(made, now_here, running)
        running += started
        waits = {name: job for name, job in waits.items() if not _is_in(name, started)}
        at = _next_at(running, waits, made, here.now)
        if at is None:
            break
        done: list[_Running] = [one for one in running if one.ends_at <= at]
        running = [one for one in running if one.ends_at > at]
        found.update({one.job.id: one.ends_at for one in done})
        ended = {**here.ended, **{one.job.id: JobState.COMPLETED for one in done}}
        here = replace(here, now=at, ended=ended)
        if not (waits or running):
            break
    return found


def _at_home(world: World) -> tuple[dict[str, Job], World]:
    """Return who waits, and the world with machines of ours alone."""
    owned = {name: node for name, node in world.nodes.items() if node.owned}
    jobs = {name: _brought_back(job, set(owned)) for name, job in world.jobs.items()}
    waits = {name: job for name, job in jobs.items() if job.state not in HOLDS_A_PLACE}
    here = replace(
        world, jobs=jobs, nodes=owned, rentals={}, offers=(), sightings={}, accounts={}, budgets={}
    )
    return waits, here


def _brought_back(job: Job, owned: set[str]) -> Job:
    job = job.but(spec=job.spec.but(market="auto"))  # it is asked where it would run if it had to
    if job.state not in HOLDS_A_PLACE or job.placement is None:
        return job
    if owned.issuperset(job.placement.nodes):
        return job
    return job.but(state=JobState.PENDING, placement=None, started_at=None, wish=None)


def _underway(here: World, waits: Mapping[str, Job]) -> list[_Running]:
    jobs = [job for name, job in here.jobs.items() if name not in waits]
    ends = _ends(jobs, here)
    return [_Running(job, ends[job.id]) for job in jobs]


def _started(made: p.Plan, here: World, running: list[_Running]) -> list[_Running]:
    """Return those that a round starts, with their ends."""
    jobs = [
        _placed(here.jobs[step.job], step.placement, here.now)
        for step in made.steps
        if isinstance(step, p.Place)
    ]
    ends = _ends(jobs, here, [one.job for one in running])
    return [_Running(job, ends[job.id]) for job in jobs]


def _placed(job: Job, placement: Placement, now: Instant) -> Job:
    return job.but(
        state=JobState.RUNNING, attempt=job.attempt + 1, placement=placement, placed_at=now,
        started_at=now, order_posted=True,
    )  # fmt: skip


def _ends(jobs: list[Job], here: World, others: list[Job] | None = None) -> dict[str, Instant]:
    """Return when each would be done beside those that are there when it starts."""
    free = free_capacity(here.nodes.values(), [*(others or ()), *jobs])
    durations = Durations(here.durations)
    found: dict[str, Instant] = {}
    for job in jobs:
        place = job.placement
        since = here.now if job.started_at is None else job.started_at
        length_s = 0.0 if place is None else run_s(job, place, free[place.node], durations)
        found[job.id] = max(here.now, since + length_s)
    return found


def _is_in(name: str, started: list[_Running]) -> bool:
    return any(one.job.id == name for one in started)


def _next_at(
    running: list[_Running], waits: Mapping[str, Job], made: p.Plan, now: Instant
) -> Instant | None:
    """Return when something changes next; None: never.

    While somebody runs, only who is held or has to pause starts before the next end.
    """
    ends = earliest(*(one.ends_at for one in running))
    is_timed = any(isinstance(step, p.Hold) for step in made.steps) or any(
        job.not_before is not None and job.not_before > now for job in waits.values()
    )
    looks = made.look_again_at if is_timed or ends is None else None
    return earliest(ends, looks if looks is not None and looks > now else None)
