"""The published rules for several zones: SkyNomad, and Uniform Progress with three ways to choose.

After Li et al., "SkyNomad" (arXiv 2601.06520) and its artifact. All finish on demand when the time
left is less than the work left and two changeovers, or when `safety` says so.
"""

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Sequence

import numpy as np

from cloudwhale.model.units import Seconds
from cloudwhale.spi.spot import Errand, Sight, Site, SpotPlayer, SpotPolicy, Standing, Use
from cloudwhale_policies.spot import safety
from cloudwhale_policies.spot.lives import HOUR_S, Spells

LOOKS = 5
"""How many looks at a zone UP(A) and UP(AP) remember."""
LOOK_EVERY_S: Seconds = 7200.0
"""How often a zone counts anew for them, as published."""
HYSTERESIS = 0.2
"""Of the on-demand price: by how much SkyNomad's new choice must be better than what it has."""


class _Rule(ABC):
    """A player that finishes on demand when it must."""

    def __init__(self, errand: Errand) -> None:
        self.errand = errand
        self._finishes = False

    def choose(self, now: Standing) -> Use | None:
        """Return what the rule wants, as long as that is safe."""
        self.look(now)
        on_spot = now.use is not None and now.use.market == "spot"
        slack_s = safety.left_s(self.errand, now) - now.work_left_s
        if not on_spot and slack_s + safety.ROUNDING_S < 2.0 * self.errand.changeover_s:
            self._finishes = True
        on_demand = safety.on_demand(now, now.sites, self.errand)
        if self._finishes:
            return on_demand
        for wanted in self.wants(now):
            if wanted is None:
                if safety.may_idle(self.errand, now):
                    return None
            elif wanted.market == "on-demand":
                return on_demand
            elif safety.may_use_spot(self.errand, now, stays=wanted == now.use):
                return wanted
        return on_demand

    @abstractmethod
    def look(self, now: Standing) -> None:
        """Remember what is seen; called before every choice."""

    @abstractmethod
    def wants(self, now: Standing) -> Sequence[Use | None]:
        """Return what to do in this tick, best first."""


class _Uniform(_Rule):
    """Uniform Progress: on demand when behind, else spot where it can be had."""

    def wants(self, now: Standing) -> Sequence[Use | None]:
        if now.use is not None and now.use.market == "spot":
            return [self.better(now, now.use), now.use]
        spots = [Use(site, "spot") for site in self.order(now) if now.is_on[site] is not False]
        on_demand = safety.on_demand(now, now.sites, self.errand)
        if now.use is None:
            return [*spots, on_demand if self._is_behind(now, now.at_s) else None]
        behind = self._is_behind(now, now.at_s + 2.0 * self.errand.changeover_s)
        return [now.use] if behind else [*spots, now.use]

    def _is_behind(self, now: Standing, at_s: Seconds) -> bool:
        """Say whether what is done now is less than is due then."""
        due_s = at_s * self.errand.work_s / self.errand.deadline_s
        return self.errand.work_s - now.work_left_s + safety.ROUNDING_S < due_s

    def better(self, now: Standing, use: Use) -> Use:
        """Return the spot machine to have instead of one that it has."""
        return use

    @abstractmethod
    def order(self, now: Standing) -> Sequence[str]:
        """Return the names of the sites to try, in order."""


class _UpS(_Uniform):
    """Cheapest first, the region that was lost last."""

    def __init__(self, errand: Errand) -> None:
        super().__init__(errand)
        self._lost = ""

    def look(self, now: Standing) -> None:
        if now.use is not None:
            self._lost = next(site.region for site in now.sites if site.name == now.use.site)

    def order(self, now: Standing) -> Sequence[str]:
        def key(site: Site) -> tuple[bool, float, str]:
            return site.region == self._lost, site.spot_usd_h, site.name

        return [site.name for site in sorted(now.sites, key=key)]


class _UpA(_Uniform):
    """The site first where most of the last looks found spot; moved to as soon as it leads."""

    by_price = False

    def __init__(self, errand: Errand) -> None:
        super().__init__(errand)
        self._looks: dict[str, deque[bool]] = defaultdict(lambda: deque(maxlen=LOOKS))
        self._looked_s: dict[str, Seconds] = {}

    def look(self, now: Standing) -> None:
        for site, is_on in now.is_on.items():
            if is_on is None:
                continue
            due_s = self._looked_s.get(site, -np.inf) + LOOK_EVERY_S
            news = bool(self._looks[site]) and self._looks[site][-1] != is_on
            if now.at_s + safety.ROUNDING_S >= due_s or (news and not is_on):
                self._looks[site].append(is_on)
                self._looked_s[site] = now.at_s

    def share(self, site: Site) -> float:
        """Return how often it was found on, with even odds before the first look."""
        looks = self._looks[site.name]
        share = sum(looks) / len(looks) if looks else 0.5
        return share / site.spot_usd_h if self.by_price else share

    def better(self, now: Standing, use: Use) -> Use:
        here = next(site for site in now.sites if site.name == use.site)
        best = next(site for site in now.sites if site.name == self.order(now)[0])
        leads = self.share(best) > self.share(here) + 1e-6
        return Use(best.name, "spot") if leads and now.is_on[best.name] is not False else use

    def order(self, now: Standing) -> Sequence[str]:
        ranked = sorted(now.sites, key=lambda site: (-self.share(site), site.name))
        return [site.name for site in ranked]


