"""How far the boots of rented machines are, and how long their phases took, in a few words."""

from collections.abc import Mapping

from cloudwhale.model import event as e
from cloudwhale.model.rental import ON_ITS_WAY, Rental
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.reporting.figures import span

SHORT_S: Seconds = 1.0  # who waits does not ask about what was over at once
GOES_ON_S: Seconds = 30.0  # what takes longer is told while it goes on


def phase_words(rental: Rental, now: Instant) -> str:
    """Say in which phase of its boot a machine is and since when: `docker (12 s)`; empty: none."""
    boot = rental.boot
    if rental.state not in ON_ITS_WAY or not boot.phase or boot.has_failed:
        return ""
    for_s = span(max(0.0, now - boot.since))
    return f"{boot.phase} ({for_s})" if boot.under_way else f"after {boot.phase} ({for_s})"


def phase_s(rental: Rental, now: Instant) -> Seconds | None:
    """Return for how long the phase goes on that a machine is in; None: it is in none."""
    is_booting = rental.state in ON_ITS_WAY and bool(rental.boot.under_way)
    return round(max(0.0, now - rental.boot.since), 3) if is_booting else None


def took_words(took_s: Mapping[str, Seconds]) -> str:
    """Say how long each phase took, those that were over at once left out; empty: none is known."""
    return ", ".join(f"{phase} {span(s)}" for phase, s in took_s.items() if s >= SHORT_S)


def told_words(event: e.BootTold, before: Rental, after: Rental) -> str | None:
    """Say what a machine has told of its boot; None for what nobody asks about.

    A phase that has failed is told with the machine's return, a long one while it goes on.
    """
    if event.state == "unreadable" and after.boot.read > before.boot.read:
        return f"tells of its boot what nobody understands: {event.says}"
    took_s = after.boot.took_s.get(event.phase, 0.0)
    if event.state != "done" or after.boot.read == before.boot.read or took_s < SHORT_S:
        return None
    return f"boots: {event.phase} took {span(took_s)}"
