"""Our rule for several zones: each tick what is cheapest on average to the end of the errand.

`zones_table` says what every state costs; it is made anew every day from what was learned. Each
option of a tick is weighed with real prices, ages, what is seen and what is not. A zone that was
not seen is weighed as if it were on: to try costs nothing, and the next best is taken if it is off.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np

from cloudwhale.model.units import Seconds
from cloudwhale.spi.spot import Errand, Sight, Site, SpotPlayer, SpotPolicy, Standing, Use
from cloudwhale_policies.spot import safety
from cloudwhale_policies.spot.lives import HOUR_S, Spells
from cloudwhale_policies.spot.zones_chains import (
    OFF_YOUNG,
    OLD_H,
    ON_OLD,
    ON_YOUNG,
    PHASES,
    Chain,
    Matrix,
    phase,
)
from cloudwhale_policies.spot.zones_learning import learned
from cloudwhale_policies.spot.zones_table import Other, Prospect, Table, Unit

STEPS = 260
"""Of a table at most, from start to deadline; a step is a changeover and a tick at least."""
UNITS = 3
"""Regions that are followed: four phases each, so four times the work for each more."""
IDLE_DOUBT = 0.5
"""Of a changeover's price: idling must save so much, as hopes are less sure than work."""
PURE = np.eye(PHASES)
"""Rows: to be in a phase for sure."""
WEIGHS_EVERY_S: Seconds = 900.0
"""While all is well and nothing new is seen; ages and prices change slowly."""
PLANS_EVERY_S: Seconds = 86_400.0
"""Tables are made anew: hazards and prices drift over days."""


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
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


class _Weighed:
    """What a tick's options come to."""

    def __init__(self, plan: _Plan, now: Standing, beliefs: Sequence[Matrix]) -> None:
        self._plan, self._now, self._beliefs = plan, now, beliefs
        self._joint: dict[float, list[Matrix]] = {}

    def cost(
        self, mode: int, left_h: float, work_h: float, hours: float, own: tuple[int, Matrix] | None
    ) -> float:
        """Return the expected cost of a mode some hours on; `own`: what is known of a unit then."""
        if work_h <= 1e-9:
            return 0.0
        if hours not in self._joint:
            self._joint[hours] = [
                belief @ self._plan.chains[unit].after(hours)
                for belief, unit in zip(self._beliefs, self._plan.units, strict=True)
            ]
        each = list(self._joint[hours])
        if own is not None:
            each[own[0]] = own[1]
        joint = np.ones(1)
        for one in each:
            joint = np.outer(joint, one).ravel()
        step = self._plan.prospect.step_h
        values = self._plan.table.cost(mode, (left_h - hours) / step, work_h / step)
        return float(joint @ values)


