"""No rule for several zones misses a deadline, seen freely or not, and none beats the optimum."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudwhale.simulation.spotting import Record, played
from cloudwhale.spi.spot import Errand, Sight, Site, SpotPlayer, SpotPolicy, Standing, Use
from cloudwhale_policies.spot.zones import WhaleZones
from cloudwhale_policies.spot.zones_omniscient import Future, OmniscientZones, least
from cloudwhale_policies.spot.zones_published import SkyNomad, UpA, UpAp, UpS

NAMES, REGIONS = ("a1", "a2", "b1", "c1"), ("a", "a", "b", "c")
EGRESS = {("a", "b"): 0.4, ("b", "a"): 0.4, ("a", "c"): 1.0, ("c", "a"): 0.1}
SPOT_USD_H = np.array([[0.9, 1.1, 0.8, 2.9]])
ON_DEMAND_USD_H = (3.0, 3.0, 2.8, 3.2)
RULES: dict[str, SpotPolicy] = {
    "skynomad": SkyNomad(),
    "up-s": UpS(),
    "up-a": UpA(),
    "up-ap": UpAp(),
    "whale-spot": WhaleZones(),
}
SHAPES = [
    Errand(14400.0, 19800.0, 720.0, 600.0, EGRESS),
    Errand(14400.0, 15800.0, 720.0, 600.0, EGRESS, 7200.0),
    Errand(14400.0, 15130.0, 720.0, 600.0, EGRESS),
    Errand(7200.0, 21000.0, 300.0, 600.0, EGRESS, 3600.0),
    Errand(7200.0, 9000.0, 1500.0, 600.0, EGRESS),
    Errand(7200.0, 9000.0, 0.0, 300.0, EGRESS),
]
"""Loose, tight, with 10 s to spare; short, long and no changeovers; deadlines within ticks."""

spells = st.lists(st.tuples(st.booleans(), st.integers(1, 20)), min_size=1, max_size=20)


def ticks_of(errand: Errand) -> int:
    return int(np.ceil(errand.deadline_s / errand.tick_s))


def a_record(flags: Sequence[Sequence[bool]]) -> Record:
    is_on = np.array(flags, dtype=np.bool_).T
    return Record(NAMES, REGIONS, is_on, SPOT_USD_H, ON_DEMAND_USD_H)


def sites_of(record: Record) -> tuple[Site, ...]:
    rows = zip(NAMES, REGIONS, SPOT_USD_H[0].tolist(), ON_DEMAND_USD_H, strict=True)
    return tuple(Site(*row) for row in rows)


@settings(max_examples=15, deadline=None)
@given(errand=st.sampled_from(SHAPES), drawn=st.tuples(spells, spells, spells, spells))
def test_no_rule_misses_a_deadline_or_beats_the_optimum(
    errand: Errand, drawn: Sequence[list[tuple[bool, int]]]
) -> None:
    ticks = ticks_of(errand)
    flags = [([on for on, n in zone for _ in range(n)] * ticks)[:ticks] for zone in drawn]
    record = a_record(flags)
    future = Future(record.is_on, SPOT_USD_H)
    best = least(errand, sites_of(record), future).usd
    ridden = played(errand, record, OmniscientZones(future))
    assert not ridden.missed
    assert ridden.usd == pytest.approx(best)
    for name, policy in RULES.items():
        ridden = played(errand, record, policy)
        assert not ridden.missed, name
        assert ridden.usd >= best - 1e-6, name


class Spiteful:
    """Notes where a policy has spot machines, to take them in the next tick."""

    def __init__(self, policy: SpotPolicy) -> None:
        self._policy = policy
        self.wanted: dict[float, str] = {}

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        self._player = self._policy.begin(errand, sites, past)
        return self

    def choose(self, now: Standing) -> Use | None:
        use = self._player.choose(now)
        self.wanted.pop(now.at_s, None)
        if use is not None and use.market == "spot":
            self.wanted[now.at_s] = use.site
        return use


@pytest.mark.parametrize("errand", SHAPES)
@pytest.mark.parametrize("name", RULES)
def test_zones_that_take_every_machine_as_soon_as_it_works_cause_no_miss(
    name: str, errand: Errand
) -> None:
    ticks = ticks_of(errand)
    flags = np.ones((len(NAMES), ticks), dtype=np.bool_)
    for tick in range(1, ticks):
        spiteful = Spiteful(RULES[name])
        assert not played(errand, a_record(flags.tolist()), spiteful).missed
        taken = spiteful.wanted.get((tick - 1) * errand.tick_s)
        if taken is not None:
            flags[NAMES.index(taken), tick] = False
    assert not played(errand, a_record(flags.tolist()), RULES[name]).missed


@pytest.mark.parametrize("errand", SHAPES)
@pytest.mark.parametrize("name", ["up-s", "up-a", "up-ap", "whale-spot"])
def test_zones_without_any_machine_cost_what_on_demand_costs(name: str, errand: Errand) -> None:
    flags = np.zeros((len(NAMES), ticks_of(errand)), dtype=np.bool_)
    ridden = played(errand, a_record(flags.tolist()), RULES[name])
    assert not ridden.missed
    assert ridden.usd == pytest.approx(2.8 * (errand.work_s + errand.changeover_s) / 3600.0)
