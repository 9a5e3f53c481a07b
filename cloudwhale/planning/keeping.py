"""What becomes of rented machines: received, kept while they are needed, returned and paid."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState, Placement
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import COMES_OR_IS, Renewal, Rental, RentalState
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning import booting, gang_machines, nights, projects
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import fit
from cloudwhale.planning.gang_keeping import gangs_placed, once_each
from cloudwhale.planning.homing import goes_home
from cloudwhale.planning.hopping import hops_from, saves
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.keeps import Kept as Kept
from cloudwhale.planning.keeps import at_home as at_home
from cloudwhale.planning.leasing import (
    coming_s,
    is_fixed,
    landing_s,
    still_s,
    tenants,
)
from cloudwhale.planning.ledger import LEAST_CHARGE_S
from cloudwhale.planning.lengthening import longest, renewed
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.next_machines import as_waiting, comes, is_elsewhere
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.seats import place_step, planned_seat
from cloudwhale.planning.settling import settled
from cloudwhale.planning.speeds import run_s
from cloudwhale.planning.telling import telling

RENEWS_BEFORE_S: Seconds = 60.0  # an extension is asked for so long before the landing begins
LATE_START = 0.5  # of its own length that a job waits behind others beyond what was planned
LATE_START_S: Seconds = 600.0


def keeping(world: World, durations: Durations, without: Collection[str] = ()) -> Kept:
    """Return what is to be done with every rental; called once a round.

    `without`: ids of waiting jobs that this round gives up or parks: no machine is kept for them.
    """
    if not world.rentals:
        return Kept()
    steps: list[p.Step] = []
    expected: set[str] = set()
    placed: set[str] = set()
    look_again_at: Instant | None = None
    paid: dict[str, MicroUsd] = {}
    longer: set[str] = set()
    gangs: dict[str, list[_Keeping]] = {}
    # Who has a machine that stays and one that may be taken away goes to the first.
    for rental in sorted(world.rentals.values(), key=lambda one: (_may_be_taken(one), one.id)):
        one = _Keeping(world, durations, rental, paid, longer)
        # Who came late behind others has another machine too: it takes the first that has room.
        one.expected = [job for job in one.expected if job.id not in {*without, *placed}]
        theirs = list(one.steps())
        steps += theirs
        placed |= {step.job for step in theirs if isinstance(step, p.Place)}
        expected |= {job.id for job in one.expected}
        look_again_at = earliest(look_again_at, one.look_again_at)
        if rental.gang:
            gangs.setdefault(rental.gang, []).append(one)
    steps = [*once_each(steps), *gangs_placed(gangs.values(), placed)]
    returned = {step.rental.id for step in steps if isinstance(step, p.Return)}
    told = telling(world.rentals, world.now, returned)
    steps += told.steps
    look_again_at = earliest(look_again_at, told.look_again_at)
    return Kept(tuple(steps), frozenset(expected), look_again_at, paid)


def _may_be_taken(rental: Rental) -> bool:
    return rental.taken is not None and rental.taken.market == "spot"


class _Keeping:
    """One rental in one round."""

    def __init__(
        self,
        world: World,
        durations: Durations,
        rental: Rental,
        paid: dict[str, MicroUsd],
        longer: set[str],
    ) -> None:
        self.world, self.durations, self.rental = world, durations, rental
        self.here = tenants(world, rental)
        self.node = world.nodes.get(rental.node or "")
        self.look_again_at: Instant | None = None
        self.paid = paid
        """What this round sets aside already, by payer: first come, first served."""
        self.longer = longer
        """Machines whose lease this round lengthens."""
        self.elsewhere: set[str] = set()
        """Ids of those that it is the next machine of: they hold a place that is not free yet."""
        self.expected: list[Job] = []
        """Who is on the way, as they wait or will wait."""
        self.expected = self._expected()

    @property
    def now(self) -> Instant:
        return self.world.now

    def steps(self) -> Iterator[p.Step]:
        """Yield what is to be done."""
        if self.rental.ended_at is not None:
            yield from self._ended()
            return
        match self.rental.state:
            case RentalState.RESERVED if self.now < self.rental.lease.away_until:
                self.look_again_at = self.rental.lease.away_until
                yield p.Launch(rental=self.rental.id)
            case RentalState.RESERVED:
                return  # nobody answered in all that time; what came of it, its provider lists
            case RentalState.REQUESTED | RentalState.BOOTING:
                yield from self._booting()
            case RentalState.READY:
                yield from self._ready()
            case _:
                yield from self._draining()

    # -- who is on the way -------------------------------------------------------------------

    def _expected(self) -> list[Job]:
        rental, is_over = self.rental, nights.is_over(self.world, self.rental.payer)
        if is_over or rental.ended_at is not None or rental.state not in COMES_OR_IS:
            return []
        if not gang_machines.is_whole(self.world, rental):
            return []  # nobody starts on a part of a gang's machines
        is_ready = rental.state is RentalState.READY
        return [
            job
            for job in self._coming()
            if not goes_home(job) and not hops_from(job, rental)
            if not is_ready or (self._is_in_time(job) and not self._is_overdue(job))
        ]

    def _coming(self) -> Iterator[Job]:
        """Yield those that are still to start there; who holds a place elsewhere, as it will be."""
        for job in (self.world.jobs.get(name) for name in self.rental.jobs):
            if job is None or not comes(job, self.rental):
                continue
            if is_elsewhere(job, self.rental):
                self.elsewhere.add(job.id)
                yield as_waiting(job, self.now)
            else:
                yield job

    def _is_overdue(self, job: Job) -> bool:
        """Say whether those before it take so much longer than planned that it goes elsewhere."""
        starts_at = self.rental.starts_at.get(job.id)
        if starts_at is None or not self.here:
            return False
        late_at = starts_at + LATE_START * run_s(job, None, 0, self.durations) + LATE_START_S
        if self.now >= late_at:
            return True
        self.look_again_at = earliest(self.look_again_at, late_at)
        return False

    def _is_in_time(self, job: Job) -> bool:
        """Say whether the agent is there, and a job would not have to land at once.

        Whoever had to stop because its lease ends would come back for what is left of it.
        """
        is_there = self.node is not None and self.node.state is NodeState.READY
        if not is_there or self.now >= self._acts_at([]):
            return False
        rental, ends_s = self.rental, 0.0
        if self._is_fixed() and not saves(job):
            ends_s = coming_s([job], rental, self.durations)  # it is to end there, or not to begin
        if self.now + ends_s < self._acts_at([job]):
            return True
        return not self._is_fixed() and rental.renewal is None and self._longest([job]) is not None

    # -- on its way --------------------------------------------------------------------------

    def _booting(self) -> Iterator[p.Step]:
        rental = self.rental
        if self.node is not None and self.node.state is NodeState.READY:
            yield p.Receive(rental=rental.but(state=RentalState.READY))
            coming = list(self.expected)
            self.expected = [job for job in coming if self._is_in_time(job)]
            yield from self._placed()
            # One that is too late or too small is given back by the next round; nobody is rented
            # for anew before.
            self.expected = coming
            return
        failed, late_at = booting.not_up(rental, self.now), booting.late_at(rental)
        if rental.gang:
            late_at = min(late_at, self._acts_at([]))
            failed = failed or self._is_awaited_in_vain()
        if rental.boot.has_failed:
            yield from self._not_up(failed)
        elif not self.expected:
            yield self._return(Code.RETURNED, "nobody waits for it any more")
        elif failed:
            yield from self._not_up(failed)
        else:
            self.look_again_at = late_at

    def _is_awaited_in_vain(self) -> str:
        """Say why a machine's gang gives up on it: the others' leases are all but over."""
        mine = gang_machines.siblings(self.world, self.rental)
        waiting = [one.id for one in mine if one.state is RentalState.READY]
        if not waiting or self.now < self._acts_at([]):
            return ""
        return f"{', '.join(waiting)} of its gang have waited for it, and their leases end"

    def _not_up(self, says: str) -> Iterator[p.Step]:
        """Give a machine back that does not come up, and tell those who wait for no other."""
        reason = Reason(
            code=Code.BOOT_FAILED,
            says=f"{self.rental.id} is given back: {says}",
            change=booting.remedy(self.rental),
        )
        yield p.Return(rental=self.rental.but(state=RentalState.DRAINING), reason=reason)
        mine = {one.id for one in gang_machines.siblings(self.world, self.rental)}
        others = [one for one in self.world.rentals.values() if one.id not in mine]
        for job in self.expected:
            is_elsewhere = any(job.id in one.jobs for one in others if one.state in COMES_OR_IS)
            if not is_elsewhere:
                yield p.Explain(job=job.id, reason=reason)

    # -- ready -------------------------------------------------------------------------------

    def _ready(self) -> Iterator[p.Step]:
        placed = list(self._placed())
        yield from placed
        kept_until = min(self.rental.kept_until, self._acts_at([]))
        if not self.here and not placed and self.now < kept_until:
            self.look_again_at = earliest(self.look_again_at, kept_until)
        elif not self.here and not placed and (waits_s := self._waits_s()) > self._idles_s():
            self.expected = []
            yield self._return(
                Code.RETURNED, f"nobody runs there, and nobody may start for {waits_s:.0f} s"
            )
        elif not self.here and not self.expected:
            yield self._return(Code.RETURNED, "nothing runs there, and nobody is on the way")
        elif self.here:
            yield from self._lease(self.here)
        else:
            self.look_again_at = earliest(self.look_again_at, self._acts_at([]))

    def _waits_s(self) -> Seconds:
        """Return how long it takes until the first of those on the way may start, after a retry."""
        begins = [job.not_before or self.now for job in self.expected]
        return max(0.0, min(begins, default=self.now) - self.now)

    def _idles_s(self) -> Seconds:
        """Return how long a machine may idle: another boots as long, and bills its least."""
        offer = self.rental.taken
        return 0.0 if offer is None else offer.boot_s + max(LEAST_CHARGE_S, offer.billing_least_s)

    def _placed(self) -> Iterator[p.Step]:
        """Place those whom it was rented for, first first, as far as there is room.

        Before its planned start nobody passes who was to start earlier and has no room yet.
        """
        free = self.free() if self.expected and not self.rental.gang else None
        if free is None:
            return
        is_empty, is_behind = not self.here, False
        for job in list(self.expected):
            if is_behind and self.is_early(job):
                continue
            place = self._place(job, free, is_empty=is_empty)
            if isinstance(place, Placement):
                is_empty = False
                free = free.less(job.wants, place)
                yield place_step(job, place, self.rental)
            elif job in self.expected and job.id in self.rental.starts_at:
                is_behind = is_behind or not self.waits_otherwise(job)

    def free(self) -> Free | None:
        """Return what is free on the machine; None when its agent is not there."""
        if self.node is None:
            return None
        return free_capacity([self.node], self.here, self.world.sightings)[self.node.id]

    def is_early(self, job: Job) -> bool:
        """Say whether a job is to start later, as it was planned; then it is looked at again."""
        starts_at = self.rental.starts_at.get(job.id)
        if starts_at is None or self.now >= starts_at:
            return False
        self.look_again_at = earliest(self.look_again_at, starts_at)
        return True

    def waits_otherwise(self, job: Job) -> bool:
        """Say whether a job waits for something else than room, like the end of its attempt."""
        is_backing_off = job.not_before is not None and self.now < job.not_before
        is_bound = is_backing_off or job.id in self.elsewhere
        return is_bound or any(other in self.world.jobs for other in job.after)

    def _place(self, job: Job, free: Free, *, is_empty: bool) -> Placement | None:
        """Return its place; None when it waits. Whom the machine no longer suits goes elsewhere."""
        if self.waits_otherwise(job):
            if job.not_before is not None and self.now < job.not_before:
                self.look_again_at = earliest(self.look_again_at, job.not_before)
            return None
        found = planned_seat(job, free, self.rental) or fit(spec_of(job), free)
        if isinstance(found, Placement):
            return found
        if not found.can_wait or is_empty:
            self.expected.remove(job)
        return None

    # -- the lease ---------------------------------------------------------------------------

    def _acts_at(self, jobs: Sequence[Job]) -> Instant:
        return self.rental.lease.away_until - landing_s(jobs) - RENEWS_BEFORE_S

    def _lease(self, jobs: Sequence[Job]) -> Iterator[p.Step]:
        """Lengthen the lease in time, where that is paid for; land the jobs else."""
        rental, acts_at = self.rental, self._acts_at([*jobs, *self.expected])
        lands_at = rental.lease.away_until - landing_s(jobs)
        if rental.renewal is not None:
            yield p.Extend(rental=rental.id)
        elif self.now < acts_at:
            self.look_again_at = earliest(self.look_again_at, acts_at)
            return
        elif not self._is_fixed() and (longer := self._renewed(jobs)) is not None:
            yield longer
            return
        if self.now >= lands_at:
            left_s = rental.lease.away_until - self.now
            yield from self._land(jobs, f"the lease of {rental.id} ends in {left_s:.0f} s")
        else:
            self.look_again_at = earliest(self.look_again_at, lands_at)

    def _is_fixed(self) -> bool:
        """Say whether a stop cannot be moved; of a gang none is, where one cannot be."""
        return any(is_fixed(one) for one in gang_machines.siblings(self.world, self.rental))

    def _renewed(self, jobs: Sequence[Job]) -> p.Renew | None:
        """Return the longest lease that its payers can afford; None: no longer one."""
        found = self._longest([*jobs, *self.expected])
        if found is None:
            return None
        more = {self.rental.payer: found.reserved, **found.projects}
        self.paid |= projects.with_more(self.paid, more)
        self.longer.add(self.rental.id)
        return renewed(self.rental, found)

    def _longest(self, jobs: Sequence[Job]) -> Renewal | None:
        """Return the longest lease for jobs that are there or to come; None: no longer one."""
        rental = self.rental
        world = replace(self.world, accounts=projects.less(self.world, self.paid))
        if rental.gang:
            world, jobs = gang_machines.sharing(world, rental, jobs, self.longer)
        here = [job for job in jobs if job.placement is not None]
        coming = [job for job in jobs if job.placement is None]
        wanted_s = still_s(here, rental, self.durations, self.now)
        wanted_s += coming_s(coming, rental, self.durations)
        return longest(world, rental, jobs, wanted_s, landing_s(jobs))

    def _land(self, jobs: Sequence[Job], why: str) -> Iterator[p.Step]:
        for job in jobs:
            if job.wish is None and job.state is not JobState.RECOVERING:
                reason = Reason(
                    code=Code.LEASE_ENDS,
                    says=f"stops, checkpoint first: {why}",
                    change=nights.after_landing(self.world, self.rental),
                )
                yield p.AskToStop(job=job.id, attempt=job.attempt, wish="give-way", reason=reason)

    # -- on its way back ---------------------------------------------------------------------

    def _return(self, code: Code, says: str) -> p.Return:
        reason = Reason(code=code, says=f"{self.rental.id} is given back: {says}")
        return p.Return(rental=self.rental.but(state=RentalState.DRAINING), reason=reason)

    def _draining(self) -> Iterator[p.Step]:
        if self.here:
            yield from self._land(self.here, f"{self.rental.id} is taken away")
        else:
            yield p.Terminate(rental=self.rental.id)

    def _ended(self) -> Iterator[p.Step]:
        """Lose what ran there for certain, and pay once nobody holds a place on what is gone."""
        live = [job for job in self.here if job.state is not JobState.RECOVERING]
        if self.node is not None and (live or self.node.state is not NodeState.LOST):
            yield p.DeclareLost(
                node=self.node.id,
                silent_s=max(0.0, self.now - (self.rental.ended_at or self.now)),
                attempts=tuple((job.id, job.attempt) for job in live),
                reason=Reason(
                    code=Code.MACHINE_GONE,
                    says=f"{self.rental.id} is gone, and what ran there with it",
                    change="the job starts elsewhere",
                ),
            )
        if not self.here:
            yield settled(self.rental, self.world)
