"""What a controller tells of itself: counted in its ticks, left behind for whoever asks.

Nobody who asks is waited for, and asking reads no database: a tick leaves a frozen value behind.
What is counted begins at 0 with the controller; money is what the ledger says.
"""

import bisect
import re
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace

from cloudwhale import __version__
from cloudwhale.control import zeros
from cloudwhale.control.effects import Key, Result
from cloudwhale.control.sweeping import Leftovers
from cloudwhale.model import event as e
from cloudwhale.model.cost import CostLine, CostSum
from cloudwhale.model.plan import Plan
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.reporting import metrics
from cloudwhale.reporting.costs import CAUSES
from cloudwhale.reporting.metrics import Labels, Spread
from cloudwhale.reporting.metrics_table import AT_MOST, BY_NAME, OTHER, PREFIX
from cloudwhale.spi.errors import CloudwhaleError, StoreUnusable
from cloudwhale.spi.renting import Rent, RentalPlan, RentalProblem
from cloudwhale.spi.store import CostQuery

LEDGER = CostQuery(by=("project", "provider", "market"), counts_jobs=False)
"""What is asked of the ledger once, before the first tick; what is charged later is added."""
_MONEY = ("spent_usd_total", "wasted_usd_total", "saved_usd")

Steady = Callable[[], Seconds]
"""Returns seconds since some moment; what something took is the difference of two."""


