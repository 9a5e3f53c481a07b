"""Folds what is said while one offer after another cannot be had: the first, then how many more."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cloudwhale.cli.fleet import Said
from cloudwhale.model import event as e
from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.reporting.figures import counted

NOT_HAD = frozenset({Code.NO_CAPACITY, Code.QUOTA})
WAITS = frozenset({*NOT_HAD, Code.RENTED})
"""What the jobs of such a machine are told at every try."""
OVER_AFTER_S: Seconds = 5.0  # the next offer is asked for within a second or two


@dataclass(slots=True)
class _Row:
    """Offers of one provider that were refused one after another."""

    last_at: Instant
    codes: Counter[Code] = field(default_factory=Counter[Code])
    """Of those after the first."""
    held: dict[str, list[Said]] = field(default_factory=dict[str, list[Said]])
    """What was said of machines that are asked for, until it is known whether they come."""


class Tries:
    """Holds back what would be said again and again; a machine that comes, or a pause, ends it."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}
        self._waits: dict[str, tuple[Job, e.Waits]] = {}

    def machine(
        self, event: e.Event, rental: Rental | None, said: Sequence[Said]
    ) -> Sequence[Said]:
        """Return what is to be said now of an event about a machine."""
        if rental is None or rental.taken is None:
            return said
        provider = rental.taken.provider
        row = self._rows.get(provider)
        if isinstance(event, e.Noted) and event.reason.code in NOT_HAD:
            return self._refused(provider, rental.id, event, said)
        if row is None or not isinstance(event, e.RentalChanged):
            return said
        if rental.state in (RentalState.RESERVED, RentalState.REQUESTED):
            row.held.setdefault(rental.id, []).extend(said)
            return ()
        if rental.state is RentalState.RETURNED and rental.requested_at is None:
            return ()  # that it never came was told with its refusal
        if rental.id not in row.held:
            return said  # one that was there before
        came = row.held.pop(rental.id)
        return [*self._ended(provider), *came, *said]

    def _refused(
        self, provider: str, name: str, event: e.Noted, said: Sequence[Said]
    ) -> Sequence[Said]:
        row = self._rows.get(provider)
        if row is None:
            self._rows[provider] = _Row(event.at)
            return said
        row.last_at = event.at
        row.codes[event.reason.code] += 1
        row.held.pop(name, None)
        return ()

    def holds(self, job: Job, event: e.OfJob) -> bool:
        """Say whether what a job is told is held back, as it is told so at every try."""
        if not self._rows:
            return False
        if not isinstance(event, e.Waits):
            self._waits.pop(job.id, None)  # what happens to it now says more
            return False
        if event.reason.code not in WAITS and job.id not in self._waits:
            return False
        self._waits[job.id] = (job, event)
        return True

    def over(self, now: Instant) -> Sequence[Said]:
        """Return what is to be said of tries that have come to a pause."""
        ended = [name for name, row in self._rows.items() if now - row.last_at >= OVER_AFTER_S]
        return [said for name in ended for said in self._ended(name)]

    def waits(self) -> Iterable[tuple[Job, e.Waits]]:
        """Return what jobs were told last, of those that were held back and are no more."""
        if self._rows:
            return ()
        told, self._waits = list(self._waits.values()), {}
        return told

    def _ended(self, provider: str) -> Iterator[Said]:
        row = self._rows.pop(provider)
        many = row.codes.total()
        if many:
            codes = ", ".join(f"{code} {count}" for code, count in row.codes.most_common())
            says = f"{counted(many, 'more offer')} tried, none could be had: {codes}"
            yield Said(provider, says, row.last_at, "warn")
