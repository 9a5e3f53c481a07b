"""Ours for one zone: the choice that costs least over the kinds of zones that it may be.

The programme's tables say what each choice costs were the zone of a kind; the belief weighs the
kinds by what was seen, before the errand and in it. Whatever they say, a choice that could miss
the deadline is not made (`safety`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cloudwhale.spi.spot import Errand, Sight, Site, SpotPlayer, SpotPolicy, Standing, Use
from cloudwhale_policies.spot import programme, safety
from cloudwhale_policies.spot.known import cheapest
from cloudwhale_policies.spot.programme import BRACKETS, Shape, Tables, phase_of
from cloudwhale_policies.spot.spells import Belief, Laws, of_site

ROUNDED_TO = 0.01
"""Of the on-demand price: errands whose prices differ by less share their tables."""


class WhaleSpot:
    """Expected cost over believed kinds of zones; it plays the cheapest of several sites alone."""

    def __init__(self, laws: Laws | None = None) -> None:
        self.laws = Laws() if laws is None else laws

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player for the cheapest site; the first of a shape takes a CPU second."""
        site = next(site for site in sites if site.name == cheapest(sites))
        belief = Belief(self.laws, errand.tick_s)
        belief.learn(of_site(past, site.name))
        return _Player(errand, site, belief, programme.solved(shape_of(errand, site, self.laws)))


def shape_of(errand: Errand, site: Site, laws: Laws) -> Shape:
    """Return what the tables of an errand depend on."""
    step_s = programme.step_of(errand.tick_s, errand.deadline_s, errand.changeover_s)
    share = site.spot_usd_h / site.on_demand_usd_h
    return Shape(
        step_s,
        max(1, int(np.ceil(errand.deadline_s / step_s - 1e-9))),
        max(0.0, float(np.ceil((errand.deadline_s - errand.work_s) / step_s))),
        errand.changeover_s / step_s,
        round(share / ROUNDED_TO) * ROUNDED_TO,
        laws,
    )


class _Player:
    """Plays one errand."""

    def __init__(self, errand: Errand, site: Site, belief: Belief, tables: Tables) -> None:
        self._errand, self._belief, self._tables = errand, belief, tables
        self._site = site.name
        self._spot, self._on_demand = Use(site.name, "spot"), Use(site.name, "on-demand")

    def choose(self, now: Standing) -> Use | None:
        """Return the safe choice that is expected to cost least; ties stay."""
        is_on = now.is_on[self._site]
        if is_on is not None:
            self._belief.see(now.at_s, is_on=is_on)
        stays = now.use == self._spot
        may_idle = safety.may_idle(self._errand, now)
        may_spot = is_on is not False and safety.may_use_spot(self._errand, now, stays=stays)
        if not may_idle and not may_spot:
            return self._on_demand
        costs: list[tuple[float, bool, int, Use | None]] = []
        look = _Look(self._tables, self._belief, self._errand, now)
        if may_spot:
            costs.append((look.spot(stays=stays), not stays, 0, self._spot))
        if may_idle:
            costs.append((look.idle(), now.use is not None, 1, None))
        had = now.use == self._on_demand
        costs.append((look.on_demand(stays=had), not had, 2, self._on_demand))
        return min(costs, key=lambda cost: cost[:3])[3]


class _Look:
    """Reads the tables at a standing."""

    def __init__(self, tables: Tables, belief: Belief, errand: Errand, now: Standing) -> None:
        self._tables, self._shape = tables, tables.shape
        step_s = self._shape.step_s
        self._weights = belief.weights()
        self._age = phase_of(belief.age_s / step_s + 1.0)
        self._is_on = belief.is_on is not False
        left_s = errand.deadline_s - now.at_s
        self._left = min(self._shape.steps, max(1, int(left_s / step_s + 1e-9)))
        self._slack = (left_s - now.work_left_s) / step_s
        self._work = now.work_left_s / step_s
        self._changeover_left = now.changeover_left_s / step_s

    def idle(self) -> float:
        """Return what it costs from here on to idle for a step, in on-demand steps."""
        phase = self._age + (0 if self._is_on else BRACKETS)
        return self._mean(self._tables.idle[self._left, :, phase], self._slack - 1.0)

    def spot(self, *, stays: bool) -> float:
        """Return what it costs to run on spot for a step."""
        billed, mode, slack = self._run(stays=stays)
        after = 0.0
        if mode is not None:
            phase = self._age if self._is_on else 0
            after = self._mean(self._tables.spot[self._left, :, mode, phase], slack)
        return self._shape.spot_share * billed + after

    def on_demand(self, *, stays: bool) -> float:
        """Return what it costs to run on demand for a step."""
        billed, mode, slack = self._run(stays=stays)
        if mode is None:
            return billed
        phase = self._age + (0 if self._is_on else BRACKETS)
        return billed + self._mean(self._tables.on_demand[self._left, :, mode, phase], slack)

    def _run(self, *, stays: bool) -> tuple[float, int | None, float]:
        """Return the part of a step that is billed, the mode after it (None: done), the slack."""
        changeover = self._changeover_left if stays else self._shape.changeover
        lost = min(changeover, 1.0)
        if changeover <= 1.0 and self._work <= 1.0 - lost + 1e-9:
            return lost + self._work, None, 0.0
        return 1.0, self._shape.mode(changeover - lost), self._slack - lost

    def _mean(self, costs: NDArray[np.float32], slack: float) -> float:
        """Return the believed mean of costs [kind, slack] at a slack between two of the grid."""
        grid = self._tables.grid
        at = min(max(int(np.searchsorted(grid, slack + 1e-9, side="right")) - 1, 0), len(grid) - 2)
        share = (slack - grid[at]) / (grid[at + 1] - grid[at])
        low, high = self._weights @ costs[:, at : at + 2]
        return float(low + min(1.0, max(0.0, share)) * (high - low))


_: SpotPolicy = WhaleSpot()
