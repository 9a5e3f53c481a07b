"""What is left at providers and belongs to no machine of ours, for a person who asks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cloudwhale.control.desk import Desk
from cloudwhale.control.sweeping import live_nodes
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.spi.errors import CloudwhaleError, Denied, Unreachable
from cloudwhale.spi.provider import Leftover, Provider


@dataclass(frozen=True, slots=True)
class Leak:
    """One thing that is left, and what was done about it."""

    provider: str
    leftover: Leftover
    is_removed: bool = False
    says: str = ""
    """Why it was not removed; empty where nobody tried."""

    @property
    def is_left(self) -> bool:
        """Say whether it is ours, and still there."""
        return self.leftover.is_ours and not self.is_removed


@dataclass(frozen=True, slots=True)
class Leaks:
    """All that was found."""

    found: tuple[Leak, ...] = ()
    unanswered: tuple[str, ...] = ()
    """Sentences of providers that could not be asked."""
    asked: tuple[str, ...] = ()
    """Providers that were asked."""

    @property
    def is_clean(self) -> bool:
        """Say whether nothing of ours is left, for certain."""
        return not self.unanswered and not any(one.is_left for one in self.found)


def leaks(desk: Desk, providers: Mapping[str, Provider], *, fix: bool) -> Leaks:
    """Return what is left over at every provider that rents machines out; `fix`: remove ours.

    What another installation has is shown, never touched. A controller may launch meanwhile: what
    it has set money aside for by the time that the list is there is no leak.
    """
    found: list[Leak] = []
    unanswered: list[str] = []
    renting = {name: one for name, one in sorted(providers.items()) if one.stops is not None}
    for name, provider in renting.items():
        try:
            left = provider.leftovers(_live(desk))
        except (Denied, Unreachable) as error:
            unanswered.append(f"{name} cannot be asked: {error.says}. {error.remedy}".strip())
            continue
        live = _live(desk)
        for one in left:
            if one.node not in live:
                found.append(_fixed(provider, name, one) if fix else Leak(name, one))
    found += _stuck(desk)
    return Leaks(tuple(found), tuple(unanswered), tuple(renting))


def _live(desk: Desk) -> frozenset[str]:
    return live_nodes(_rentals(desk).values())


def _rentals(desk: Desk) -> Mapping[str, Rental]:
    return desk.store.world(desk.clock.now()).rentals


def _fixed(provider: Provider, name: str, leftover: Leftover) -> Leak:
    if not leftover.is_ours:
        return Leak(name, leftover)
    try:
        provider.remove(leftover)
    except CloudwhaleError as error:
        return Leak(name, leftover, says=f"{error.says} {error.remedy}".strip())
    return Leak(name, leftover, is_removed=True)


def _stuck(desk: Desk) -> Iterator[Leak]:
    """Yield the machines that their providers do not end; the controller goes on trying."""
    for rental in _rentals(desk).values():
        if rental.state is RentalState.NEEDS_ATTENTION and rental.taken is not None:
            leftover = Leftover(
                id=rental.machine, what="instance", node=rental.node, region=rental.taken.region,
                since=rental.requested_at, usd_h=rental.price_usd_h or rental.taken.price_usd_h,
                project=next(iter(rental.jobs.values()), ""),
            )  # fmt: skip
            says = (
                f"{rental.id} needs attention: see `cloudwhale nodes`; it is tried again for ever"
            )
            yield Leak(rental.taken.provider, leftover, says=says)
