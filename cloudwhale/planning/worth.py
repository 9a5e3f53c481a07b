"""Who of a night is rented for when its budget cannot hold all: those worth most a dollar.

A job's worth is what being left over costs: a day's worth of its time, by its priority. Its price
is the part of the cheapest machine that it takes, for as long as it runs; with boots and idle time
it is more, so that no choice for the same money is worth more than the bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import MICRO_PER_USD, Instant
from cloudwhale.planning.leasing import worst_case
from cloudwhale.planning.stock import Stock

NEXT_NIGHT_H = 24.0
"""What is left over of a night waits so long for the next one."""

USUAL_PRIORITY = 50


@dataclass(frozen=True, slots=True)
class Weighed:
    """A job with what it is worth and what it costs."""

    job: Job
    worth_usd: float
    price_usd: float
    """At least, of its own part of a machine."""
    may_cost_usd: float
    """At worst, of the same part, its boot and late end included."""
    alone_usd: float
    """At worst, with a machine to itself."""

    @property
    def per_usd(self) -> float:
        """Return what a dollar for it is worth; of one that costs nothing infinity."""
        return self.worth_usd / self.price_usd if self.price_usd else float("inf")


@dataclass(frozen=True, slots=True)
class Chosen:
    """Who gets the money first, and how good that is."""

    first: tuple[Weighed, ...]
    rest: tuple[Weighed, ...]
    left_usd: float
    bound_usd: float
    """No choice for the same money is worth more."""

    @property
    def jobs(self) -> tuple[tuple[Job, ...], ...]:
        """Return who is asked for first, and who after them with what is left."""
        parts = (self.first, self.rest) if self.rest else (self.first,)
        return tuple(tuple(one.job for one in part) for part in parts)

    def why_not(self) -> dict[str, Reason]:
        """Return why those are not rented for that the money could hold alone, by job."""
        worth = sum(one.worth_usd for one in self.first)
        lowest = min((one.per_usd for one in self.first), default=0.0)
        found: dict[str, Reason] = {}
        for one in self.rest:
            if one.alone_usd > self.left_usd or not self.first:
                continue  # that it is too dear is told in its own words
            says = (
                f"a dollar for it is worth {one.per_usd:.0f} USD, for those of its night that are "
                f"rented for {lowest:.0f} or more; the {self.left_usd:.2f} USD left go to "
                f"{len(self.first)} jobs worth {worth:.0f} USD, and could go to none worth more "
                f"than {self.bound_usd:.0f}"
            )
            change = "raise the budget of the night, its `priority` or its `value_of_time_usd_h`"
            found[one.job.id] = Reason(code=Code.WORTH, says=says, change=change)
        return found


def worth_usd(job: Job, value_usd_h: float) -> float:
    """Return what it costs that a job is left over; `value_usd_h`: where its file does not say."""
    said = job.spec.value_of_time_usd_h
    hourly = value_usd_h if said is None else said
    return hourly * NEXT_NIGHT_H * (1 + job.spec.priority) / (1 + USUAL_PRIORITY)


def weighed(job: Job, stock: Stock, now: Instant) -> Weighed | None:
    """Return what a job is worth and costs; None: nothing that is offered suits it.

    A part of a job is worth as much as it is of what is left of it.
    """
    option = next(stock.options(job), None)
    if option is None:
        return None
    needed_s = option.offer.boot_s + option.runs_s
    worst = job.spec.nodes * (worst_case(option.offer, needed_s, [job], now) or 0) / MICRO_PER_USD
    return Weighed(
        job=job,
        worth_usd=stock.shares.get(job.id, 1.0) * worth_usd(job, stock.value_usd_h),
        price_usd=float((stock.shares_usd(job) * job.spec.nodes).min()),
        may_cost_usd=worst * stock.part(job, option.offer.id),
        alone_usd=worst,
    )


def chosen(found: Sequence[Weighed], left_usd: float) -> Chosen | None:
    """Return who gets the money first; None: it holds all, and nobody has to be left out.

    The one worth most a dollar first, as long as it fits; ties as they came.
    """
    if sum(one.may_cost_usd for one in found) <= left_usd:
        return None
    ordered = sorted(found, key=lambda one: -one.per_usd)
    first: list[Weighed] = []
    rest: list[Weighed] = []
    free = left_usd
    for one in ordered:
        fits = one.may_cost_usd <= free
        free -= one.may_cost_usd if fits else 0.0
        (first if fits else rest).append(one)
    return Chosen(tuple(first), tuple(rest), left_usd, bound_usd(ordered, left_usd))


def bound_usd(ordered: Sequence[Weighed], left_usd: float) -> float:
    """Return what the money is worth at most: of the last job that it reaches, a part."""
    found = 0.0
    for one in ordered:
        if one.price_usd >= left_usd:
            return found + (one.worth_usd * left_usd / one.price_usd if one.price_usd else 0.0)
        found += one.worth_usd
        left_usd -= one.price_usd
    return found
