"""What could be rented for whom, and which of it is rented: a policy chooses, the ledger admits."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, Placement
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason, Refusal
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds, usd
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
from cloudwhale.planning.speeds import run_s
from cloudwhale.spi.renting import Choice, Rent, Rentable, RentalProblem
from cloudwhale.spi.waiting import Quote


@dataclass(frozen=True, slots=True)
class Option:
    """An offer that fits a job."""

    offer: Offer
    runs_s: Seconds
    """Expected there, boot left out."""
    price_usd_h: MicroUsd
    cost: MicroUsd
    """Expected, boot and billing minimum included."""


@dataclass(frozen=True, slots=True)
class Rented:
    """What a round rents, and why it does not rent what was asked for."""

    steps: tuple[p.Step, ...] = ()
    refused: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    """By job."""

    @property
    def jobs(self) -> frozenset[str]:
        """Return the jobs for which something was rented."""
        return frozenset(
            job for step in self.steps if isinstance(step, p.Rent) for job in step.rental.jobs
        )


class Stock:
    """What a round can rent; offers that fit are found once for all jobs that ask alike."""

    def __init__(self, world: World, durations: Durations) -> None:
        self.world = world
        self.durations = durations
        self._stalls = [(offer, _empty(offer)) for offer in _priced(world.offers)]
        self._fits: dict[str, list[tuple[Offer, str | None]]] = {}
        self._forecasts: dict[str, MicroUsd] = {}

    def options(self, job: Job) -> list[Option]:
        """Return the offers that fit a job, the cheapest first; ties end at the offer's id."""
        found: list[Option] = []
        for offer, model in self._fitting(job):
            price, runs_s = offer.price_usd_h, run_s(job, model, 0, self.durations)
            if price is not None:
                cost = _expected_cost(offer, price, runs_s)
                found.append(Option(offer, runs_s, price, cost))
        return sorted(found, key=lambda option: (option.cost, option.offer.id))

    def _fitting(self, job: Job) -> list[tuple[Offer, str | None]]:
        found = self._fits.get(job.demand)
        if found is None:
            found = self._fits[job.demand] = list(self._searched(job))
        return found

    def _searched(self, job: Job) -> Iterator[tuple[Offer, str | None]]:
        spec = spec_of(job)
        for offer, free in self._stalls:
            if spec.market not in ("auto", offer.market):
                continue
            place = fit(spec, free)
            if isinstance(place, Placement):
                models = {d.id: d.model for d in offer.facts.devices}
                yield offer, models[place.devices[0]] if place.devices else None

    def refusal(self, job: Job, option: Option, account: Account | None) -> Refusal | MicroUsd:
        """Return what a lease for one job sets aside, or why that is not admitted."""
        worst = worst_cost(option.offer, self.world.now, self._lease_end(job, option))
        if worst is None:
            return _unpriced(option.offer)
        no = bounded(job, worst) or admitted(
            account, job.run, worst, self._forecast(job.run), anew=True
        )
        return worst if no is None else no

    def _lease_end(self, job: Job, option: Option) -> Instant:
        needed_s = option.offer.boot_s + option.runs_s
        return lease_until(1, self.world.now, needed_s, landing_s([job])).stop_at

    def _forecast(self, payer: str) -> MicroUsd:
        found = self._forecasts.get(payer)
        if found is None:
            found = finishing(self.world, payer, self.durations)
            self._forecasts[payer] = found
        return found


def quotes(world: World, jobs: Iterable[Job], durations: Durations) -> Mapping[str, Quote]:
    """Return for each job the cheapest machine that its payer could have now, if there is one.

    Only offers that fit and whose price and highest price are known; the money for the whole
    lease is there. Nobody is rented for who fits on a machine of ours whose agent is being started.
    """
    if not world.offers:
        return {}
    stock, found = Stock(world, durations), dict[str, Quote]()
    waking = _waking(world)
    for job in jobs:
        account = world.accounts.get(job.run)
        if account is None or account.limit is None:
            continue
        if any(isinstance(fit(spec_of(job), free), Placement) for free in waking):
            continue
        for option in stock.options(job):
            if not isinstance(stock.refusal(job, option, account), Refusal):
                found[job.id] = _quote(option)
                break
    return found


def _waking(world: World) -> list[Free]:
    nodes = [n for n in world.nodes.values() if n.owned and n.state is NodeState.EXPECTED]
    return list(free_capacity(nodes, world.jobs.values()).values()) if nodes else []


def _quote(option: Option) -> Quote:
    offer = option.offer
    return Quote(
        cost_usd=float(usd(option.cost)),
        usd_h=float(usd(option.price_usd_h)),
        done_s=offer.boot_s + option.runs_s,
    )


def unaffordable(world: World, jobs: Iterable[Job], durations: Durations) -> Mapping[str, Reason]:
    """Return, for jobs that some offer fits, why none of these is rented: for want of money.

    Asked for those that can run nowhere else.
    """
    if not world.offers:
        return {}
    stock, found = Stock(world, durations), dict[str, Reason]()
    for job in jobs:
        for option in stock.options(job)[:1]:
            no = stock.refusal(job, option, world.accounts.get(job.run))
            if isinstance(no, Refusal):
                found[job.id] = _told(no, option.offer.id)
    return found


