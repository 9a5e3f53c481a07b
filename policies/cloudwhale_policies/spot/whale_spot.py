"""Ours for one zone: the choice that costs least over the kinds of zones that it may be.

The programme's tables say what each choice costs were the zone of a kind; the belief weighs the
kinds by what was seen, before the errand and in it, and is of one kind alone, the zone's own, once
days of it were seen. Whatever they say, a choice that could miss the deadline is not made
(`safety`).
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from cloudwhale.spi.spot import Errand, Sight, Site, SpotPlayer, SpotPolicy, Standing, Use
from cloudwhale_policies.spot import programme, safety
from cloudwhale_policies.spot.programme import BRACKETS, Shape, Tables
from cloudwhale_policies.spot.spells import Belief, Kind, Laws, bracket_of, of_site
from cloudwhale_policies.spot.zones import WhaleZones

ROUNDED_TO = 0.01
"""Of the on-demand price: errands whose prices differ by less share their tables."""


class WhaleSpot:
    """Expected cost over believed kinds of zones; several sites are played as `zones` does."""

    def __init__(self, laws: Laws | None = None) -> None:
        self.laws = Laws() if laws is None else laws

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player; the first of a shape takes a CPU second."""
        if len(sites) > 1:
            return WhaleZones().begin(errand, sites, past)
        site = sites[0]
        belief = Belief(self.laws, errand.tick_s)
        belief.learn(of_site(past, site.name))
        return _Player(errand, site, belief)


def shape_of(errand: Errand, site: Site, kinds: tuple[Kind, ...]) -> Shape:
    """Return what the tables of an errand depend on: not how far it is, so others share them."""
    step_s = programme.step_of(errand.tick_s, errand.deadline_s, errand.changeover_s)
    slack_s = errand.deadline_s - errand.work_s
    share = site.spot_usd_h / site.on_demand_usd_h
    return Shape(
        step_s,
        max(1, int(np.ceil(errand.deadline_s / step_s - 1e-9))),
        max(0.0, float(np.ceil(slack_s / step_s))),
        errand.changeover_s / step_s,
        round(share / ROUNDED_TO) * ROUNDED_TO,
        tuple(_longer(kind, step_s / errand.tick_s) for kind in kinds),
    )


def _longer(kind: Kind, ticks: float) -> Kind:
    """Return how likely spells end within so many ticks; ages in steps are told apart as well."""
    if ticks == 1.0:
        return kind
    on, off = (tuple(1.0 - (1.0 - ends) ** ticks for ends in side) for side in kind)
    return on, off


class _Player:
    """Plays one errand."""

    def __init__(self, errand: Errand, site: Site, belief: Belief) -> None:
        self._errand, self._belief = errand, belief
        self._site, self._here = site.name, site
        self._kinds: tuple[Kind, ...] = ()
        self._tables = self._planned()
        self._spot, self._on_demand = Use(site.name, "spot"), Use(site.name, "on-demand")

    def choose(self, now: Standing) -> Use | None:
        """Return the safe choice that is expected to cost least; ties stay."""
        is_on = now.is_on[self._site]
        if is_on is not None:
            self._belief.see(now.at_s, is_on=is_on)
            if self._belief.kinds() is not self._kinds:
                self._tables = self._planned()
        has_spot = now.use == self._spot
        may_idle = safety.may_idle(self._errand, now)
        may_spot = is_on is not False and safety.may_use_spot(self._errand, now, stays=has_spot)
        if not may_idle and not may_spot:
            return self._on_demand
        has_it = now.use is not None and not has_spot
        look = _Look(self._tables, self._belief, self._errand, now)
        costs = [(look.on_demand(stays=has_it), not has_it, 2, self._on_demand)]
        if may_spot:
            costs.append((look.spot(stays=has_spot), not has_spot, 0, self._spot))
        found = min(costs, key=lambda cost: cost[:3])
        if may_idle and (look.idle(), now.use is not None, 1) < found[:3]:
            return None
        return found[3]

    def _planned(self) -> Tables:
        self._kinds = self._belief.kinds()
        return programme.solved(shape_of(self._errand, self._here, self._kinds))


class _Look:
    """Reads the tables at a standing; costs are from here on, in on-demand steps."""

    def __init__(self, tables: Tables, belief: Belief, errand: Errand, now: Standing) -> None:
        self._tables, self._shape = tables, tables.shape
        step_s = self._shape.step_s
        self._weights = belief.weights()
        self._age = bracket_of(belief.age_s / step_s + 1.0)
        self._is_on = belief.is_on is not False
        self._phase = self._age if self._is_on else self._age + BRACKETS
        left_s = errand.deadline_s - now.at_s
        self._left = min(self._shape.steps, max(1, int(left_s / step_s + 1e-9)))
        self._slack = (left_s - now.work_left_s) / step_s
        self._work = now.work_left_s / step_s
        self._changeover_left = now.changeover_left_s / step_s

    def idle(self) -> float:
        """Return what it costs to idle for a step."""
        return self._mean(self._tables.idle(self._phase), self._slack - 1.0)

    def spot(self, *, stays: bool) -> float:
        """Return what it costs to run on spot for a step."""
        changeover = self._changeover_left if stays else self._shape.changeover
        if changeover + self._work <= 1.0 + 1e-9:
            return self._shape.spot_share * (changeover + self._work)
        lost = min(changeover, 1.0)
        row = self._tables.spot(
            self._shape.mode(changeover - lost), self._age if self._is_on else 0
        )
        return self._shape.spot_share + self._mean(row, self._slack - lost)

    def on_demand(self, *, stays: bool) -> float:
        """Return what it costs to run on demand for a step."""
        changeover = self._changeover_left if stays else self._shape.changeover
        if changeover + self._work <= 1.0 + 1e-9:
            return changeover + self._work
        return 1.0 + self._mean(self._tables.on_demand(self._phase), self._slack - changeover)

    def _mean(self, row: int, slack: float) -> float:
        """Return the believed mean of a row's costs at a slack between two of the grid."""
        grid = self._tables.grid
        at = min(max(bisect_right(grid, slack + 1e-9) - 1, 0), len(grid) - 2)
        share = min(1.0, max(0.0, (slack - grid[at]) / (grid[at + 1] - grid[at])))
        low, high = (self._tables.costs[self._left, row, at : at + 2] @ self._weights).tolist()
        return float(low + share * (high - low))


_: SpotPolicy = WhaleSpot()
