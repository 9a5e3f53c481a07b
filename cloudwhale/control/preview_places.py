"""Where the jobs of a dry run could be: owned nodes, and what could be rented."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from cloudwhale.control.supply import Supply
from cloudwhale.control.trying import Trial
from cloudwhale.model import plan as p
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState
from cloudwhale.model.reason import Refusal
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.planning.allowing import allowed
from cloudwhale.planning.fit import could_ever_fit
from cloudwhale.planning.inventory import free_capacity
from cloudwhale.planning.leasing import worst_case
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.releases import Profile
from cloudwhale.planning.renting import Till
from cloudwhale.planning.stock import Option, Stock
from cloudwhale.planning.switching import Switches, switches_of


class Places:
    """Answers for each job of a dry run; jobs that ask alike are looked at once."""

    def __init__(self, trial: Trial, made: p.Plan, supply: Supply) -> None:
        self.trial = trial
        self.made = made
        self.supply = supply
        self._homes: dict[str, tuple[str, ...]] = {}
        self.soonest: dict[str, tuple[Instant, str] | None] = {}
        """When each job that was asked about could be done, and where; None: nowhere."""

    @property
    def now(self) -> Instant:
        """Return when the plan was made."""
        return self.trial.world.now

    # -- owned -------------------------------------------------------------------------------

    def homes(self, job: Job) -> tuple[str, ...]:
        """Return the owned nodes that could run a job if nothing else did."""
        found = self._homes.get(job.demand)
        if found is None:
            spec = spec_of(job)
            found = self._homes[job.demand] = tuple(
                name
                for name, free in self.trial.empty.items()
                if could_ever_fit(spec, free) is None
            )
        return found

    def not_at_home(self, job: Job) -> Refusal | None:
        """Return why the owned node that comes closest could never run a job."""
        spec = spec_of(job)
        found = (could_ever_fit(spec, free) for free in self.trial.empty.values())
        refusals = [no for no in found if no is not None]
        return min(refusals, key=lambda no: no.shortfall, default=None)

    @cached_property
    def profile(self) -> Profile:
        """Return when what becomes free on owned nodes, who is placed by this plan included."""
        jobs = dict(self.trial.world.jobs)
        for step in self.made.steps:
            if isinstance(step, p.Place):
                jobs[step.job] = jobs[step.job].but(
                    placement=step.placement, state=JobState.STARTING, started_at=self.now
                )
        running = [job for job in jobs.values() if job.state in HOLDS_A_PLACE]
        owned = [node for node in self.trial.world.nodes.values() if node.owned]
        free = free_capacity(owned, running, self.trial.world.sightings)
        return Profile(self.now, free, running, self.trial.durations)

    # -- to be rented ------------------------------------------------------------------------

    @cached_property
    def stock(self) -> Stock | None:
        """Return what could be rented; None when nothing could."""
        if not self.supply.offers:
            return None
        stock = Stock(self.supply.offers, self.trial.durations)
        stock.look_at(self.trial.jobs)  # together, which costs far less
        return stock

    @cached_property
    def barred(self) -> Stock | None:
        """Return what settings keep out."""
        offers = self.supply.barred
        return Stock(offers, self.trial.durations) if offers else None

    def bars(self, option: Option) -> str:
        """Return the setting that keeps an offer out."""
        counts = allowed([option.offer], self.supply.limits).counts
        return next(iter(counts), "settings")

    def options(self, job: Job) -> Iterator[Option]:
        """Yield what could be rented for a job alone, the cheapest first."""
        if self.stock is not None:
            yield from self.stock.options(job)

    def in_time(self, stock: Stock, job: Job) -> Iterator[Option]:
        """Yield what would be done by a job's deadline too, as surely as is asked of one."""
        deadline = job.spec.deadline
        if deadline is None:
            yield from stock.options(job)
            return
        late_s = stock.late_s(job)
        for option in stock.options(job):
            took_s = option.offer.boot_s + float(late_s[stock.position[option.offer.id]])
            if self.now + took_s <= deadline:
                yield option

    def worst(self, job: Job, option: Option) -> MicroUsd | None:
        """Return the most that a machine for a job alone can cost; None: nobody knows."""
        needed_s = option.offer.boot_s + option.runs_s
        return worst_case(option.offer, needed_s, [job], self.now)

    @cached_property
    def till(self) -> Till:
        """Return what says whether a lease would be admitted."""
        return Till(self.trial.world, self.trial.durations, self.switches.keeps)

    @cached_property
    def switches(self) -> Switches:
        """Return who may have to switch to on-demand for its deadline."""
        return switches_of(self.trial.world, self.trial.durations)

    def ends_at(self, option: Option) -> Instant:
        """Return when a job is expected to be done that is rented for alone."""
        return self.now + option.offer.boot_s + option.runs_s
