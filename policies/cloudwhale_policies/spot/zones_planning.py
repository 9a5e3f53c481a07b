"""What a player of several zones has seen, and the plan that it makes of it for a day."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np

from cloudwhale.model.units import Seconds
from cloudwhale.spi.spot import Errand, Sight, Site, Standing
from cloudwhale_policies.spot.lives import HOUR_S, Spells
from cloudwhale_policies.spot.zones_chains import OLD_H, ON_YOUNG, Chain
from cloudwhale_policies.spot.zones_learning import learned
from cloudwhale_policies.spot.zones_table import Other, Prospect, Table, Unit

STEPS = 260
"""Of a table at most, from start to deadline; a step is a changeover and a tick at least."""
UNITS = 3
"""Regions that are followed: four phases each, so four times the work for each more."""
PLANS_EVERY_S: Seconds = 86_400.0
"""Tables are made anew: hazards and prices drift over days."""
NOWHERE_USD_H = 1e6
"""On-demand in a region without sites, where a checkpoint may lie nevertheless."""


class Seen:
    """Spells of zones, and of regions, which are on while any of their zones is."""

    def __init__(self, sites: Sequence[Site], past: Sequence[Sight]) -> None:
        """Begin with what was seen before."""
        self.zones, self.regions = Spells(), Spells()
        self._region_of = {site.name: site.region for site in sites}
        for at_s, sights in groupby(past, key=attrgetter("at_s")):
            self.look(at_s, {sight.site: sight.is_on for sight in sights})

    def look(self, at_s: Seconds, seen: Mapping[str, bool | None]) -> None:
        """Remember what was seen at a time; a region with zones unseen may be on."""
        for site, is_on in seen.items():
            if is_on is not None:
                self.zones.see(site, at_s, is_on=is_on)
        by_region: dict[str, list[bool | None]] = defaultdict(list)
        for site, region in self._region_of.items():
            by_region[region].append(seen.get(site))
        for region, flags in by_region.items():
            if True in flags:
                self.regions.see(region, at_s, is_on=True)
            elif None not in flags:
                self.regions.see(region, at_s, is_on=False)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A table and what its numbers mean."""

    made_s: Seconds
    regions: tuple[str, ...]
    units: tuple[str, ...]
    """The regions that are followed."""
    zones: Mapping[str, Chain]
    chains: Mapping[str, Chain]
    """By region: whether any of its zones is on."""
    prospect: Prospect
    table: Table

    def serves(self, now: Standing) -> bool:
        """Say whether it is fresh, and knows all sites."""
        fresh = now.at_s - self.made_s < PLANS_EVERY_S - 1.0
        return fresh and all(site.name in self.zones for site in now.sites)


def planned(errand: Errand, seen: Seen, now: Standing) -> Plan:
    """Return a plan for what is left of an errand; takes tenths of a CPU second."""
    there = {region: _of(now.sites, region) for region in {site.region for site in now.sites}}
    named: set[str] = {*there, now.region} - {""}
    regions = tuple(sorted(named))
    lives = learned(seen.zones, [site.name for site in now.sites], now.at_s)
    zones = {site: Chain(life) for site, life in lives.items()}
    together = learned(seen.regions, sorted(there), now.at_s)
    chains = {
        region: zones[sites[0].name] if len(sites) == 1 else Chain(together[region])
        for region, sites in there.items()
    }
    units = _followed(there, zones, chains)
    changeover_h = errand.changeover_s / HOUR_S
    step_h = max(changeover_h, errand.tick_s / HOUR_S, errand.deadline_s / HOUR_S / STEPS)
    prospect = Prospect(
        step_h,
        changeover_h,
        tuple(_unit(regions.index(r), there[r], zones, chains[r], step_h) for r in units),
        tuple(
            _other(regions.index(region), sites, zones, step_h)
            for region, sites in sorted(there.items())
            if region not in units
        ),
        tuple(_on_demand(there.get(region, ())) for region in regions),
        tuple(tuple(egress(errand, a, b) for b in regions) for a in regions),
    )
    left_s = errand.deadline_s - now.at_s
    steps, work = (int(np.ceil(s / HOUR_S / step_h)) + 1 for s in (left_s, now.work_left_s))
    kept = int(PLANS_EVERY_S / HOUR_S / step_h) + 6
    table = Table(prospect, steps, work, kept)
    return Plan(now.at_s, regions, units, zones, chains, prospect, table)


def egress(errand: Errand, source: str, target: str) -> float:
    """Return the USD to bring the checkpoint from a region, or from none, to another."""
    if not source or source == target:
        return 0.0
    return errand.egress_usd.get((source, target), 0.0)


def _of(sites: Sequence[Site], region: str) -> Sequence[Site]:
    return [site for site in sites if site.region == region]


def _on_demand(sites: Sequence[Site]) -> float:
    return min((site.on_demand_usd_h for site in sites), default=NOWHERE_USD_H)


def _followed(
    there: Mapping[str, Sequence[Site]], zones: Mapping[str, Chain], chains: Mapping[str, Chain]
) -> tuple[str, ...]:
    """Return the regions to follow: those that save most against on-demand, by on-time."""
    dear = min(_on_demand(sites) for sites in there.values())

    def saves(region: str) -> tuple[float, str]:
        return -chains[region].share() * (dear - _usual_price(there[region], zones)), region

    return tuple(sorted(there, key=saves)[:UNITS])


def _usual_price(sites: Sequence[Site], zones: Mapping[str, Chain]) -> float:
    """Return the price of a region: the mean of its zones by the time that they are on."""
    shares = [zones[site.name].share() for site in sites]
    return float(np.average([site.spot_usd_h for site in sites], weights=shares))


def _unit(
    region: int, sites: Sequence[Site], zones: Mapping[str, Chain], chain: Chain, step_h: float
) -> Unit:
    """Return a region that is followed."""
    moves = 0.0
    if len(sites) > 1:
        rates = [zones[site.name].rate() for site in sites]
        shares = [zones[site.name].share() for site in sites]
        rate = float(np.average(rates, weights=shares)) - chain.rate()
        moves = 1.0 - float(np.exp(-max(0.0, rate) * step_h))
    return Unit(region, _usual_price(sites, zones), chain.step(step_h), moves)


def _other(region: int, sites: Sequence[Site], zones: Mapping[str, Chain], step_h: float) -> Other:
    """Return a machine that stands for those in zones of a region."""
    rates = np.mean([zones[site.name].rates[ON_YOUNG:] for site in sites], axis=0)
    young, old = (1.0 - np.exp(-rates * step_h)).tolist()
    price = _usual_price(sites, zones)
    return Other(region, price, (young, old), min(1.0, step_h / OLD_H))
