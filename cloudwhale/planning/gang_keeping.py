"""What a round does with all machines of a gang together: place it, and ask it once to stop."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.rental import Rental
from cloudwhale.model.world import World
from cloudwhale.planning import gang_machines
from cloudwhale.planning.inventory import Free
from cloudwhale.planning.seats import place_step, seated


class OneMachine(Protocol):
    """One machine of a gang in one round."""

    world: World
    rental: Rental
    expected: list[Job]

    def free(self) -> Free | None:
        """Return what is free on it; None when its agent is not there."""
        ...

    def waits_otherwise(self, job: Job) -> bool:
        """Say whether a job waits for something else than room."""
        ...

    def is_early(self, job: Job) -> bool:
        """Say whether a job is to start later, as it was planned."""
        ...


def once_each(steps: Iterable[p.Step]) -> Iterator[p.Step]:
    """Yield steps; a gang that is to stop is asked to by each of its machines, and told once."""
    asked: set[str] = set()
    for step in steps:
        if not isinstance(step, p.AskToStop):
            yield step
        elif step.job not in asked:
            asked.add(step.job)
            yield step


def gangs_placed(
    gangs: Iterable[Sequence[OneMachine]], placed: Collection[str]
) -> Iterator[p.Place]:
    """Place gangs on their machines, once all of these are there; `placed`: who has a place.

    Who has machines twice, as some were silent for long and are there again, goes to the first.
    """
    seen = set(placed)
    for ones in gangs:
        for step in _gang_placed(ones):
            if step.job not in seen:
                seen.add(step.job)
                yield step


def _gang_placed(ones: Sequence[OneMachine]) -> Iterator[p.Place]:
    first = ones[0]
    if not gang_machines.is_ready(first.world, first.rental):
        return
    ranked = gang_machines.siblings(first.world, first.rental)
    of = {one.rental.id: one for one in ones}
    ones = [of[rental.id] for rental in ranked]
    awaited = [{job.id for job in one.expected} for one in ones]
    jobs = [
        job
        for job in first.expected
        if all(job.id in ids for ids in awaited) and not first.waits_otherwise(job)
    ]
    machines = [(one.rental, free) for one in ones if (free := one.free()) is not None]
    if len(machines) == len(ones):
        for job, place in gang_machines.places(jobs, machines, seated, first.is_early):
            yield place_step(job, place, first.rental)