class Player:
    """Plays one errand."""

    def __init__(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> None:
        self._errand = errand
        self._spells, self._regions = Spells(), Spells()
        self._region_of = {site.name: site.region for site in sites}
        self._spells.see_all(past)
        for at_s, sights in groupby(past, key=attrgetter("at_s")):
            self._look(at_s, {sight.site: sight.is_on for sight in sights})
        self._plan: _Plan | None = None
        self._weighed_s, self._saw = -np.inf, dict[str, bool | None]()

    def choose(self, now: Standing) -> Use | None:
        """Return the cheapest safe option of those that may be had."""
        for site, is_on in now.is_on.items():
            if is_on is not None:
                self._spells.see(site, now.at_s, is_on=is_on)
        self._look(now.at_s, now.is_on)
        if self._goes_on(now):
            return now.use
        plan = self._plan
        if plan is None or now.at_s - plan.made_s >= PLANS_EVERY_S - 1.0:
            plan = self._plan = self._made(now)
        self._weighed_s, self._saw = now.at_s, dict(now.is_on)
        options = self._options(plan, now)
        return min(options, key=lambda option: (option[0], option[1] != now.use))[1]

    def _goes_on(self, now: Standing) -> bool:
        """Say whether it works on spot, safely, and saw nothing new since it weighed, just now."""
        return (
            now.use is not None
            and now.use.market == "spot"
            and now.changeover_left_s <= 0.0
            and now.at_s - self._weighed_s < WEIGHS_EVERY_S
            and now.is_on == self._saw
            and safety.may_use_spot(self._errand, now, stays=True)
        )

    def _look(self, at_s: Seconds, seen: Mapping[str, bool | None]) -> None:
        """Remember of each region whether any of its zones was seen on, or all were off."""
        by_region: dict[str, list[bool | None]] = defaultdict(list)
        for site, region in self._region_of.items():
            by_region[region].append(seen.get(site))
        for region, flags in by_region.items():
            if True in flags:
                self._regions.see(region, at_s, is_on=True)
            elif None not in flags:
                self._regions.see(region, at_s, is_on=False)

    def _made(self, now: Standing) -> _Plan:
        """Return a plan for what is left."""
        errand = self._errand
        changeover_h = errand.changeover_s / HOUR_S
        step_h = max(changeover_h, errand.tick_s / HOUR_S, errand.deadline_s / HOUR_S / STEPS)
        lives = learned(self._spells, [site.name for site in now.sites], now.at_s)
        zones = {site: Chain(life) for site, life in lives.items()}
        regions = tuple(sorted({site.region for site in now.sites}))
        together = learned(self._regions, regions, now.at_s)
        chains = {region: Chain(life) for region, life in together.items()}
        for site in now.sites:
            if len(_of(now.sites, site.region)) == 1:
                chains[site.region] = zones[site.name]
        prices = {r: _usual_price(_of(now.sites, r), zones) for r in regions}
        followed = self._followed(now, chains, prices)
        prospect = Prospect(
            step_h, changeover_h,
            tuple(
                Unit(
                    regions.index(r), prices[r], chains[r].step(step_h),
                    _moves(_of(now.sites, r), zones, chains[r], step_h),
                )
                for r in followed
            ),
            tuple(
                _other(regions.index(r), prices[r], _of(now.sites, r), zones, step_h)
                for r in regions if r not in followed
            ),
            tuple(min(s.on_demand_usd_h for s in _of(now.sites, r)) for r in regions),
            tuple(tuple(self._egress(a, b) for b in regions) for a in regions),
        )  # fmt: skip
        left = (errand.deadline_s - now.at_s) / HOUR_S / step_h
        work = now.work_left_s / HOUR_S / step_h
        table = Table(
            prospect, int(np.ceil(left)) + 1, int(np.ceil(work)) + 1,
            int(PLANS_EVERY_S / HOUR_S / step_h) + 6,
        )  # fmt: skip
        return _Plan(now.at_s, regions, followed, zones, chains, prospect, table)

    def _followed(
        self, now: Standing, chains: Mapping[str, Chain], prices: Mapping[str, float]
    ) -> tuple[str, ...]:
        """Return the regions to follow: those that save most against on-demand, by on-time."""
        dear = min(site.on_demand_usd_h for site in now.sites)

        def saves(region: str) -> tuple[float, str]:
            return -chains[region].share() * (dear - prices[region]), region

        return tuple(sorted(chains, key=saves)[:UNITS])

    def _egress(self, source: str, target: str) -> float:
        if not source or source == target:
            return 0.0
        return self._errand.egress_usd.get((source, target), 0.0)

    def _belief(self, plan: _Plan, region: str, now: Standing) -> Matrix:
        """Return how likely each phase of a region is now."""
        newest, chain = self._regions.newest(region), plan.chains[region]
        if newest is None:
            return chain.usual()
        hours = round((now.at_s - newest.until_s) / HOUR_S, 2)
        if hours <= 0.0:
            return np.asarray(PURE[phase(newest, now.at_s)], np.float64)
        return np.asarray(PURE[phase(newest, newest.until_s)] @ chain.after(hours), np.float64)

    def _options(self, plan: _Plan, now: Standing) -> list[tuple[float, Use | None]]:
        """Return what may be done in this tick, and what it comes to; never empty."""
        weighed = _Weighed(plan, now, [self._belief(plan, region, now) for region in plan.units])
        options: list[tuple[float, Use | None]] = [self._on_demand(plan, now, weighed)]
        if safety.may_idle(self._errand, now):
            price = min(site.spot_usd_h for site in now.sites)
            doubt = IDLE_DOUBT * price * self._errand.changeover_s / HOUR_S
            options.append((self._idle(plan, now, weighed) + doubt, None))
        for site in now.sites:
            use = Use(site.name, "spot")
            could = now.is_on.get(site.name) is not False
            if could and safety.may_use_spot(self._errand, now, stays=use == now.use):
                options.append((self._spot(plan, now, weighed, site), use))
        return options

    def _left(self, now: Standing) -> tuple[float, float]:
        return (self._errand.deadline_s - now.at_s) / HOUR_S, now.work_left_s / HOUR_S

    def _idle(self, plan: _Plan, now: Standing, weighed: _Weighed) -> float:
        left, work = self._left(now)
        regions = [plan.regions.index(now.region)] if now.region else range(len(plan.regions))
        hours = self._errand.tick_s / HOUR_S
        return min(
            weighed.cost(plan.prospect.idle(region), left, work, hours, None) for region in regions
        )

    def _on_demand(self, plan: _Plan, now: Standing, weighed: _Weighed) -> tuple[float, Use | None]:
        use = safety.on_demand(now, now.sites, self._errand)
        site = next(site for site in now.sites if site.name == use.site)
        hours, work, egress = self._start(now, site, stays=use == now.use)
        region = plan.regions.index(site.region)
        left, _ = self._left(now)
        after = weighed.cost(plan.prospect.on_demand(region), left, work, hours, None)
        return site.on_demand_usd_h * hours + egress + after, use

    def _start(self, now: Standing, site: Site, *, stays: bool) -> tuple[float, float, float]:
        """Return hours until a machine works, the work left then, and egress."""
        changeover_s = now.changeover_left_s if stays else self._errand.changeover_s
        hours = max(self._errand.tick_s, changeover_s) / HOUR_S
        done = hours - changeover_s / HOUR_S
        work = max(0.0, now.work_left_s / HOUR_S - done)
        egress = 0.0 if stays else self._egress(now.region, site.region)
        return min(hours, changeover_s / HOUR_S + now.work_left_s / HOUR_S), work, egress

    def _spot(self, plan: _Plan, now: Standing, weighed: _Weighed, site: Site) -> float:
        stays = now.use == Use(site.name, "spot")
        hours, work, egress = self._start(now, site, stays=stays)
        left, _ = self._left(now)
        newest = self._spells.newest(site.name)
        runs = newest is not None and newest.is_on and now.is_on.get(site.name) is True
        age = (now.at_s - newest.since_s) / HOUR_S if newest is not None and runs else 0.0
        zone, region = plan.zones[site.name], plan.regions.index(site.region)
        lost = zone.lives.ends_within(age, hours, is_on=True)
        old, of = age + hours >= OLD_H, plan.prospect
        usd = site.spot_usd_h * hours + egress
        rate = zone.rates[ON_OLD if old else ON_YOUNG]
        ahead = min(1.0 / rate, work)
        if site.region not in plan.units:
            number = next(i for i, other in enumerate(of.others) if other.region == region)
            usd += (site.spot_usd_h - of.others[number].spot_usd_h) * ahead
            on = weighed.cost(of.other(number, int(old)), left, work, hours, None)
            off = weighed.cost(of.idle(region), left, work, hours, None)
            return usd + (1.0 - lost) * on + lost * off
        number = plan.units.index(site.region)
        usd += (site.spot_usd_h - of.units[number].spot_usd_h) * ahead
        before = self._belief(plan, site.region, now)
        if now.is_on.get(site.name) is None:
            before = before * [0.0, 0.0, 1.0, 1.0] + 1e-9 * PURE[ON_YOUNG]
            before = before / before.sum()
        after = before @ plan.chains[site.region].after(hours)
        gone = float(after[:ON_YOUNG].sum())
        stays_on = np.where(np.arange(PHASES) >= ON_YOUNG, after, 0.0) / (1.0 - gone)
        share = 1.0 if len(_of(now.sites, site.region)) == 1 else min(1.0, gone / lost)
        on = weighed.cost(of.unit(number), left, work, hours, (number, stays_on))
        off = weighed.cost(of.idle(region), left, work, hours, (number, PURE[OFF_YOUNG]))
        moved = 0.0
        if share < 1.0:
            moved = weighed.cost(of.idle(region), left, work, hours, (number, stays_on))
        return usd + (1.0 - lost) * on + lost * (share * off + (1.0 - share) * moved)


def _of(sites: Sequence[Site], region: str) -> Sequence[Site]:
    return [site for site in sites if site.region == region]


def _usual_price(sites: Sequence[Site], zones: Mapping[str, Chain]) -> float:
    """Return the price of a region: the mean of its zones by the time that they are on."""
    shares = [zones[site.name].share() for site in sites]
    return float(np.average([site.spot_usd_h for site in sites], weights=shares))


def _moves(
    sites: Sequence[Site], zones: Mapping[str, Chain], region: Chain, step_h: float
) -> float:
    """Return the chance in a step that a machine is lost while another zone is on."""
    if len(sites) == 1:
        return 0.0
    rates = [zones[site.name].rate() for site in sites]
    shares = [zones[site.name].share() for site in sites]
    rate = float(np.average(rates, weights=shares)) - region.rate()
    return 1.0 - float(np.exp(-max(0.0, rate) * step_h))


def _other(
    region: int, price: float, sites: Sequence[Site], zones: Mapping[str, Chain], step_h: float
) -> Other:
    """Return a machine that stands for those in zones of a region."""
    rates = np.mean([zones[site.name].rates[ON_YOUNG:] for site in sites], axis=0)
    young, old = (1.0 - np.exp(-rates * step_h)).tolist()
    return Other(region, price, (young, old), min(1.0, step_h / OLD_H))


class WhaleZones:
    """The policy."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player that has learned from the past."""
        return Player(errand, sites, past)


_: SpotPolicy = WhaleZones()
