"""A world with some jobs more than there are: planned once, or again with more money."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobSpec
from cloudwhale.model.night import Night
from cloudwhale.model.units import MicroUsd
from cloudwhale.model.world import World
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.planner import Policies, plan

MANY = 60
"""For more jobs than these, other budgets are tried with the quick policies."""


@dataclass(frozen=True, slots=True)
class Part:
    """The jobs that one budget pays for: those of a file."""

    specs: Sequence[JobSpec]
    budget: MicroUsd | None = None
    """None: nothing is rented for them."""
    payer: str = "this run"
    """What the payer is called in sentences."""
    night: Night | None = None
    """Its hours, where it is one."""


@dataclass(frozen=True)
class Trial:
    """The world of a dry run, and which of its jobs are asked about."""

    world: World
    jobs: tuple[Job, ...]
    """In the order of their files."""
    parts: tuple[Part, ...]
    policies: Policies
    quick: Policies
    """In a fraction of the time, and for no job more: what is enough for it is enough."""

    def plan(self) -> p.Plan:
        """Return what the next round would do."""
        return plan(self.world, self.policies)

    def with_limits(self, limits: Mapping[str, MicroUsd], *, quickly: bool = False) -> p.Plan:
        """Return what the next round would do if payers had other budgets.

        Of many jobs quickly in any case.
        """
        accounts = dict(self.world.accounts)
        for payer, limit in limits.items():
            accounts[payer] = accounts[payer].but(limit=limit)
        quickly = quickly or len(self.jobs) > MANY
        asked = self.quick if quickly else self.policies
        return plan(replace(self.world, accounts=accounts), asked)

    def as_asked(self, made: p.Plan) -> p.Plan:
        """Return the plan that other budgets are compared with: itself, or a quick one."""
        return made if len(self.jobs) <= MANY else plan(self.world, self.quick)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Return the names of the jobs by their ids."""
        return {job.id: job.spec.name for job in self.jobs}

    @cached_property
    def payers(self) -> frozenset[str]:
        """Return who pays for these jobs."""
        return frozenset(part.payer for part in self.parts)

    @cached_property
    def durations(self) -> Durations:
        """Return how long jobs are expected to run."""
        return Durations(self.world.durations)

    @cached_property
    def empty(self) -> Mapping[str, Free]:
        """Return what is there on each owned node when nothing runs on it."""
        owned = [node for node in self.world.nodes.values() if node.owned]
        return free_capacity(owned, (), self.world.sightings)