# -- renting ---------------------------------------------------------------------------------


def rentals(
    world: World, leaving: Sequence[tuple[Job, Reason]], rent: Rent | None, durations: Durations
) -> Rented:
    """Return the machines that are rented for those who leave the queue, first come, first served.

    What is not admitted waits, and is told why.
    """
    if not leaving or rent is None:
        return Rented()
    stock = Stock(world, durations)
    wanted = {job.id: _Wanted(job, stock.options(job)) for job, _ in leaving}
    accounts = dict(world.accounts)
    steps: list[p.Step] = []
    refused: dict[str, Reason] = {}
    for number, choice in enumerate(rent.choose(_problem(world, wanted.values())), 1):
        mine = [wanted[name] for name in choice.jobs if name in wanted]
        made = _rental(world, choice.offer, mine, f"rent-{world.version}-{number}")
        if made is None:
            continue  # what it chose fits nobody: they wait
        no = _refusal(stock, made, mine, accounts.get(made.payer))
        if no is not None:
            refused |= dict.fromkeys(made.jobs, _told(no, made.offer))
            continue
        account = accounts[made.payer]
        accounts[made.payer] = account.but(reserved=MicroUsd(account.reserved + made.reserved))
        steps.append(p.Rent(rental=made, reason=_why(made, choice)))
    return Rented(tuple(steps), refused)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A job that is to be rented for, with what would do."""

    job: Job
    options: Sequence[Option]

    def on(self, offer: str) -> Option | None:
        return next((option for option in self.options if option.offer.id == offer), None)


def _problem(world: World, wanted: Collection[_Wanted]) -> RentalProblem:
    jobs = [
        Rentable(
            job=one.job,
            runs_s={option.offer.id: option.runs_s for option in one.options},
            costs={option.offer.id: option.cost for option in one.options},
        )
        for one in wanted
    ]
    offers = {option.offer.id: option.offer for one in wanted for option in one.options}
    return RentalProblem(now=world.now, jobs=jobs, offers=offers)


def _rental(world: World, offer: str, mine: Sequence[_Wanted], name: str) -> Rental | None:
    """Return the rental of an offer for some jobs; None when it does not do for one of them."""
    found = [one.on(offer) for one in mine]
    options = [option for option in found if option is not None]
    if not options or len(options) < len(found):
        return None
    taken, jobs = options[0].offer, [one.job for one in mine]
    needed_s = taken.boot_s + max(option.runs_s for option in options)
    lease = lease_until(1, world.now, needed_s, landing_s(jobs))
    worst = worst_cost(taken, world.now, lease.stop_at)
    if worst is None:
        return None
    return Rental(
        id=name,
        node=name,
        payer=jobs[0].run,
        offer=offer,
        lease=lease,
        reserved=worst,
        taken=taken,
        jobs={job.id: job.spec.project for job in jobs},
        reserved_at=world.now,
    )


def _refusal(
    stock: Stock, made: Rental, mine: Sequence[_Wanted], account: Account | None
) -> Refusal | None:
    for one in mine:
        if (no := bounded(one.job, made.reserved)) is not None:
            return no
    forecast = finishing(stock.world, made.payer, stock.durations)
    return admitted(account, made.payer, made.reserved, forecast, anew=True)


def _why(made: Rental, choice: Choice) -> Reason:
    offer = made.taken
    price = NOTHING if offer is None else offer.price_usd_h or NOTHING
    boot_s = 0.0 if offer is None else offer.boot_s
    says = (
        f"{made.offer} for {usd(price)} USD an hour is on its way as {made.id}: "
        f"{choice.says}; {usd(made.reserved)} USD are set aside"
    )
    return Reason(code=Code.RENTED, says=says, change=f"{made.id} boots, in {boot_s:.0f} s")


def _told(no: Refusal, offer: str) -> Reason:
    return Reason(code=no.code, says=f"{offer} would do, but {no.says}", change=no.change)


def _unpriced(offer: Offer) -> Refusal:
    return Refusal(
        code=Code.OVER_BUDGET, says=f"nobody knows what {offer.id} can cost", can_wait=True
    )


def _priced(offers: Iterable[Offer]) -> Iterator[Offer]:
    """Yield the offers whose price is known and bounded."""
    for offer in offers:
        price, cap = offer.price_usd_h, offer.cap_usd_h
        if price is not None and cap is not None and price <= cap:
            yield offer


def _empty(offer: Offer) -> Free:
    """Return what would be free on a machine of an offer that nobody uses."""
    node = Node(
        id=offer.id, facts=offer.facts, state=NodeState.READY, owned=False, provider=offer.provider
    )
    return free_capacity([node], ())[node.id]


def _expected_cost(offer: Offer, price: MicroUsd, runs_s: Seconds) -> MicroUsd:
    """Return what some time is expected to cost; weighed for many pairs, so in floats."""
    used_s, step_s = offer.boot_s + runs_s, offer.billing_step_s
    billed_s = used_s if step_s <= 0 else math.ceil(used_s / step_s) * step_s
    return MicroUsd(math.ceil(price * max(billed_s, offer.billing_least_s) / 3600))