class Vitals:
    """Counts what happens in the ticks of one process; for one thread, but for `newest`."""

    def __init__(self, steady: Steady = lambda: 0.0) -> None:
        self._steady = steady
        self._began: Seconds = 0.0
        self._counts: dict[str, dict[Labels, float]] = defaultdict(dict)
        self._spreads: dict[str, dict[Labels, Spread]] = defaultdict(dict)
        self._world = World(version=0, now=0.0)
        self._taken: set[str] = set()
        """Rentals that were taken away since that world."""
        self._rented: set[str] = set()
        """Rentals of which the series have begun."""
        self._notices_waiting: Callable[[], int] = lambda: 0
        self._projects: set[str] = set()
        """Those with series of their own; others are `other`, for as long as this lives."""
        self.is_asked = False
        """Whether anybody will look at what is left behind."""
        self.newest: metrics.Vitals | None = None
        """What the newest tick has left behind; None: none has ended yet."""
        self._set("build_info", 1.0, __version__)
        self._begin(zeros.counters())
        for name, labels, empty in zeros.spreads():
            self._spreads[PREFIX + name][labels] = empty

    def steady(self) -> Seconds:
        """Return the time by which ticks are measured; in any thread."""
        return self._steady()

    def knows(
        self,
        sums: Iterable[CostSum],
        notices_waiting: Callable[[], int],
        providers: Iterable[str] = (),
    ) -> None:
        """Begin with what the ledger holds, as `LEDGER` asks for it: money outlives a process.

        `providers`: those that are asked, and may refuse.
        """
        for name in _MONEY:
            self._counts[PREFIX + name].clear()
        for each in sorted(sums, key=lambda one: -one.spent):
            self._pay(each.key[0], each.key[1], each.key[2], each)
            self._add("saved_usd", float(each.saved), self._own(each.key[0]))
        self._notices_waiting = notices_waiting
        self._rented.clear()
        self._begin(zeros.refusals(providers))

    # -- one tick ------------------------------------------------------------------------------

    def begins(self) -> None:
        """Note that a tick begins."""
        self._began = self._steady()

    def ends(
        self, seen: World, known: Callable[[Instant], World], effects: Mapping[str, int], fault: str
    ) -> None:
        """Leave behind what is so as a tick ends.

        `seen`: the world that it has planned for. `known`: returns what is stored by now.
        `effects`: how many there are by state. `fault`: what the checker has against the plan.
        """
        self._observe("tick_seconds", self._steady() - self._began)
        self._world = seen
        self._taken.clear()
        if not self.is_asked:
            return
        self._set("plan_refused", float(bool(fault)))
        self._set("notices", float(self._notices_waiting()), "waiting")
        for state, count in effects.items():
            self._set("effects", float(count), state)
        after = replace(known(seen.now), sightings=seen.sightings, offers=seen.offers)
        self._begin_rented(after.rentals)
        counts = {name: dict(rows) for name, rows in self._counts.items()}
        spreads = {name: dict(rows) for name, rows in self._spreads.items()}
        self._world = after
        self.newest = metrics.Vitals(after, self._steady(), counts, spreads)

    @contextmanager
    def round(self) -> Generator[None]:
        """Take the time of a planning round."""
        began = self._steady()
        yield
        self._observe("round_seconds", self._steady() - began)

    def timed(self, rent: Rent) -> Rent:
        """Return a rent policy of which every choice is timed."""
        return _Timed(rent, self._steady, lambda took_s: self._observe("solver_seconds", took_s))

    def planned(self, plan: Plan) -> None:
        """Count how good the choices of a plan are."""
        for tender in plan.tenders:
            if tender.gap is not None:
                self._observe("solver_gap_ratio", tender.gap)
            if tender.code is Code.OUT_OF_EFFORT:
                self._count("solver_out_of_effort_total")

    # -- what came back ------------------------------------------------------------------------

    def answered(self, result: Result) -> None:
        """Count what a provider has refused, and what was seen to be left over there."""
        if isinstance(result.value, Leftovers):
            ours = sum(one.is_ours for one in result.value.found)
            self._set("leaks", float(ours), result.value.provider)
        if result.error is not None and not isinstance(result.error, StoreUnusable):
            provider = self._provider_of(result.key)
            if provider is not None:
                self._count("api_errors_total", provider, code_of(result.error))

    def _provider_of(self, key: Key) -> str | None:
        """Return whom an effect has asked; None: a store, or nobody."""
        if key.verb in _OF_PROVIDER:
            return key.subject.partition("/")[0]
        rental = self._world.rentals.get(key.subject)
        is_asked = key.verb in _OF_RENTAL and rental is not None and rental.taken is not None
        return rental.taken.provider if is_asked and rental and rental.taken else None

    # -- what has happened ---------------------------------------------------------------------

    def happened(self, events: Iterable[e.Event]) -> None:
        """Count what was stored."""
        for event in events:
            match event:
                case e.Started():
                    self._started(event)
                case e.Finished():
                    self._count("jobs_ended_total", "completed")
                case e.Failed() | e.GaveUp():
                    self._count("jobs_ended_total", "failed")
                case e.Cancelled():
                    self._count("jobs_ended_total", "cancelled")
                case e.AttemptLost():
                    self._count("attempts_lost_total", str(event.reason.code))
                case e.Cleared() | e.Retried() | e.GaveWay():
                    self._lost_work(event)
                case e.Charged():
                    self._charged(event)
                case e.RentalChanged():
                    self._rental_changed(event.rental)
                case _:
                    pass

    def _started(self, event: e.Started) -> None:
        job = self._world.jobs.get(event.job)
        if job is not None and job.first_started_at is None and job.placement is not None:
            place = metrics.place_of(self._world.nodes.get(job.placement.node))
            waited_s = max(0.0, event.at - job.submitted_at)  # by two clocks
            self._observe("admission_wait_seconds", waited_s, place)

    def _lost_work(self, event: e.Cleared | e.Retried | e.GaveWay) -> None:
        self._add("lost_work_seconds_total", event.lost_s)
        if isinstance(event, e.GaveWay):
            self._count("jobs_gave_way_total")

    def _rental_changed(self, rental: Rental) -> None:
        before = self._world.rentals.get(rental.id)
        was = before is None or before.interrupted_at is not None or rental.id in self._taken
        if not was and rental.interrupted_at is not None and rental.taken is not None:
            self._taken.add(rental.id)
            self._count("preemptions_total", rental.taken.provider, rental.taken.market)

    # -- money ---------------------------------------------------------------------------------

    def _charged(self, event: e.Charged) -> None:
        line = event.line
        if line is not None:
            self._pay(line.project, line.provider, line.market, line)
            more = 0 if line.on_demand is None else line.on_demand - line.spent
            self._add("saved_usd", float(more), self._own(line.project))

    def _pay(self, project: str, provider: str, market: str, paid: CostLine | CostSum) -> None:
        own = self._own(project)
        self._add("spent_usd_total", float(paid.spent), own, provider, market)
        for cause, purpose in CAUSES.items():
            self._add("wasted_usd_total", float(getattr(paid.purposes, purpose)), own, str(cause))

    def _own(self, project: str) -> str:
        """Return a project's label; who comes late is one of the `other`."""
        if len(self._projects) < AT_MOST["project"]:
            self._projects.add(project)
        return project if project in self._projects else OTHER

    # -- counting ------------------------------------------------------------------------------

    def _begin(self, found: Iterable[zeros.Zero]) -> None:
        for name, labels in found:
            self._add(name, 0.0, *labels)

    def _begin_rented(self, rentals: Mapping[str, Rental]) -> None:
        """Begin the series of machines before anything is paid for them."""
        for rental in rentals.values():
            if rental.taken is not None and rental.id not in self._rented:
                self._rented.add(rental.id)
                self._begin(zeros.of_machine(rental, self._own))
        self._rented &= rentals.keys()

    def _count(self, name: str, *labels: str) -> None:
        self._add(name, 1.0, *labels)

    def _add(self, name: str, more: float, *labels: str) -> None:
        rows = self._counts[PREFIX + name]
        rows[labels] = rows.get(labels, 0.0) + more

    def _set(self, name: str, value: float, *labels: str) -> None:
        self._counts[PREFIX + name][labels] = value

    def _observe(self, name: str, value: float, *labels: str) -> None:
        buckets = BY_NAME[PREFIX + name].buckets
        rows = self._spreads[PREFIX + name]
        old = rows.get(labels) or Spread((0,) * (len(buckets) + 1), 0.0)
        at = bisect.bisect_left(buckets, value)  # a bucket holds its upper end
        counts = (*old.counts[:at], old.counts[at] + 1, *old.counts[at + 1 :])
        rows[labels] = Spread(counts, old.total + value)


_OF_PROVIDER = frozenset({"look", "offers", "search", "remove"})
"""Effects whose subject begins with the provider that is asked."""
_OF_RENTAL = frozenset({"launch", "extend", "terminate", "sweep"})
"""Effects whose subject is a rental, the provider of which is asked."""


def code_of(error: CloudwhaleError) -> str:
    """Return what a refusal is called: the name of its class, as `quota-exceeded`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__).lower()


class _Timed:
    """A rent policy that is timed; see Rent."""

    def __init__(self, rent: Rent, steady: Steady, took: Callable[[Seconds], None]) -> None:
        self._rent, self._steady, self._took = rent, steady, took

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """See Rent."""
        began = self._steady()
        plan = self._rent.choose(problem)
        self._took(self._steady() - began)
        return plan
