"""The machines that a run rents, kept current by events while somebody follows it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import SETTLED, Rental, RentalState
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.planning import booting
from cloudwhale.planning.kept import kept_for, still_kept
from cloudwhale.reporting.booting import GOES_ON_S, phase_s, phase_words, told_words
from cloudwhale.reporting.rented import (
    cut,
    kept_words,
    lid_words,
    moved_words,
    noted_words,
    spent_so_far,
)

Weight = Literal["plain", "warn", "bad"]
"""How much a sentence matters."""

_WARNS = frozenset({RentalState.LOST})
_BAD = frozenset({RentalState.NEEDS_ATTENTION})
SILENT_S: Seconds = 600.0  # a provider that cannot be asked is asked each minute
LONGER_S: Seconds = 60.0  # what is shown to the minute is not said anew for less


@dataclass(frozen=True, slots=True)
class Said:
    """Something to tell of one machine."""

    machine: str
    says: str
    at: Instant
    weight: Weight = "plain"


@dataclass(slots=True)
class Fleet:
    """A run's rented machines as they were after an event."""

    run: str
    rentals: dict[str, Rental] = field(default_factory=dict[str, Rental])
    """By id; those that are back too, for what they have cost."""
    also: str = ""
    """What commands that are named need beside their names: ` --sandbox` in there."""
    providers: frozenset[str] = frozenset()
    """Of whom is told, too, why nothing can be had there."""
    _silent_until: dict[str, Instant] = field(default_factory=dict[str, Instant])
    """By provider: what fails again and again is told once in a while."""
    _not_up: set[str] = field(default_factory=set[str])
    """Those of which was said that they do not come up, and so go back."""
    _told_to: dict[str, tuple[str, Seconds]] = field(default_factory=dict[str, tuple[str, Seconds]])
    """Of each machine that boots the phase which was told of as long, and when to do so again."""
    _until: Instant = 0.0
    """Until when it was said to go on by itself."""

    def take(self, event: e.Event) -> list[Said]:
        """Take an event in; return what is to be told of it."""
        match event:
            case e.RentalChanged() if event.rental.payer == self.run:
                return [*self._moved(event.rental, event.at)]
            case e.BootTold() if event.rental in self.rentals:
                return [*self._booted(event)]
            case e.Noted() if event.subject in self.rentals:
                says = noted_words(event)
                self._not_up |= {event.subject} if event.reason.code is Code.BOOT_FAILED else set()
                return [] if says is None else [Said(event.subject, says, event.at, "warn")]
            case e.Noted() if event.subject in self.providers:
                return [*self._refused(event)]
            case _:
                return []

    def named_in(self, event: e.Event) -> Rental | None:
        """Return the machine that an event is of, as it is after it; None: of none of ours."""
        match event:
            case e.RentalChanged(rental=rental):
                return self.rentals.get(rental.id)
            case e.Noted(subject=name):
                return self.rentals.get(name)
            case _:
                return None

    def ended(self, job: Job, at: Instant) -> list[Said]:
        """Take in how a job has ended; return what its machine is kept for, if it is."""
        rental = None if job.placement is None else self.rentals.get(job.placement.node)
        if rental is None or job.state is not JobState.FAILED:
            return []
        now = kept_for(rental, job, at)
        if now is rental:
            return []
        self.rentals[rental.id] = now
        return [Said(rental.id, kept_words(now, job, at, self.also), at, "warn")]

    def _refused(self, event: e.Noted) -> Iterable[Said]:
        """Yield why a provider gives nothing: no machine of ours could tell that."""
        name, reason = event.subject, event.reason
        if event.at < self._silent_until.get(name, event.at):
            return
        self._silent_until[name] = event.at + SILENT_S
        says = reason.says
        if reason.code is Code.CANNOT_ACT:
            says = f"cannot be asked now: {says.partition(': ')[2]}"
        remedy = reason.change and f": {reason.change}"
        yield Said(name, f"{cut(says)}{remedy} [{reason.code}]", event.at, "warn")

    def _moved(self, rental: Rental, at: Instant) -> Iterable[Said]:
        before = self.rentals.get(rental.id)
        if before is not None:
            rental = booting.moved(before, still_kept(before, rental), at)
        self.rentals[rental.id] = rental
        says = moved_words(before, rental, at)
        goes_back = rental.state in (RentalState.DRAINING, RentalState.LOST)
        if says is not None and not (goes_back and rental.id in self._not_up):
            state = rental.state
            weight: Weight = "bad" if state in _BAD else "warn" if state in _WARNS else "plain"
            yield Said(rental.id, says, at, weight)

    def _booted(self, event: e.BootTold) -> Iterable[Said]:
        before = self.rentals[event.rental]
        after = booting.told(before, None, event)
        self.rentals[event.rental] = after
        says = told_words(event, before, after)
        if says is not None:
            weight: Weight = "warn" if event.state == "unreadable" else "plain"
            yield Said(event.rental, says, event.at, weight)

    def long_phases(self, now: Instant) -> Iterable[Said]:
        """Yield which phases of boots take long; again when one has taken twice that."""
        for name, rental in sorted(self.rentals.items()):
            for_s, phase = phase_s(rental, now) or 0.0, rental.boot.phase
            told, next_s = self._told_to.get(name, ("", GOES_ON_S))
            next_s = next_s if told == phase else GOES_ON_S
            if for_s >= next_s:
                self._told_to[name] = (phase, 2 * for_s)
                yield Said(name, f"boots: {phase_words(rental, now)}", now)

    def lid(self, now: Instant) -> str:
        """Say once, and when it is for longer, that nobody need watch; empty in between."""
        says = lid_words(self.rentals.values(), now)
        until = max((one.lease.away_until for one in self.there.values()), default=0.0)
        if not says or until <= self._until + LONGER_S:
            return ""
        self._until = until
        return says

    @property
    def there(self) -> Mapping[str, Rental]:
        """Return the machines that are not back."""
        return {
            name: rental
            for name, rental in self.rentals.items()
            if rental.state is not RentalState.RETURNED
        }

    @property
    def is_waited_for(self) -> bool:
        """Say whether a machine will be back soon, and what it cost is not known yet."""
        return any(rental.state not in SETTLED for rental in self.rentals.values())

    @property
    def reserved(self) -> MicroUsd:
        """Return what is set aside for machines that are not back."""
        return MicroUsd(sum(rental.reserved for rental in self.there.values()))

    def spent(self, now: Instant) -> MicroUsd:
        """Return what all of them have cost by now."""
        return spent_so_far(self.rentals, now)
