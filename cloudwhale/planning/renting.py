"""What each job could be rented for, and who lacks the money for it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from cloudwhale.model.job import Job, Placement
from cloudwhale.model.node import NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason, Refusal
from cloudwhale.model.units import NOTHING, MicroUsd, usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning import nights, projects
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.leasing import (
    admitted,
    bounded,
    held_for,
    landing_s,
    pledges,
    tail,
    worst_case,
)
from cloudwhale.planning.ledger import together
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.payers import account_name, month_of, payers_of, project_and_month
from cloudwhale.planning.started import Started
from cloudwhale.planning.stock import Option, Stock
from cloudwhale.planning.too_late import by_morning
from cloudwhale.spi.waiting import Quote


class Till:
    """Says whether a lease is admitted; what finishing started work costs is worked out once."""

    def __init__(
        self,
        world: World,
        durations: Durations,
        keeps: Mapping[str, MicroUsd] | None = None,
        promised: Collection[str] = (),
        started: Started | None = None,
    ) -> None:
        """`promised`: ids of those whose part of `keeps` is in no account of the world any more.

        `started`: the forecasts of the same rentals and jobs, where they are known already.
        """
        self.world = world
        self._keeps = keeps or {}
        """By job: what is kept beside a spot machine of its."""
        self._promised = promised
        self._started = started or Started(world, durations)
        self._month = month_of(world.now)

    def refusal(self, job: Job, option: Option, account: Account | None) -> Refusal | None:
        """Return why a lease for one job alone is not admitted, or None.

        Beside a spot machine there is to be money to switch from it to on-demand.
        """
        keep = self.keep(job, option.offer)
        no = self._refusal(job, option, account, keep)
        if no is None or not keep or self._refusal(job, option, account, NOTHING) is not None:
            return no
        return no.but(
            code=Code.OVER_BUDGET,
            says=f"with the {usd(keep)} USD that switching to on-demand for its deadline could "
            f"cost it is too much: {no.says}",
        )

    def _refusal(
        self, job: Job, option: Option, account: Account | None, keep: MicroUsd
    ) -> Refusal | None:
        now, needed_s = self.world.now, option.offer.boot_s + option.runs_s
        worst = worst_case(option.offer, needed_s, [job], now)
        if worst is None:
            return _unpriced(option.offer)
        worst = MicroUsd(worst + option.brings)
        # The machines of a gang are paid for together, or not at all.
        many = job.spec.nodes
        late = MicroUsd(many * (tail(option.offer, needed_s) + keep))
        worst = MicroUsd(many * worst)
        forecast = MicroUsd(self.forecast(job.run) + late)
        theirs = account_name(job.spec.project, self._month)
        started = {theirs: MicroUsd(self.forecast(theirs) + late)}
        world = self.world
        if job.id in self._promised:
            accounts = {} if account is None else {job.run: account}
            world = self.given_back([job], {**world.accounts, **accounts})
            account = world.accounts.get(job.run)
        return together(
            bounded(job, MicroUsd(worst + late), held_for(world, job)),
            admitted(account, job.run, worst, forecast, anew=True),
            projects.refusal(world, {theirs: worst}, started),
        )

    def given_back(self, jobs: Iterable[Job], accounts: Mapping[str, Account]) -> World:
        """Return the world with some accounts in which jobs have what was promised to them."""
        world = replace(self.world, accounts=accounts)
        for job in jobs:
            if job.id in self._promised:
                back = MicroUsd(-self._keeps.get(job.id, NOTHING))
                given = projects.less(world, dict.fromkeys(payers_of(job, world), back))
                world = replace(world, accounts=given)
        return world

    def keep(self, job: Job, offer: Offer) -> MicroUsd:
        """Return what has to be kept for a job beside a machine of an offer: to switch from it."""
        return self._keeps.get(job.id, NOTHING) if offer.market == "spot" else NOTHING

    def pledged(self, payer: str) -> MicroUsd:
        """Return what a run or project has pledged to its machines beyond their leases."""
        if project_and_month(payer) is not None:
            return projects.pledges(self.world, but="").get(payer, NOTHING)
        return pledges(self.world, payer, but="")

    def forecast(self, payer: str) -> MicroUsd:
        """Return what finishing the started work of a run or project costs beyond its leases."""
        return self._started.of(payer)


def quotes(
    world: World,
    jobs: Collection[Job],
    durations: Durations,
    stock: Stock,
    started: Started | None = None,
) -> Mapping[str, Quote]:
    """Return for each job the cheapest machine that its payer could have now, if there is one.

    Only offers that fit and whose price and highest price are known; the money for the whole
    lease is there. Nobody is rented for who fits on a machine of ours whose agent is being started.
    """
    till = Till(world, durations, stock.keeps, stock.promised, started)
    found: dict[str, Quote] = {}
    barred = nights.barred(world)
    stock.look_at(jobs)
    waking = _waking(world)
    for job in jobs:
        account = world.accounts.get(job.run)
        if account is None or account.limit is None or job.id in barred:
            continue
        horizon_s = nights.horizon_s(world, job.run, landing_s([job]))
        if any(isinstance(fit(spec_of(job), free), Placement) for free in waking):
            continue
        for option in stock.options(job):
            is_in_time = option.offer.boot_s + option.runs_s <= horizon_s
            if is_in_time and till.refusal(job, option, account) is None:
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
    world: World,
    jobs: Iterable[Job],
    durations: Durations,
    stock: Stock,
    started: Started | None = None,
) -> Mapping[str, Reason]:
    """Return, for jobs that some offer fits, why none of these is rented: for want of money.

    Asked for those that can run nowhere else.
    """
    till = Till(world, durations, stock.keeps, stock.promised, started)
    found: dict[str, Reason] = {}
    barred = nights.barred(world)
    for job in jobs:
        option = next(stock.options(job), None)
        if option is None:
            continue
        at_night = barred.get(job.id) or by_morning(world, stock, job)
        if at_night is not None:
            found[job.id] = at_night
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