class _UpAp(_UpA):
    """As UP(A), by how often it was found on for its price."""

    by_price = True


class _SkyNomad(_Rule):
    """The option of most utility: the value of the progress that it brings, less its cost."""

    def __init__(self, errand: Errand, past: Sequence[Sight]) -> None:
        super().__init__(errand)
        self._spells = Spells()
        self._spells.see_all(past)
        self._lives: dict[tuple[str, int, float], float] = {}

    def look(self, now: Standing) -> None:
        for site, is_on in now.is_on.items():
            if is_on is not None:
                self._spells.see(site, now.at_s, is_on=is_on)

    def wants(self, now: Standing) -> Sequence[Use | None]:
        value = self._value_usd_h(now)
        has = next((site for site in now.sites if now.use and site.name == now.use.site), None)
        hysteresis = HYSTERESIS * min(site.on_demand_usd_h for site in now.sites)
        stays = 0.0
        if now.use is not None and has is not None:
            on_spot = now.use.market == "spot"
            stays = value - (has.spot_usd_h if on_spot else has.on_demand_usd_h)
        options = [
            (self._utility(now, site, value), Use(site.name, "spot"))
            for site in now.sites
            if now.is_on[site.name] is not False
        ]
        on_demand = safety.on_demand(now, now.sites, self.errand)
        there = next(site for site in now.sites if site.name == on_demand.site)
        options.append((value - there.on_demand_usd_h, on_demand))
        ranked = sorted(options, key=lambda option: (-option[0], option[1].site))
        better = [u for worth, u in ranked if worth > stays + hysteresis and u != now.use]
        return [*better, now.use if stays >= 0.0 else None]

    def _value_usd_h(self, now: Standing) -> float:
        """Return what an hour of progress is worth: more when the pace must be above the plan's."""
        pace = now.work_left_s / max(safety.left_s(self.errand, now), self.errand.tick_s)
        planned = self.errand.work_s / self.errand.deadline_s
        return min(site.on_demand_usd_h for site in now.sites) * pace / planned

    def _utility(self, now: Standing, site: Site, value: float) -> float:
        life_h = min(self._life_h(site.name), safety.left_s(self.errand, now) / HOUR_S)
        life_h = max(life_h, self.errand.tick_s / HOUR_S)
        share = max(0.0, life_h - self.errand.changeover_s / HOUR_S) / life_h
        egress = self.errand.egress_usd.get((now.region, site.region), 0.0)
        return value * share - site.spot_usd_h - egress / life_h

    def _life_h(self, site: str) -> float:
        """Return the expected rest of a spell that is on, given its age; it may be infinite."""
        newest = self._spells.newest(site)
        runs = newest is not None and newest.is_on
        age = round(newest.age_h, 1) if newest is not None and runs else 0.0
        key = (site, len(self._spells.by_site.get(site, ())), age)
        if key not in self._lives:
            spells = [spell for spell in self._spells.by_site.get(site, ()) if spell.is_on]
            self._lives[key] = _rest_h([spell.age_h for spell in spells], age, runs=runs)
        return self._lives[key]


def _rest_h(spells: Sequence[float], age: float, *, runs: bool) -> float:
    """Return the mean rest of a spell by Nelson and Aalen; `runs`: the last has not ended."""
    if not spells:
        return np.inf
    lengths = np.array(spells)
    ended = np.ones(len(lengths), dtype=np.bool_)
    ended[-1] = not runs
    later = np.unique(lengths[ended & (lengths > age)])
    if not len(later):
        return max(float(lengths.max()), age)
    left = np.array([(lengths >= length).sum() for length in later])
    fell = np.array([(lengths[ended] == length).sum() for length in later])
    survives = np.append(1.0, np.exp(-np.cumsum(fell / left))[:-1])
    return float((survives * np.diff(np.append(age, later))).sum())


class SkyNomad:
    """Li et al.: one money value for progress, lifetimes, moves and the deadline's pressure."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player that learns lifetimes from the past too."""
        return _SkyNomad(errand, past)


class UpS:
    """Uniform Progress that tries the cheapest zones first and stays while it lasts."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player; the past is not looked at."""
        return _UpS(errand)


class UpA:
    """Uniform Progress in the zone that was on in most of the last five looks."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player; the past is not looked at."""
        return _UpA(errand)


class UpAp:
    """Uniform Progress in the zone that was on most for its price in the last five looks."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player; the past is not looked at."""
        return _UpAp(errand)


_: tuple[SpotPolicy, ...] = (SkyNomad(), UpS(), UpA(), UpAp())
