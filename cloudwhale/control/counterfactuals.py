"""What a run would have cost otherwise: its stored rounds, planned again in another world.

The rounds that stand for a run are those that rented a machine for it which came, and those that
first placed its jobs on machines of ours. In each the same jobs are planned for again, each job
once in a course, in the first round that had a machine for it: what a machine that is taken away
costs is in what is expected of one on spot.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from cloudwhale import plugins
from cloudwhale.control.replay import policies_of, world_of
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.plan import Plan, Round
from cloudwhale.model.receipt import Course, Otherwise
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, usd
from cloudwhale.model.world import World
from cloudwhale.planning import otherwise as o
from cloudwhale.planning.planner import plan
from cloudwhale.planning.policies import Policies
from cloudwhale.planning.waited_out import ends_at_home
from cloudwhale.spi.store import Store

JOBS_READ = 300
"""Of so many jobs that were never rented for it is looked up when they got their places."""

AT_ONCE = "no-wait"
"""The wait policy that has everybody rented for who fits nowhere."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A round that stands for a run."""

    stored: Round
    machines: Mapping[str, tuple[str, ...]]
    """The jobs of each machine that came, by its id."""
    placed: frozenset[str]
    """Jobs that it placed on machines of ours for the first time."""

    def rented(self, but: Collection[str] = ()) -> frozenset[str]:
        """Return the jobs of all machines, but those that are for some alone."""
        new = (jobs for jobs in self.machines.values() if not set(jobs) <= set(but))
        return frozenset(job for jobs in new for job in jobs)


@dataclass(slots=True)
class _Sum:
    """One course, added up over rounds."""

    then: list[MicroUsd | None] = field(default_factory=list[MicroUsd | None])
    other: list[MicroUsd | None] = field(default_factory=list[MicroUsd | None])
    bound: list[MicroUsd | None] = field(default_factory=list[MicroUsd | None])
    rounds: list[int] = field(default_factory=list[int])
    jobs: set[str] = field(default_factory=set[str])
    without: set[str] = field(default_factory=set[str])

    def add(self, number: int, jobs: frozenset[str], then: o.Course, other: o.Course) -> None:
        """Add a round."""
        self.then.append(then.cost)
        self.other.append(None if other.without else other.cost)
        self.bound.append(other.bound)
        self.rounds.append(number)
        self.jobs |= jobs
        self.without |= set(other.without)

    def told(self, course: Course) -> Otherwise:
        """Return what it comes to."""
        other = _total(self.other)
        # A plan for the jobs of several rounds at once may put them together, and be below the sum
        # of what each round's plans cannot be below.
        bound = _total(self.bound) if len(self.rounds) == 1 else None
        is_bound = other is not None and bound is not None and 0 < other
        return Otherwise(
            course=course,
            jobs=len(self.jobs),
            rounds=tuple(self.rounds),
            then_usd=_usd(_total(self.then)),
            other_usd=_usd(other),
            bound_usd=_usd(bound),
            gap=max(0.0, 1 - bound / other) if is_bound and bound and other else None,
            without=tuple(sorted(self.without)),
        )


def _total(parts: Sequence[MicroUsd | None]) -> MicroUsd | None:
    known = [part for part in parts if part is not None]
    return MicroUsd(sum(known)) if known and len(known) == len(parts) else None


def _usd(amount: MicroUsd | None) -> Decimal | None:
    return None if amount is None else usd(amount)


def counterfactuals(store: Store, run: str, jobs: Sequence[Job]) -> tuple[Otherwise, ...]:
    """Return each other course of a run; none where no round is known that stands for it.

    Plans anew for each round and course: seconds for large ones, so nobody asks it unasked.
    """
    found: dict[Course, _Sum] = {course: _Sum() for course in _CHANGES}
    waited = _Waited()
    for standing in standing_for(store, run, jobs):
        again = _Again(run, standing, world_of(store, standing.stored))
        waited.add(again)
        for course, added in found.items():
            asked = again.asked(course, added.jobs)
            if asked:
                then = o.course_of(standing.stored.plan, asked, standing.machines)
                added.add(standing.stored.number, asked, then, again.course(course, asked))
    told = [added.told(course) for course, added in found.items() if added.rounds]
    return (*told, *waited.told(found["on-demand"]))


# -- which rounds ----------------------------------------------------------------------------


