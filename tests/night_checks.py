"""What must hold in every night: looked at after every write, every call and every start."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from night_boundaries import Violation
from night_cloud import Mutant
from night_house import NONE, House
from night_machines import Eye, NightMachine
from night_troubles import befall
from night_values import BEGAN_AT, Night

from cloudwhale.agent.seen import Key
from cloudwhale.control.replay import plan_again
from cloudwhale.model import event as e
from cloudwhale.model.job import Checkpoint, Job, JobState
from cloudwhale.model.plan import Round
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant
from cloudwhale.planning.ledger import STOP_LAG_S
from cloudwhale.simulation.cloud import SHOWN_S, Hired
from cloudwhale.simulation.processes import Process, work_in
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale.spi.store import JobQuery

CLOSE = 1e-3
AGAIN_S = 20.0  # two tries of a publish
SETTLES_S = 16 * 3600.0  # all that is left to run, one after the other
SWEPT_S = 2000.0
REPLAYED = 4
STEPS_MOST = 30_000
WAITS_FOR_A_PERSON = (Code.OVER_BUDGET, Code.SOFT_LINE, Code.WOULD_STRAND_STARTED_WORK)
"""The run's money is gone, past its soft line, or holds no more what one may need that is late."""


class Checks(Eye):
    """Follows one night and raises Violation as soon as something is wrong."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.reserved: Counter[str] = Counter()
        self.spent: Counter[str] = Counter()
        self.limits: dict[str, int | None] = {}
        self.held: Counter[str] = Counter()
        """What is set aside, by rental."""
        self.paid: Counter[str] = Counter()
        self.of_job: Counter[str] = Counter()
        self.settled_at: dict[str, Instant] = {}
        self.rentals: dict[str, Rental] = {}
        self.saved: dict[str, Checkpoint] = {}
        self.attempt: dict[str, int] = {}
        """Newest that was placed."""
        self.restores: dict[Key, float] = {}
        """The work that each attempt may begin from, at least."""
        self.began: dict[str, list[tuple[NightMachine, Key]]] = defaultdict(list)
        self.in_time: dict[Key, int] = {}
        """How much an attempt had published when it was out for certain, unheard."""
        self.skew_s = 1.0
        self.counts: Counter[str] = Counter()
        house.store.wrote = self.wrote
        house.asked = self.asked

    def fails(self, rule: str, says: str) -> Violation:
        """Return what is wrong."""
        return Violation(rule, says, self.house.true - BEGAN_AT)

    # -- after every write ---------------------------------------------------------------------

    def wrote(self, events: list[e.Event]) -> None:
        """Look at what was just stored."""
        for event in events:
            match event:
                case e.RunOpened(run=run):
                    self.limits[run.id] = run.budget
                case e.Reserved() | e.Charged() | e.Released():
                    self._money(event)
                case e.RentalChanged(rental=rental):
                    self._rental(rental)
                case e.Placed():
                    self._placed(event)
                case e.CheckpointSaved():
                    self._saved(event)
                case e.Cleared():
                    self._cleared(event)
                case _:
                    pass

    def _money(self, event: e.Reserved | e.Charged | e.Released) -> None:
        accounts: dict[str, int]
        if isinstance(event, e.Charged):
            accounts = {event.payer: event.amount}
            if event.account:
                accounts[event.account] = event.amount
            self.held[event.rental] -= event.amount
            self.paid[event.rental] += event.amount
            self.of_job[event.job or ""] += event.amount
        else:
            sign = 1 if isinstance(event, e.Reserved) else -1
            accounts = {event.payer: event.amount, **event.projects}
            accounts = {name: sign * amount for name, amount in accounts.items()}
            self.held[event.rental] += sign * event.amount
        for name, amount in accounts.items():
            if isinstance(event, e.Charged):
                self.reserved[name] -= amount
                self.spent[name] += amount
            else:
                self.reserved[name] += amount
            self._bounded(name)

    def _bounded(self, name: str) -> None:
        limit = self._limit(name)
        taken = self.reserved[name] + self.spent[name]
        if limit is not None and taken > limit:
            raise self.fails("over-budget", f"{name} has taken {taken} of {limit} micro-dollars")

    def _limit(self, name: str) -> int | None:
        if name.startswith("project:"):
            usd = self.house.night.projects_usd.get(name.split(":")[1])
            return None if usd is None else round(usd * 1e6)
        return self.limits.get(name)

    def _rental(self, rental: Rental) -> None:
        hired = self.house.cloud.hired.get(rental.id)
        before = self.rentals.get(rental.id)
        self.rentals[rental.id] = rental
        if rental.state is RentalState.RETURNED:
            self.settled_at[rental.id] = self.house.true
            if hired is not None and hired.ended_at is None:
                raise self.fails("paid-while-it-runs", f"{rental.id} counts as returned and runs")
            return
        if hired is None or hired.ended_at is not None or not hired.is_scheduled:
            return
        is_longer = before is not None and rental.lease.number > before.lease.number
        if is_longer and hired.stop_at < rental.lease.stop_at - CLOSE:
            late_s = rental.lease.stop_at - hired.stop_at
            says = f"the lease of {rental.id} goes {late_s:.0f} s beyond its cloud's stop"
            raise self.fails("lease-before-stop", says)

    def _placed(self, event: e.Placed) -> None:
        if event.attempt <= self.attempt.get(event.job, 0):
            raise self.fails("attempt-again", f"attempt {event.attempt} of {event.job} twice")
        self.attempt[event.job] = event.attempt
        saved = self.saved.get(event.job)
        done_s = 0.0 if saved is None else work_in(saved.name)
        self.restores[event.job, event.attempt] = done_s
        rental = self.rentals.get(event.placement.node)
        if rental is not None and rental.state is not RentalState.READY:
            raise self.fails("placed-on-the-way", f"{event.job} on {rental.id}, {rental.state}")

    def _saved(self, event: e.CheckpointSaved) -> None:
        old, new = self.saved.get(event.job), event.checkpoint
        if event.attempt != self.attempt.get(event.job) or new.attempt != event.attempt:
            says = f"{event.job}: attempt {event.attempt} saves, {self.attempt.get(event.job)} runs"
            raise self.fails("fenced-checkpoint", says)
        if old is not None and work_in(new.name) < work_in(old.name) - CLOSE:
            says = f"{event.job}: {old.name} of attempt {old.attempt} is replaced by {new.name}"
            raise self.fails("older-checkpoint", says)
        self.saved[event.job] = new

    def _cleared(self, event: e.Cleared) -> None:
        for machine, key in self.began[event.job]:
            if key[1] == event.attempt:
                self.in_time[key] = len(machine.disk.folders[key].published)

    # -- after every call of the cloud ---------------------------------------------------------

    def asked(self, verb: str, found: object) -> None:
        """Look at what a call of the cloud has done."""
        self.counts[verb] += 1
        if verb != "create" or not isinstance(found, Hired):
            return
        name = found.request.request_id
        rental = self.rentals.get(name)
        if rental is None or rental.state is RentalState.RETURNED:
            raise self.fails("launched-unpaid", f"{name} is launched and nobody pays for it")
        same = [one for one in self.house.cloud.living if one.request.node == found.request.node]
        if len(same) > 1:
            raise self.fails("launched-twice", f"{name} has {len(same)} machines")

    # -- at every start, at every publish ------------------------------------------------------

    def begins(self, machine: NightMachine, key: Key, done_s: float, now: Instant) -> None:
        job, attempt = key
        for other, older in self.began[job]:
            process = other.disk.folders[older].process
            if older == key:
                raise self.fails("began-twice", f"attempt {attempt} of {job} begins again")
            if older[1] > attempt:
                raise self.fails("fenced-start", f"attempt {attempt} of {job} after {older[1]}")
            if process is not None and process.ends_at > now + CLOSE:
                says = f"{job}: {older[1]} runs on {other.node}, {attempt} begins on {machine.node}"
                raise self.fails("two-processes", says)
        least_s = self.restores.get(key, 0.0)
        if done_s < least_s - CLOSE:
            says = f"{job}: attempt {attempt} begins from {done_s:.1f} of {least_s:.1f} s of work"
            raise self.fails("restored-older", says)
        if self.began[job]:
            self._lost(job, *self.began[job][-1], done_s, now)
        self.began[job].append((machine, key))

    def _lost(self, job: str, machine: NightMachine, key: Key, done_s: float, now: Instant) -> None:
        """Promise 4: at most the intervals of saving and publishing, and what these take.

        Both count from the newest save that the next attempt could begin from. What an agent that
        is cut off saves as it stops, and publishes when it is heard again, comes too late for that.
        """
        truth, folder = self.house.truth[job], machine.disk.folders[key]
        process = folder.process
        if process is None or truth.saves_every_s is None:
            return
        ended_at = min(now, process.ends_at)
        lost_s = process.work_done_s(ended_at) - done_s
        published = folder.published[: self.in_time.get(key)]
        since = max((one.saved_at for one in published), default=process.began_at)
        borne_s = truth.saves_every_s + truth.publish_every_s + AGAIN_S
        borne_s += 5.0 + machine.impaired_s(since, max(now, ended_at))
        if lost_s > borne_s:
            where = f"of attempt {key[1]} on {machine.node}, {borne_s:.0f} s may be"
            says = f"{job} lost {lost_s:.0f} s of work {where}"
            raise self.fails("lost-work", says)

    def publishes(self, machine: NightMachine, key: Key, now: Instant) -> None:
        """The last look at what has ended may come late: it lies where no other attempt reads."""
        job, attempt = key
        process = machine.disk.folders[key].process
        newest = max((older[1] for _, older in self.began[job]), default=0)
        if newest > attempt and process is not None and process.ends_at > now:
            says = f"{job}: attempt {attempt} publishes on {machine.node}, {newest} has begun"
            raise self.fails("fenced-publish", says)

    # -- after every step ----------------------------------------------------------------------

    def stepped(self) -> None:
        """Look at the machines that run: none past its stop, none that costs more than is kept."""
        house = self.house
        now = house.true
        if house.steps > STEPS_MOST:
            raise self.fails("endless", f"{house.steps} steps")
        self.skew_s = max(self.skew_s, 1.0 + abs(house.clock.ahead_s))
        for one in house.cloud.living:
            name = one.request.request_id
            rental = self.rentals.get(name)
            if rental is None:
                raise self.fails("unowned", f"{one.id} runs and nobody knows it")
            if now > rental.lease.stop_at + STOP_LAG_S + self.skew_s:
                raise self.fails("past-its-stop", f"{name} runs {now - rental.lease.stop_at:.0f} s")
        if house.steps % 20 == 0:
            self.billed()

    def billed(self) -> None:
        """Look at the bills of the machines that run."""
        for one in self.house.cloud.living:
            name = one.request.request_id
            bill, kept = one.bill(self.house.true), self.held[name] + self.paid[name]
            if bill > kept:
                raise self.fails("billed-above", f"{name} has cost {bill}, {kept} is kept for it")

    # -- at the end ----------------------------------------------------------------------------

    def at_end(self) -> None:
        """Look at all that is left."""
        house = self.house
        self.billed()
        world = house.store.world(house.true)
        for rental in world.rentals.values():
            raise self.fails("rental-left", f"{rental.id} is {rental.state}: {rental}")
        for job in world.jobs.values():
            if not self.may_stay(job):
                says = job.reason.says if job.reason is not None else "no reason"
                raise self.fails("job-left", f"{job.id} is {job.state}, wish {job.wish}: {says}")
        if house.cloud.running:
            raise self.fails("machine-left", f"{house.cloud.living[0].id} runs")
        for left in house.cloud.unknown(()):
            raise self.fails("left-over", f"{left.what} {left.id} of {left.node}")
        self._ends_as_it_must()
        self._adds_up()
        self._plays_again()

    def may_stay(self, job: Job) -> bool:
        """Say whether a job waits for a person, and says so."""
        if job.state is JobState.PARKED:
            return job.reason is not None
        if job.state is not JobState.PENDING or job.reason is None:
            return False
        jobs = self.house.store.world(self.house.true).jobs
        if any(other in jobs and self.may_stay(jobs[other]) for other in job.after):
            return True
        return job.reason.code in WAITS_FOR_A_PERSON

    def _ends_as_it_must(self) -> None:
        for job in self.house.store.jobs(JobQuery()):
            truth = self.house.truth[job.id]
            if job.state is JobState.COMPLETED and truth.exit_code:
                raise self.fails("wrong-end", f"{job.id} completed, its command fails")
            if job.state is JobState.CANCELLED and job.id not in self.house.cancelled:
                raise self.fails("wrong-end", f"{job.id} is cancelled, nobody asked")
            if job.state is JobState.COMPLETED and not self._has_worked(job):
                raise self.fails("wrong-end", f"{job.id} completed before its work was done")

    def _has_worked(self, job: Job) -> bool:
        for machine, key in self.began[job.id]:
            process = machine.disk.folders[key].process
            if process is not None and _is_done(process):
                return True
        return False

    def _adds_up(self) -> None:
        for name, amount in self.reserved.items():
            if amount:
                raise self.fails("still-reserved", f"{name} has {amount} set aside")
        for name, hired in self.house.cloud.hired.items():
            bill, paid = hired.bill(self.house.true), self.paid[name]
            is_forgotten = self.settled_at[name] - (hired.ended_at or 0.0) >= SHOWN_S
            if bill != paid and not (is_forgotten and paid > bill):
                raise self.fails("ledger-is-not-meter", f"{name}: billed {bill}, paid {paid}")
        for job in self.house.night.jobs:
            if job.budget_usd is not None and self.of_job[job.id] > round(job.budget_usd * 1e6):
                says = f"{job.id} has cost {self.of_job[job.id]}, its own is {job.budget_usd} USD"
                raise self.fails("over-its-own-budget", says)

    def _plays_again(self) -> None:
        store = self.house.store
        for stored in _some(self._rounds()):
            read = Round.model_validate_json(stored.model_dump_json())
            if plan_again(store, read).model_dump_json() != stored.plan.model_dump_json():
                raise self.fails("replay", f"round {stored.number} gives another plan")

    def _rounds(self) -> Iterator[Round]:
        number = 1
        while (stored := self.house.store.round(number)) is not None:
            yield stored
            number += 1


def _is_done(process: Process) -> bool:
    return process.work_done_s(process.ends_at) >= process.program.work_s - CLOSE


def _some(rounds: Iterator[Round]) -> list[Round]:
    found = list(rounds)
    every = max(1, len(found) // REPLAYED)
    return found[every - 1 :: every][:REPLAYED]


class Played:
    """What came of a night."""

    def __init__(self, house: House, checks: Checks, violation: Violation | None) -> None:
        self.house, self.checks, self.violation = house, checks, violation


def play(night: Night, mutant: Mutant = NONE, *, checks: type[Checks] = Checks) -> Played:
    """Play a night to its end, or to the first thing that is wrong."""
    house = House(night, mutant)
    watching = checks(house)
    try:
        house.begin(watching)
        befall(house)
        _live(house, watching)
        watching.at_end()
    except Violation as wrong:
        wrong.at = wrong.at or house.true - BEGAN_AT
        return Played(house, watching, wrong)
    except CloudwhaleError as error:
        says, at = f"{type(error).__name__}: {error}", house.true - BEGAN_AT
        return Played(house, watching, Violation("broken", says, at))
    return Played(house, watching, None)


def _live(house: House, watching: Checks) -> None:
    calm_at = BEGAN_AT + house.night.calm_at
    while house.true < calm_at or not (house.is_over or _is_stalled(house, watching)):
        if house.true > calm_at + SETTLES_S:
            return
        house.step()
        watching.stepped()
    end = house.true + SWEPT_S
    while house.true < end and (house.cloud.running or any(house.cloud.unknown(()))):
        house.step()
        watching.stepped()


def _is_stalled(house: House, watching: Checks) -> bool:
    """Say whether everybody who is left waits for a person."""
    if house.steps % 50:
        return False
    world = house.store.world(house.true)
    if world.rentals or house.is_coming:
        return False
    return all(watching.may_stay(job) for job in world.jobs.values())
