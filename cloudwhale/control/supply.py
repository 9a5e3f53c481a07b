"""What could be rented, as far as the settings allow it, for a plan that changes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, micro_usd
from cloudwhale.planning.allowing import Limits, allowed
from cloudwhale.planning.shortlist import shortlist
from cloudwhale.settings import Settings


@dataclass(frozen=True, slots=True)
class Supply:
    """What could be rented, those that nothing beats."""

    offers: tuple[Offer, ...] = ()
    """What the settings allow."""
    barred: tuple[Offer, ...] = ()
    """What they do not."""
    limits: Limits = Limits()
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many each setting keeps out, by its name."""
    notes: tuple[str, ...] = ()
    """Sentences on the prices."""
    can_launch: bool = False
    """Whether a provider is set up that launches what is offered."""


NO_SUPPLY = Supply()


def supply(settings: Settings, now: Instant) -> Supply:
    """Return what could be rented by the catalogue; raise SettingsError for a file that is wrong.

    Looks at no network: prices are as old as the catalogue is. No provider launches these.
    """
    from cloudwhale.control.catalogue import catalogue

    known = catalogue(settings, now)
    limits = limits_of(settings)
    kept = allowed(known.offers, limits)
    here = {offer.id for offer in kept.offers} if kept.counts else set[str]()
    barred = [offer for offer in known.offers if offer.id not in here] if kept.counts else []
    return Supply(
        offers=shortlist(kept.offers),
        barred=shortlist(barred),
        limits=limits,
        counts=kept.counts,
        notes=known.notes,
    )


def limits_of(settings: Settings) -> Limits:
    """Return what the settings say of machines that may be rented."""
    most = settings.max_price_usd_h
    return Limits(
        regions=settings.regions,
        never=settings.never,
        max_price_usd_h=None if most is None else micro_usd(str(most)),
    )
