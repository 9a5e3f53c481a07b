"""What each job could be rented for, and who lacks the money for it."""

from collections.abc import Iterable, Mapping

from cloudwhale.model.job import Job, Placement
from cloudwhale.model.node import NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason, Refusal
from cloudwhale.model.units import Instant, MicroUsd, usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.leasing import (
    admitted,
    bounded,
    finishing,
    landing_s,
    lease_until,
    worst_cost,
)
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.stock import Option, Stock
from cloudwhale.spi.waiting import Quote


class Till:
    """Says whether a lease is admitted; what finishing started work costs is worked out once."""

    def __init__(self, world: World, durations: Durations) -> None:
        self.world, self._durations = world, durations
        self._forecasts: dict[str, MicroUsd] = {}

    def refusal(self, job: Job, option: Option, account: Account | None) -> Refusal | None:
        """Return why a lease for one job alone is not admitted, or None."""
        worst = worst_cost(option.offer, self.world.now, self._lease_end(job, option))
        if worst is None:
            return _unpriced(option.offer)
        return bounded(job, worst) or admitted(
            account, job.run, worst, self.forecast(job.run), anew=True
        )

    def _lease_end(self, job: Job, option: Option) -> Instant:
        needed_s = option.offer.boot_s + option.runs_s
        return lease_until(1, self.world.now, needed_s, landing_s([job])).stop_at

    def forecast(self, payer: str) -> MicroUsd:
        """Return what finishing the payer's started work costs beyond its leases."""
        found = self._forecasts.get(payer)
        if found is None:
            found = finishing(self.world, payer, self._durations)
            self._forecasts[payer] = found
        return found


def quotes(
    world: World, jobs: Iterable[Job], durations: Durations, stock: Stock
) -> Mapping[str, Quote]:
    """Return for each job the cheapest machine that its payer could have now, if there is one.

    Only offers that fit and whose price and highest price are known; the money for the whole
    lease is there. Nobody is rented for who fits on a machine of ours whose agent is being started.
    """
    till, found = Till(world, durations), dict[str, Quote]()
    waking = _waking(world)
    for job in jobs:
        account = world.accounts.get(job.run)
        if account is None or account.limit is None:
            continue
        if any(isinstance(fit(spec_of(job), free), Placement) for free in waking):
            continue
        for option in stock.options(job):
            if till.refusal(job, option, account) is None:
                found[job.id] = _quote(option)
                break
    return found


def _waking(world: World) -> list[Free]:
    nodes = [n for n in world.nodes.values() if n.owned and n.state is NodeState.EXPECTED]
    return list(free_capacity(nodes, world.jobs.values()).values()) if nodes else []


def _quote(option: Option) -> Quote:
    return Quote(
        cost_usd=float(usd(option.cost)),
        usd_h=float(usd(option.price_usd_h)),
        done_s=option.offer.boot_s + option.runs_s,
    )


def unaffordable(
    world: World, jobs: Iterable[Job], durations: Durations, stock: Stock
) -> Mapping[str, Reason]:
    """Return, for jobs that some offer fits, why none of these is rented: for want of money.

    Asked for those that can run nowhere else.
    """
    till, found = Till(world, durations), dict[str, Reason]()
    for job in jobs:
        option = next(stock.options(job), None)
        if option is None:
            continue
        no = till.refusal(job, option, world.accounts.get(job.run))
        if no is not None:
            found[job.id] = told(no, option.offer.id)
    return found


def told(no: Refusal, offer: str) -> Reason:
    """Return what a job is told whose machine is not rented."""
    return Reason(code=no.code, says=f"{offer} would do, but {no.says}", change=no.change)


def _unpriced(offer: Offer) -> Refusal:
    return Refusal(
        code=Code.OVER_BUDGET, says=f"nobody knows what {offer.id} can cost", can_wait=True
    )
