"""The published rules for one zone that know nothing of what comes.

Greedy, Uniform Progress and Time-Sliced are those of Wu et al., "Can't Be Late" (NSDI 2024). Where
there are several sites they look at the cheapest alone. Each switches to on-demand for good when
the time left is less than the work left and two changeovers, as there, or when `safety` says so.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from cloudwhale.model.units import Seconds
from cloudwhale.spi.spot import Errand, Sight, Site, SpotPlayer, SpotPolicy, Standing, Use
from cloudwhale_policies.spot import safety

SLICES = 8
"""Of Time-Sliced; the paper leaves the number open."""


def cheapest(sites: Sequence[Site]) -> str:
    """Return the name of the site with the cheapest spot machines; ties end at the name."""
    return min(sites, key=lambda site: (site.spot_usd_h, site.name)).name


class Rule(ABC):
    """A player of one site."""

    def __init__(self, errand: Errand, sites: Sequence[Site]) -> None:
        self.errand = errand
        self.site = cheapest(sites)
        self.spot = Use(self.site, "spot")
        self.on_demand = Use(self.site, "on-demand")
        self._for_good = False

    def choose(self, now: Standing) -> Use | None:
        """Return what the rule wants, as long as that is safe."""
        spot_is_on = now.is_on[self.site] is not False
        stays = now.use == self.spot
        slack_s = safety.left_s(self.errand, now) - now.work_left_s
        if not stays and slack_s + safety.ROUNDING_S < 2.0 * self.errand.changeover_s:
            self._for_good = True
        if self._for_good:
            return self.on_demand
        wanted = self.wants(now, spot_is_on=spot_is_on)
        if wanted is None and safety.may_idle(self.errand, now):
            return None
        if wanted == self.spot and safety.may_use_spot(self.errand, now, stays=stays):
            return self.spot
        return self.on_demand

    @abstractmethod
    def wants(self, now: Standing, *, spot_is_on: bool) -> Use | None:
        """Return the machine for this tick, were there no deadline to be missed."""

    def done_s(self, now: Standing) -> Seconds:
        """Return the work that is done."""
        return self.errand.work_s - now.work_left_s


class _AlwaysOnDemand(Rule):
    def wants(self, now: Standing, *, spot_is_on: bool) -> Use | None:
        return self.on_demand


class _Greedy(Rule):
    def wants(self, now: Standing, *, spot_is_on: bool) -> Use | None:
        return self.spot if spot_is_on else None


class _UniformProgress(Rule):
    def wants(self, now: Standing, *, spot_is_on: bool) -> Use | None:
        if now.use is None:
            if spot_is_on:
                return self.spot
            return self.on_demand if self._is_behind(now, now.at_s) else None
        if now.use == self.spot:
            return self.spot
        ahead = not self._is_behind(now, now.at_s + 2.0 * self.errand.changeover_s)
        return self.spot if spot_is_on and ahead else self.on_demand

    def _is_behind(self, now: Standing, at_s: Seconds) -> bool:
        """Say whether what is done now is less than is due then."""
        due_s = at_s * self.errand.work_s / self.errand.deadline_s
        return self.done_s(now) + safety.ROUNDING_S < due_s


class _TimeSliced(Rule):
    def __init__(self, errand: Errand, sites: Sequence[Site], slices: int) -> None:
        super().__init__(errand, sites)
        self._slice_s = errand.deadline_s / slices
        self._due_s = errand.work_s / slices

    def wants(self, now: Standing, *, spot_is_on: bool) -> Use | None:
        number = int(now.at_s / self._slice_s + 1e-9) + 1
        left_s = number * self._slice_s - now.at_s
        short_s = number * self._due_s - self.done_s(now)
        if now.use == self.spot:
            return self.spot
        if now.use == self.on_demand and short_s > safety.ROUNDING_S:
            return self.on_demand
        if short_s > 0.0 and left_s < short_s + 2.0 * self.errand.changeover_s:
            return self.on_demand
        return self.spot if spot_is_on else None


class AlwaysOnDemand:
    """On-demand from the first tick to the end."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player that never looks."""
        return _AlwaysOnDemand(errand, sites)


class Greedy:
    """Spot whenever it can be had, else idle, until only on-demand meets the deadline."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player for the cheapest site."""
        return _Greedy(errand, sites)


class UniformProgress:
    """As much done at any time as its part of the deadline asks for; on-demand when behind."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player for the cheapest site."""
        return _UniformProgress(errand, sites)


class TimeSliced:
    """Greedy inside each of some equal slices of the deadline, with its part of the work."""

    def __init__(self, slices: int = SLICES) -> None:
        self.slices = slices

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player for the cheapest site."""
        return _TimeSliced(errand, sites, self.slices)


_: tuple[SpotPolicy, ...] = (AlwaysOnDemand(), Greedy(), UniformProgress(), TimeSliced())
