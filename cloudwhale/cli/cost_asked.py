"""What `cost` was asked for, and where the answer is read."""

import difflib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cloudwhale.cli.exits import WrongUsage
from cloudwhale.cli.looking import settings_here, store_here
from cloudwhale.clock import SystemClock
from cloudwhale.control.zones import zone_here
from cloudwhale.model.cost import CostLine, CostSum, Dimension
from cloudwhale.model.units import Instant
from cloudwhale.planning import cost_sums
from cloudwhale.planning.costing import so_far
from cloudwhale.reporting.costs import DIMENSIONS, Costs, added, in_order
from cloudwhale.reporting.periods import NoPeriod, Period, period
from cloudwhale.spi.store import CostQuery, Store

OF_A_JOB: frozenset[Dimension] = frozenset({"project", "user", "job", "family", "run"})
"""What a job has one of: no job is in two rows, so that those of the total need not be counted."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of `cost`."""

    by: str
    period: str
    zone: str | None
    running: bool
    project: str | None
    wasted: bool
    forms: tuple[str, ...]
    """Of csv, html, focus, json: those that were asked for."""
    into: Path | None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where costs are read: what was charged, and what machines that are not back cost by now."""

    store: Store
    query: CostQuery
    """All but `by`."""
    live: tuple[CostLine, ...]
    period: Period
    now: Instant
    running: bool

    def sums(self, *by: Dimension) -> list[CostSum]:
        """Return the money by some dimensions, by key."""
        return self._sums(self.query.but(by=by))

    def by_day_of(self, dimension: Dimension, value: str) -> list[CostSum]:
        """Return the money of one value of a dimension by day; nothing of no job."""
        return self._sums(self.query.but(**{"by": ("day",), dimension: value}))

    def _sums(self, query: CostQuery) -> list[CostSum]:
        found = cost_sums.both(self.store.costs(query), cost_sums.sums(self.live, query))
        both = query.counts_jobs and self.live
        twice = self._in_both(query) if both else Counter[tuple[str, ...]]()
        return [one.but(jobs=one.jobs - twice[one.key]) for one in found]

    def _in_both(self, query: CostQuery) -> Counter[tuple[str, ...]]:
        """Return by key how many jobs have a machine that is back and one that is not."""
        live = [line for line in self.live if line.job is not None and cost_sums.fits(line, query)]
        found: Counter[tuple[str, ...]] = Counter()
        for run, job in {(line.run, line.job) for line in live}:
            mine = [line for line in live if (line.run, line.job) == (run, job)]
            asked = query.but(run=run, job=job, dearest=None, counts_jobs=False)
            back = {one.key for one in self.store.costs(asked)}
            found.update(back & {one.key for one in cost_sums.sums(mine, asked)})
        return found

    def dearest_jobs(self, many: int, by: tuple[Dimension, ...]) -> list[CostSum]:
        """Return the jobs of the most money, the dearest first; `by` begins with the job."""
        query = self.query.but(by=by, of_jobs=True)
        found = {one.key: one for one in self.store.costs(query.but(dearest=many))}
        for one in cost_sums.sums(self.live, query):
            settled = [found[one.key]] if one.key in found else self._settled(one.key[0], by)
            found[one.key] = cost_sums.both([one], settled)[0]
        return in_order([*found.values()], by)[:many]

    def _settled(self, job: str, by: tuple[Dimension, ...]) -> Sequence[CostSum]:
        """Return what was charged to a job that also has a machine which is not back."""
        run = next(line.run for line in self.live if line.job == job)
        return self.store.costs(self.query.but(by=by, job=job, run=run))

    def total(self) -> CostSum:
        """Return all the money."""
        return added(self.sums())

    def without_jobs(self) -> "Ledger":
        """Return the ledger for who does not ask how many jobs sums are of: that takes longer."""
        return replace(self, query=self.query.but(counts_jobs=False))

    def costs(self, by: tuple[Dimension, ...]) -> Costs:
        """Return the report by some dimensions."""
        project, rows = self.query.project, self.sums(*by)
        is_sum = OF_A_JOB.issuperset(by) or not self.query.counts_jobs
        total = added(rows) if is_sum else self.total()
        return Costs(
            self.period, self.query.zone, by, in_order(rows, by), total, self.now,
            self.running, len({line.rental for line in self.live}),
            {} if project is None else {"project": project},
        )  # fmt: skip

    def lines(self) -> Iterator[CostLine]:
        """Yield the lines of what was charged, those that began first first."""
        return self.store.cost_lines(self.query)


@contextmanager
def ledger_here(wanted: Wanted) -> Generator[Ledger]:
    """Open the ledger of the current folder's settings, for a period in a zone."""
    settings, now = settings_here(), SystemClock().now()
    zone = zone_here(settings, wanted.zone)
    when = _period(wanted.period, now, zone)
    query = CostQuery(since=when.since, until=when.until, zone=zone, project=wanted.project)
    with store_here() as store:
        live = _live(store, query, now) if wanted.running else ()
        yield Ledger(store, query, tuple(live), when, now, wanted.running)


def _live(store: Store, query: CostQuery, now: Instant) -> Iterable[CostLine]:
    """Return lines of machines that are not back, those of the query alone."""
    rentals = store.rentals()
    if not rentals:
        return ()
    world = store.world(now)
    return (
        line.but(is_running=True)
        for rental in rentals
        for line in so_far(rental, world)
        if cost_sums.fits(line, query)
    )


def dimensions(text: str) -> tuple[Dimension, ...]:
    """Return what to show costs by; raise WrongUsage for what there is not, or is there twice."""
    known: dict[str, Dimension] = {name: name for name in DIMENSIONS}
    found: list[Dimension] = []
    for word in text.split(","):
        name = known.get(word.strip().lower())
        if name is None:
            close = difflib.get_close_matches(word.strip().lower(), DIMENSIONS, 1)
            hint = f"Did you mean {close[0]}? " if close else ""
            raise WrongUsage(
                f"--by {word.strip()!r}: costs are not told apart by that.",
                f"{hint}Write one or more, with commas, of {', '.join(DIMENSIONS)}.",
            )
        if name in found:
            raise WrongUsage(f"--by {text}: {name} is there twice.", "Leave one out.")
        found.append(name)
    return tuple(found)


def form_of(wanted: Wanted) -> str:
    """Return the form to show costs in, `text` where none was asked for; raise WrongUsage."""
    if len(wanted.forms) > 1:
        said = " and ".join(f"--{name}" for name in wanted.forms)
        raise WrongUsage(f"{said} do not go together.", "Ask for one of them.")
    form = wanted.forms[0] if wanted.forms else "text"
    if wanted.into is not None and form in ("text", "json"):
        raise WrongUsage(
            f"-o {wanted.into} is for --html, --csv or --focus.",
            "Add one of them, or send the output to a file with `>`.",
        )
    return form


def _period(text: str, now: Instant, zone: str) -> Period:
    try:
        return period(text, now, zone)
    except NoPeriod as no:
        raise WrongUsage(f"--for: {no.says}.", no.remedy) from no