def standing_for(store: Store, run: str, jobs: Sequence[Job]) -> Sequence[Standing]:
    """Return the rounds that stand for a run, oldest first."""
    rentals = store.rentals(run)
    rented = {job for one in rentals if one.requested_at is not None for job in one.jobs}
    others = [job.id for job in jobs if job.id not in rented and job.attempt]
    rounds: dict[int, Round] = {}
    for job in (*sorted(rented), *others[:JOBS_READ]):
        rounds |= {stored.number: stored for stored, _ in store.rounds(job)}
    mine = frozenset(job.id for job in jobs)
    made = (_standing(rounds[number], run, mine, rentals) for number in sorted(rounds))
    return _all_offered([one for one in made if one.machines or one.placed])


def _standing(stored: Round, run: str, mine: frozenset[str], rentals: Sequence[Rental]) -> Standing:
    came = {one.id for one in rentals if one.requested_at is not None}
    machines = {name: of for name, of in o.rented_in(stored.plan, run).items() if name in came}
    away = {one.node for one in rentals}
    placed = frozenset(
        step.job
        for step in stored.plan.steps
        if isinstance(step, p.Place)
        and step.attempt == 1
        and step.job in mine
        and away.isdisjoint(step.placement.nodes)
    )
    return Standing(stored, machines, placed)


def _all_offered(found: Sequence[Standing]) -> Sequence[Standing]:
    """Return rounds in which something is offered: where nobody had asked yet, what came next."""
    offers, made = "", list[Standing]()
    for one in reversed(found):
        offers = one.stored.offers or offers
        made.append(replace(one, stored=one.stored.but(offers=offers)))
    return made[::-1]


# -- planned again ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Again:
    """One round, to be planned again in other courses."""

    run: str
    standing: Standing
    world: World

    def asked(self, course: Course, but: Collection[str]) -> frozenset[str]:
        """Return the jobs that are planned for; `but`: those that have been already."""
        rented = self.standing.rented(but)
        return rented | (self.standing.placed - set(but)) if course == "all-rented" else rented

    def course(self, course: Course, jobs: frozenset[str]) -> o.Course:
        """Return what the plan of another course comes to."""
        world = _CHANGES[course](o.with_jobs(self.world, self.run, jobs))
        return o.course_of(plan(o.away(world, jobs), self._policies(course)), jobs)

    def _policies(self, course: Course) -> Policies:
        policies = policies_of(self.standing.stored)
        wait = plugins.load(plugins.WAITS, AT_ONCE)()
        rent = policies.rent
        if course == "one-each" or rent is None:
            rent = plugins.load(plugins.RENTS, "one-each")()
        return replace(policies, wait=wait, rent=rent)


@dataclass(slots=True)
class _Waited:
    """When the jobs would have been done if nothing had been rented, from the first round on."""

    began_at: Instant = 0.0
    number: int = 0
    alone: Mapping[str, Instant | None] = field(default_factory=dict[str, "Instant | None"])
    then: dict[str, Instant | None] = field(default_factory=dict[str, "Instant | None"])

    def add(self, again: _Again) -> None:
        """Add a round; the first that rented is played on."""
        stored, rented = again.standing.stored, again.standing.rented()
        if not rented:
            return
        if not self.number:
            self.number, self.began_at = stored.number, stored.now
            self.alone = ends_at_home(again.world, policies_of(stored))
        self.then = {**_planned_ends(stored.plan, rented), **self.then}

    def told(self, rented: _Sum) -> Iterator[Otherwise]:
        """Yield what it comes to, of those that were there then; nothing where none was."""
        ends = {job: self.alone[job] for job in self.then if job in self.alone}
        if not ends:
            return
        yield Otherwise(
            course="all-waited",
            jobs=len(ends),
            rounds=(self.number,),
            then_usd=_usd(_total(rented.then)),
            other_usd=usd(NOTHING),
            then_s=_until_last({job: self.then[job] for job in ends}, self.began_at),
            other_s=_until_last(ends, self.began_at),
            without=tuple(sorted(job for job, at in ends.items() if at is None)),
        )


def _planned_ends(made: Plan, jobs: frozenset[str]) -> Mapping[str, Instant | None]:
    found: dict[str, Instant | None] = dict.fromkeys(jobs)
    for step in made.steps:
        if isinstance(step, p.Rent):
            found |= {seat.job: seat.ends_at for seat in step.seats if seat.job in jobs}
    return found


def _until_last(ends: Mapping[str, Instant | None], now: Instant) -> float | None:
    known = [at for at in ends.values() if at is not None]
    return round(max(known) - now, 3) if known and len(known) == len(ends) else None


def _same(world: World) -> World:
    return world


_CHANGES: Mapping[Course, Callable[[World], World]] = {
    "on-demand": o.on_demand,
    "one-each": _same,
    "all-rented": _same,
}
