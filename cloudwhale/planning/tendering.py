"""Turns those who leave the queue into machines: one problem a payer, what comes of it, and why."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason, Refusal
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import (
    MICRO_PER_USD,
    NOTHING,
    MicroUsd,
    Seconds,
    usd,
)
from cloudwhale.model.world import Account, World
from cloudwhale.planning import ledger, nights, projects
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.enough import needed_usd
from cloudwhale.planning.gang_renting import alike, most_at_once
from cloudwhale.planning.leasing import (
    admitted,
    bounded,
    held_for,
    landing_s,
    late_until,
    lease_until,
    longer_for,
    own_left,
    pledged,
    tail,
    worst_case,
    worst_cost,
)
from cloudwhale.planning.payers import account_in, payers_of
from cloudwhale.planning.problems import Purse, by_payer, problem_of
from cloudwhale.planning.renting import Till, told
from cloudwhale.planning.stock import Stock
from cloudwhale.planning.tenders import micro, tender
from cloudwhale.planning.too_late import too_late
from cloudwhale.planning.worth import Chosen, chosen, weighed
from cloudwhale.spi.renting import Choice, Rent, RentalProblem

RAISE = "raise the budget of the run"
RUNS = (JobState.STARTING, JobState.RUNNING)
"""Those that are rented for while they run are moved."""


@dataclass(frozen=True, slots=True)
class Rented:
    """What a round rents, and why it does not rent what was asked for."""

    steps: tuple[p.Rent, ...] = ()
    refused: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    """By job."""
    tenders: tuple[p.Tender, ...] = ()

    @property
    def jobs(self) -> frozenset[str]:
        """Return the jobs for which something was rented."""
        return frozenset(job for step in self.steps for job in step.rental.jobs)


def rentals(
    world: World,
    leaving: Sequence[tuple[Job, Reason]],
    rent: Rent | None,
    durations: Durations,
    stock: Stock,
) -> Rented:
    """Return the machines that are rented for those who leave the queue.

    Who comes first gets the money first; of a night whose money does not hold all, who is worth
    most a dollar. What is not admitted waits, and is told why.
    """
    if not leaving or rent is None:
        return Rented()
    made = _Tendering(world, rent, durations, stock)
    made.refused = dict(nights.barred(world))
    may = [job for job, _ in leaving if job.id not in made.refused]
    by_night = [job for job in may if nights.night_of(world, job.run) is not None]
    by_day = [job for job in may if nights.night_of(world, job.run) is None]
    for jobs in by_payer(by_day, world, stock):
        made.ask_for(jobs)
    for run in dict.fromkeys(job.run for job in by_night):
        made.ask_for_night([job for job in by_night if job.run == run])
    return Rented(tuple(made.steps), made.refused, tuple(made.tenders))


class _Tendering:
    """One round's problems, one after another: each is asked with the money that is left then."""

    def __init__(self, world: World, rent: Rent, durations: Durations, stock: Stock) -> None:
        self.world, self.rent, self.stock = world, rent, stock
        self.till = Till(world, durations, stock.keeps, stock.promised)
        self.accounts = dict(world.accounts)
        self.late: dict[str, MicroUsd] = {}
        """What the machines of this round may need beyond their leases, by account."""
        self.steps: list[p.Rent] = []
        self.refused: dict[str, Reason] = {}
        self.tenders: list[p.Tender] = []
        self.at_once: set[str] = set()
        """Ids of those that go to on-demand now, as they would lack the money to switch later."""
        self._number = 0

    def ask_for_night(self, jobs: Sequence[Job]) -> None:
        """Ask for machines for all jobs of a night that leave."""
        chosen = self._chosen(jobs)
        for part in self._wholes_first(jobs) if chosen is None else chosen.jobs:
            for group in by_payer(part, self.world, self.stock):
                self.ask_for(group)
        for name, reason in ({} if chosen is None else chosen.why_not()).items():
            told_so = self.refused.get(name)
            if told_so is not None and told_so.code in ledger.FOR_MONEY:
                self.refused[name] = reason

    def _wholes_first(self, jobs: Sequence[Job]) -> Sequence[Sequence[Job]]:
        """Return who can be done tonight, and then those of whom a part can."""
        parts = [job for job in jobs if job.id in self.stock.shares]
        return [some for some in ([job for job in jobs if job not in parts], parts) if some]

    def _chosen(self, jobs: Sequence[Job]) -> Chosen | None:
        """Return who of a night is worth the money that is left; None: all may be had, or asked."""
        found = (weighed(job, self.stock, self.world.now) for job in jobs)
        known = [one for one in found if one is not None]
        return chosen(known, self._run_left_usd(jobs[0])) if len(known) == len(jobs) else None

    def ask_for(self, jobs: Sequence[Job]) -> None:
        """Ask for machines for some jobs of one payer, and take those that are admitted."""
        jobs = self._for_their_markets(jobs)
        payer, by_id = jobs[0].run, {job.id: job for job in jobs}
        problem = problem_of(self.stock, jobs, self.world.now, self._purse(jobs), self.world.seed)
        found = self.rent.choose(problem)
        for choice in found.choices:
            mine = [by_id[name] for name in choice.jobs if name in by_id]
            self._take(choice, mine)
        for name, why in found.left_out.items():
            if name in by_id:
                self.refused[name] = self._left_out(by_id[name], why)
        if "budget" in found.left_out.values():
            self._say_enough(problem, self.accounts.get(payer))
        self.tenders.append(tender(payer, problem, found))

    def _for_their_markets(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Return jobs, for on-demand alone those that lack the money to switch to it later.

        Who comes first keeps its money first, as if each had a machine of its own.
        """
        if not any(job.id in self.stock.keeps for job in jobs):
            return jobs
        left, found = self._left_usd(jobs) * MICRO_PER_USD, list[Job]()
        for job in jobs:
            option = next(self.stock.options(job), None)
            if option is None or option.offer.market != "spot" or job.id not in self.stock.keeps:
                found.append(job)
                continue
            needed_s = option.offer.boot_s + option.runs_s
            worst = worst_case(option.offer, needed_s, [job], self.world.now) or NOTHING
            needs = worst + tail(option.offer, needed_s) + self.till.keep(job, option.offer)
            if needs <= left:
                left -= needs
                found.append(job)
            else:
                self.at_once.add(job.id)
                found.append(job.but(spec=job.spec.but(market="on-demand")))
        return found

    def _purse(self, jobs: Sequence[Job]) -> Purse:
        rented: dict[str, float] = {}
        for taken in (step.rental.taken for step in self.steps):
            if taken is not None:
                rented[taken.quota] = rented.get(taken.quota, 0.0) + taken.quota_units
        horizon_s = nights.horizon_s(self.world, jobs[0].run, landing_s(jobs))
        return Purse(self._left_usd(jobs), horizon_s, rented)

    def _left_usd(self, jobs: Sequence[Job]) -> float:
        """Return what the payer may set aside so that all started work can still be finished."""
        world = self.till.given_back(jobs, self.accounts)
        if jobs[0].run not in world.accounts:
            return 0.0
        payers = {payer for job in jobs for payer in payers_of(job, world)}
        left = [self._left(payer, world, jobs) for payer in sorted(payers)]
        own = (own_left(job, held_for(self.world, job)) for job in jobs)
        budgets = [some for some in own if some is not None]
        brings = sum(self.stock.bringing.most(job) for job in jobs)
        return max(0, min([*left, *budgets]) - brings) / MICRO_PER_USD

    def _left(self, payer: str, world: World, jobs: Sequence[Job]) -> int:
        """Return what an account may set aside; what has started may still need some of it."""
        return ledger.left(account_in(world, payer)) - self._started(payer, jobs)

    def _started(self, payer: str, jobs: Sequence[Job] = ()) -> MicroUsd:
        """Return what finishing an account's work may need beyond its leases.

        For those who switch as they were promised it is what others were: as with longer leases.
        """
        is_promised = bool(jobs) and all(self.stock.is_promised_now(job) for job in jobs)
        needed = self.till.pledged(payer) if is_promised else self.till.forecast(payer)
        return MicroUsd(needed + self.late.get(payer, NOTHING))

    def _now(self) -> World:
        """Return the world with what this round has set aside so far."""
        return replace(self.world, accounts=self.accounts)

    def _take(self, choice: Choice, mine: Sequence[Job]) -> None:
        """Take a machine, or all of a gang's: their money is set aside together or not at all."""
        first = self._number + 1
        names = [self._name(first + at) for at in range(choice.machines)]
        made = self._step(choice, mine, names[0])
        if made is None:
            return  # what it chose fits nobody: they wait
        self._number += len(names)
        no = self._refusal(made.rental, mine, len(names))
        if no is not None:
            self.refused |= dict.fromkeys(made.rental.jobs, told(no, made.rental.offer))
            return
        steps = alike(made, names)
        self.accounts = dict(self.till.given_back(mine, self.accounts).accounts)
        for rental in (step.rental for step in steps):
            taken = {rental.payer: rental.reserved, **rental.projects}
            self.accounts = dict(projects.less(self._now(), taken))
            for payer in taken:
                more = self._late(rental, mine)
                self.late[payer] = MicroUsd(self.late.get(payer, NOTHING) + more)
        self.steps += steps

    def _name(self, number: int) -> str:
        return f"rent-{self.world.version}-{number}"

    def _late(self, made: Rental, mine: Sequence[Job]) -> MicroUsd:
        """Return what a machine, and those that may have to switch from it, may need later."""
        offer = made.taken
        keeps = [NOTHING if offer is None else self.till.keep(job, offer) for job in mine]
        return MicroUsd(pledged(made) + sum(keeps))

    def _refusal(self, made: Rental, mine: Sequence[Job], many: int) -> Refusal | None:
        """Return why so many machines that are alike are not admitted, or None."""
        whole, kept = MicroUsd(many * made.reserved), MicroUsd(many * self._late(made, mine))
        for one in mine:
            may_cost = MicroUsd(whole + kept)
            if (no := bounded(one, may_cost, held_for(self.world, one))) is not None:
                return no
        payers = (made.payer, *made.projects)
        started = {payer: MicroUsd(self._started(payer, mine) + kept) for payer in payers}
        world = self.till.given_back(mine, self.accounts)
        account = world.accounts.get(made.payer)
        beside = {payer: MicroUsd(many * amount) for payer, amount in made.projects.items()}
        # Who switches was promised the money: past the soft line what has started goes on.
        anew = any(one.id not in self.stock.at_once for one in mine)
        return ledger.together(
            admitted(account, made.payer, whole, started[made.payer], anew=anew),
            projects.refusal(world, beside, started, anew=anew),
        )

    def _step(self, choice: Choice, mine: Sequence[Job], name: str) -> p.Rent | None:
        """Return the rental of an offer for some jobs; None when it does not do for one of them."""
        at = self.stock.position.get(choice.offer)
        if at is None or not mine or len(mine) < len(choice.seats):
            return None
        if any(job.spec.nodes != choice.machines for job in mine):
            return None
        runs_s = {job.id: float(self.stock.runs_s(job)[at]) for job in mine}
        if any(math.isinf(run_s) for run_s in runs_s.values()):
            return None
        offer, kind = self.stock.offers[at], self.stock.kinds[at]
        used_s = max(choice.used_s, kind.boot_s + max(runs_s.values()))
        now = self.world.now
        starts_at = {seat.job: now + seat.start_s for seat in choice.seats}
        made = self._rental(offer, mine, used_s, name)
        if made is None:
            return None
        seats = tuple(
            p.PlannedSeat(
                job=seat.job,
                starts_at=starts_at[seat.job],
                ends_at=starts_at[seat.job] + runs_s[seat.job],
            )
            for seat in choice.seats
        )
        moved_usd = sum(float(self.stock.moved_usd(job)[at]) for job in mine) / choice.machines
        cost = micro(kind.cost_usd(used_s) + moved_usd)
        beside = projects.for_new(made, {seat.job: seat.ends_at for seat in seats})
        devices = {seat.job: seat.devices for seat in choice.seats if seat.devices}
        made = made.but(starts_at=starts_at, seats=devices, projects=beside)
        return p.Rent(
            rental=made,
            reason=self._why(made, choice),
            seats=seats,
            cost=cost,
            moved=micro(moved_usd),
        )

    def _why(self, made: Rental, choice: Choice) -> Reason:
        offer = made.taken
        price = NOTHING if offer is None else offer.price_usd_h or NOTHING
        boot_s = 0.0 if offer is None else offer.boot_s
        says = (
            f"{made.offer} for {usd(price)} USD an hour is on its way as {made.id}: "
            f"{choice.says}; {usd(made.reserved)} USD are set aside"
        )
        jobs = (self.world.jobs[name] for name in made.jobs)
        keeps = 0 if offer is None else sum(self.till.keep(job, offer) for job in jobs)
        if keeps:
            says += f", and {usd(MicroUsd(keeps))} USD are kept to switch to on-demand in time"
        if not self.at_once.isdisjoint(made.jobs):
            says += (
                "; on-demand at once, as the budget does not hold a spot machine and the switch "
                "to on-demand that its deadline may ask for"
            )
        return Reason(code=Code.RENTED, says=says, change=f"{made.id} boots, in {boot_s:.0f} s")

    def _rental(
        self, offer: Offer, mine: Sequence[Job], used_s: Seconds, name: str
    ) -> Rental | None:
        landing = landing_s(mine)
        ends_at = nights.ends_at(self.world, mine[0].run)
        lease = lease_until(1, self.world.now, used_s, landing, longer_for(offer))
        lease = nights.capped(lease, ends_at)
        worst = worst_cost(offer, self.world.now, lease.stop_at)
        if worst is None:
            return None
        jobs, bringing = self.world.jobs, self.stock.bringing
        prices = {job.id: bringing.usd_gb(job, offer) for job in mine}
        brings = {name: price for name, price in prices.items() if price is not None}
        worst = MicroUsd(worst + sum(bringing.worst(job, offer) for job in mine))
        return Rental(
            id=name,
            node=name,
            payer=mine[0].run,
            offer=offer.id,
            lease=lease,
            reserved=worst,
            brings=brings,
            taken=offer,
            jobs={job.id: job.spec.project for job in mine},
            moves=tuple(job.id for job in mine if jobs[job.id].state in RUNS),
            reserved_at=self.world.now,
            late_until=min(late_until(self.world.now, used_s, landing), ends_at),
        )

    def _say_enough(self, problem: RentalProblem, account: Account | None) -> None:
        """Tell those who go without a machine for others' sake which budget would do for all."""
        if account is None or account.limit is None:
            return
        # What this round has rented of the problem is among what is needed.
        mine = [one.rental for one in self.steps if one.rental.jobs.keys() <= set(problem.jobs)]
        before = sum(one.reserved + pledged(one) for one in mine)
        taken = account.spent + account.reserved + self._started(account.payer) - before
        enough = needed_usd(problem, taken / MICRO_PER_USD, account.soft)
        if enough is None:
            return
        for name in problem.jobs:
            told_so = self.refused.get(name)
            if told_so is not None and told_so.change == RAISE:
                says = f"{RAISE}: {math.ceil(100 * enough) / 100:.2f} USD do for a machine for each"
                self.refused[name] = told_so.but(change=says)

    def _left_out(self, job: Job, why: str) -> Reason:
        option = next(self.stock.options(job), None)
        offer = "nothing" if option is None else option.offer.id
        if why == "late":
            return too_late(self.world, self.stock, job)
        if why == "quota" and (most := most_at_once(self.world, self.stock, job)) < job.spec.nodes:
            says = (
                f"is a gang of {job.spec.nodes} machines, and of none that suits it more than "
                f"{most} can be had at once"
            )
            change = f"a larger quota, or `nodes: {most}`" if most else "a larger quota"
            return Reason(code=Code.GANG, says=says, change=change)
        if why == "quota":
            says = f"{offer} would do, but its quota lets us have no more of them"
            return Reason(code=Code.QUOTA, says=says, change="a machine is given back")
        if option is not None:
            no = self.till.refusal(job, option, self.accounts.get(job.run))
            if no is not None:
                return told(no, offer)
        says = "what others of its run that come first need takes the rest of the budget"
        project = job.spec.project
        if project in self.world.budgets and self._left_usd([job]) < self._run_left_usd(job):
            says = f"what is left of this month's budget of project {project} is less than it needs"
            change = f"raise it: `cloudwhale budget set {quote(project)} USD/month`"
            return Reason(code=Code.OVER_BUDGET, says=says, change=change)
        return Reason(code=Code.OVER_BUDGET, says=says, change=RAISE)

    def _run_left_usd(self, job: Job) -> float:
        world = self.till.given_back([job], self.accounts)
        return self._left(job.run, world, [job]) / MICRO_PER_USD if job.run in world.accounts else 0
