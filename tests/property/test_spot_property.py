"""No spot policy misses a deadline on any availability, and none beats the optimum."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudwhale.simulation.spotting import one_site, played
from cloudwhale.spi.spot import Errand, Sight, Site, SpotPlayer, SpotPolicy, Standing, Use
from cloudwhale_policies.spot.known import AlwaysOnDemand, Greedy, TimeSliced, UniformProgress
from cloudwhale_policies.spot.omniscient import NextLifetime, Omniscient, least_usd
from cloudwhale_policies.spot.whale_spot import WhaleSpot

SPOT_USD_H, ON_DEMAND_USD_H = 0.9, 3.0
HERE = Site("here", "here", SPOT_USD_H, ON_DEMAND_USD_H)
BLIND: dict[str, SpotPolicy] = {
    "always-on-demand": AlwaysOnDemand(),
    "greedy": Greedy(),
    "uniform-progress": UniformProgress(),
    "time-sliced": TimeSliced(),
    "whale-spot": WhaleSpot(),
}
TOLD: dict[str, SpotPolicy] = {"omniscient": Omniscient(), "next-lifetime": NextLifetime()}
SHAPES = [
    Errand(14400.0, 19800.0, 720.0, 600.0),
    Errand(14400.0, 15800.0, 720.0, 600.0),
    Errand(14400.0, 15130.0, 720.0, 600.0),
    Errand(7200.0, 21000.0, 300.0, 600.0),
    Errand(7200.0, 9000.0, 1500.0, 600.0),
    Errand(7200.0, 9000.0, 0.0, 300.0),
]
"""Loose, tight, with 10 s to spare; short, long and no changeovers; deadlines within ticks."""


def ticks_of(errand: Errand) -> int:
    return int(np.ceil(errand.deadline_s / errand.tick_s))


spells = st.lists(st.tuples(st.booleans(), st.integers(1, 20)), min_size=1, max_size=30)


def flags(ticks: int, drawn: Sequence[tuple[bool, int]]) -> list[bool]:
    found = [is_on for is_on, lasts in drawn for _ in range(lasts)]
    return (found * ticks)[:ticks]


@settings(max_examples=40, deadline=None)
@given(errand=st.sampled_from(SHAPES), drawn=spells)
def test_no_policy_misses_a_deadline_or_beats_the_optimum(
    errand: Errand, drawn: list[tuple[bool, int]]
) -> None:
    is_on = flags(ticks_of(errand), drawn)
    record = one_site(is_on, SPOT_USD_H, ON_DEMAND_USD_H)
    future = record.sights(errand.tick_s, range(len(is_on)), 0)
    best = float(least_usd(errand, np.array([is_on]), HERE)[0])
    for name, policy in (*BLIND.items(), *TOLD.items()):
        ridden = played(errand, record, policy, future if name in TOLD else ())
        assert not ridden.missed, name
        assert ridden.usd >= best - 1e-6, name
        if name == "omniscient":
            assert ridden.usd == pytest.approx(best)


class Spiteful:
    """Notes what a policy has, to take it in the next tick."""

    def __init__(self, policy: SpotPolicy) -> None:
        self._policy = policy
        self.wanted: list[bool] = []

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        self._player = self._policy.begin(errand, sites, past)
        return self

    def choose(self, now: Standing) -> Use | None:
        use = self._player.choose(now)
        self.wanted.append(use is not None and use.market == "spot")
        return use


@pytest.mark.parametrize("errand", SHAPES)
@pytest.mark.parametrize("name", BLIND)
def test_a_zone_that_takes_every_machine_as_soon_as_it_works_causes_no_miss(
    name: str, errand: Errand
) -> None:
    ticks = ticks_of(errand)
    is_on = [True] * ticks
    for tick in range(1, ticks):
        spiteful = Spiteful(BLIND[name])
        ridden = played(errand, one_site(is_on, SPOT_USD_H, ON_DEMAND_USD_H), spiteful)
        assert not ridden.missed
        is_on[tick] = not (tick - 1 < len(spiteful.wanted) and spiteful.wanted[tick - 1])
    assert not played(errand, one_site(is_on, SPOT_USD_H, ON_DEMAND_USD_H), BLIND[name]).missed


@pytest.mark.parametrize("errand", SHAPES)
@pytest.mark.parametrize("lasts", [0, 1, 2, 5])
@pytest.mark.parametrize("name", BLIND)
def test_a_zone_that_is_off_or_flaps_causes_no_miss(name: str, lasts: int, errand: Errand) -> None:
    ticks = ticks_of(errand)
    is_on = [lasts > 0 and (tick // lasts) % 2 == 0 for tick in range(ticks)]
    assert not played(errand, one_site(is_on, SPOT_USD_H, ON_DEMAND_USD_H), BLIND[name]).missed


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_ours_costs_no_more_than_on_demand_where_spells_are_as_it_believes(seed: int) -> None:
    errand = SHAPES[0]
    dice = np.random.default_rng(seed)
    ours = dear = 0.0
    for _ in range(6):
        lasts = (1 + dice.pareto(0.8, 200)).astype(int)
        is_on = flags(ticks_of(errand), [(bool(at % 2), int(n)) for at, n in enumerate(lasts)])
        record = one_site(is_on, SPOT_USD_H, ON_DEMAND_USD_H)
        ours += played(errand, record, WhaleSpot()).usd
        dear += played(errand, record, AlwaysOnDemand()).usd
    assert ours <= dear * 1.02
