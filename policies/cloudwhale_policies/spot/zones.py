"""Our rule for several zones: each tick what is cheapest on average to the end of the errand.

`zones_table` says what every state costs; it is made anew every day from what was learned. Each
option of a tick is weighed with real prices, ages, what is seen and what is not. A zone that was
not seen is weighed as if it were on: to try costs nothing, and the next best is taken if it is off.
"""

from collections.abc import Sequence

import numpy as np

from cloudwhale.model.units import Seconds
from cloudwhale.spi.spot import Errand, Sight, Site, SpotPlayer, SpotPolicy, Standing, Use
from cloudwhale_policies.spot import safety
from cloudwhale_policies.spot.lives import HOUR_S
from cloudwhale_policies.spot.zones_chains import (
    OFF_YOUNG,
    OLD_H,
    ON_OLD,
    ON_YOUNG,
    PHASES,
    Matrix,
    phase,
)
from cloudwhale_policies.spot.zones_planning import Plan, Seen, egress, planned

IDLE_DOUBT = 0.5
"""Of a changeover's price: idling must save so much, as hopes are less sure than work."""
PURE = np.eye(PHASES)
"""Rows: to be in a phase for sure."""
WEIGHS_EVERY_S: Seconds = 900.0
"""While all is well and nothing new is seen; ages and prices change slowly."""


class _Weighed:
    """What a tick's options come to."""

    def __init__(self, plan: Plan, now: Standing, beliefs: Sequence[Matrix]) -> None:
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
        self._seen = Seen(sites, past)
        self._plan: Plan | None = None
        self._weighed_s, self._saw = -np.inf, dict[str, bool | None]()

    def choose(self, now: Standing) -> Use | None:
        """Return the cheapest safe option of those that may be had."""
        self._seen.look(now.at_s, now.is_on)
        if self._goes_on(now):
            return now.use
        plan = self._plan
        if plan is None or not plan.serves(now):
            plan = self._plan = planned(self._errand, self._seen, now)
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

    def _belief(self, plan: Plan, region: str, now: Standing) -> Matrix:
        """Return how likely each phase of a region is now."""
        newest, chain = self._seen.regions.newest(region), plan.chains[region]
        if newest is None:
            return chain.usual()
        hours = round((now.at_s - newest.until_s) / HOUR_S, 2)
        if hours <= 0.0:
            return np.asarray(PURE[phase(newest, now.at_s)], np.float64)
        return np.asarray(PURE[phase(newest, newest.until_s)] @ chain.after(hours), np.float64)

    def _options(self, plan: Plan, now: Standing) -> list[tuple[float, Use | None]]:
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

    def _idle(self, plan: Plan, now: Standing, weighed: _Weighed) -> float:
        left, work = self._left(now)
        regions = [plan.regions.index(now.region)] if now.region else range(len(plan.regions))
        hours = self._errand.tick_s / HOUR_S
        return min(
            weighed.cost(plan.prospect.idle(region), left, work, hours, None) for region in regions
        )

    def _on_demand(self, plan: Plan, now: Standing, weighed: _Weighed) -> tuple[float, Use | None]:
        use = safety.on_demand(now, now.sites, self._errand)
        site = next(site for site in now.sites if site.name == use.site)
        hours, work, moved = self._start(now, site, stays=use == now.use)
        region = plan.regions.index(site.region)
        left, _ = self._left(now)
        after = weighed.cost(plan.prospect.on_demand(region), left, work, hours, None)
        return site.on_demand_usd_h * hours + moved + after, use

    def _start(self, now: Standing, site: Site, *, stays: bool) -> tuple[float, float, float]:
        """Return hours until a machine works, the work left then, and egress."""
        changeover_s = now.changeover_left_s if stays else self._errand.changeover_s
        hours = max(self._errand.tick_s, changeover_s) / HOUR_S
        done = hours - changeover_s / HOUR_S
        work = max(0.0, now.work_left_s / HOUR_S - done)
        moved = 0.0 if stays else egress(self._errand, now.region, site.region)
        return min(hours, changeover_s / HOUR_S + now.work_left_s / HOUR_S), work, moved

    def _spot(self, plan: Plan, now: Standing, weighed: _Weighed, site: Site) -> float:
        stays = now.use == Use(site.name, "spot")
        hours, work, moved = self._start(now, site, stays=stays)
        left, _ = self._left(now)
        newest = self._seen.zones.newest(site.name)
        runs = newest is not None and newest.is_on and now.is_on.get(site.name) is True
        age = (now.at_s - newest.since_s) / HOUR_S if newest is not None and runs else 0.0
        zone, region = plan.zones[site.name], plan.regions.index(site.region)
        lost = zone.lives.ends_within(age, hours, is_on=True)
        old, of = age + hours >= OLD_H, plan.prospect
        usd = site.spot_usd_h * hours + moved
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
        share = (
            1.0 if [s.region for s in now.sites].count(site.region) == 1 else min(1.0, gone / lost)
        )
        on = weighed.cost(of.unit(number), left, work, hours, (number, stays_on))
        off = weighed.cost(of.idle(region), left, work, hours, (number, PURE[OFF_YOUNG]))
        hops = 0.0
        if share < 1.0:
            hops = weighed.cost(of.idle(region), left, work, hours, (number, stays_on))
        return usd + (1.0 - lost) * on + lost * (share * off + (1.0 - share) * hops)


class WhaleZones:
    """The policy."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player that has learned from the past."""
        return Player(errand, sites, past)


_: SpotPolicy = WhaleZones()
