"""What could be rented, as far as the settings allow it, for a plan that changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, micro_usd
from cloudwhale.planning.allowing import Limits, allowed, barred_by
from cloudwhale.planning.gravity import moves
from cloudwhale.planning.hazards import NOTHING_LEARNED, Hazards
from cloudwhale.planning.shortlist import shortlist
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import SettingsError


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


def supply(
    settings: Settings,
    now: Instant,
    data_in: Sequence[str] = (),
    hazards: Hazards = NOTHING_LEARNED,
) -> Supply:
    """Return what could be rented by the catalogue; raise SettingsError for a file that is wrong.

    Looks at no network: prices are as old as the catalogue is. Where clouds are set, what they
    offer; else what all offer, which nobody here can launch. `data_in`: the regions in which lies
    what the jobs read. `hazards`: what machines that we had have taught.
    """
    from cloudwhale.control.catalogue import catalogue

    known = catalogue(settings, now)
    limits, endless = limits_of(settings), _without_stop(settings)
    offers = [
        hazards.told(one)
        for one in of_clouds(known.offers, settings.clouds)
        if one.provider not in endless
    ]
    kept = allowed(offers, limits)
    here = {offer.id for offer in kept.offers} if kept.counts else set[str]()
    barred = [offer for offer in offers if offer.id not in here] if kept.counts else []
    prices = moves(offers, data_in)
    return Supply(
        offers=shortlist(kept.offers, prices),
        barred=shortlist(barred, prices),
        limits=limits,
        counts=kept.counts,
        notes=(*known.notes, *(_no_stop(name) for name in endless)),
        can_launch=bool(settings.clouds),
    )


def _without_stop(settings: Settings) -> Sequence[str]:
    """Return the clouds where nobody ends a machine in time, unless that is accepted."""
    if settings.accept_no_stop or not settings.clouds:
        return ()
    from cloudwhale.control.desk import providers

    try:
        made = providers(settings.but(takes_jobs=False))
    except SettingsError:
        return ()  # whoever is about to rent is told what is wrong with a table
    return [name for name, one in made.items() if one.stops is not None and not one.stops]


def _no_stop(provider: str) -> str:
    from cloudwhale.control.offers import no_stop

    found = no_stop(provider)
    return f"{found.says}; {found.change}."


def of_clouds(offers: Sequence[Offer], clouds: Mapping[str, Mapping[str, Any]]) -> Sequence[Offer]:
    """Return what some clouds offer in their own regions; all, where none is set."""
    if not clouds:
        return offers
    regions = {name: Limits(regions=_regions(told)) for name, told in clouds.items()}
    return [
        offer
        for offer in offers
        if offer.provider in regions and not barred_by(offer, regions[offer.provider])
    ]


def _regions(told: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the patterns of regions that a cloud's own table names; what they mean, it checks."""
    found = told.get("regions")
    names: Any = found  # of a list that a file gave, nothing is known
    if isinstance(found, str):
        return (found,)
    return tuple(str(one) for one in names) if isinstance(found, list | tuple) else ()


def limits_of(settings: Settings) -> Limits:
    """Return what the settings say of machines that may be rented."""
    most = settings.max_price_usd_h
    return Limits(
        regions=settings.regions,
        never=settings.never,
        max_price_usd_h=None if most is None else micro_usd(str(most)),
    )
