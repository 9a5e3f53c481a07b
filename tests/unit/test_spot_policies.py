"""Spot policies for one zone: what each does, what ours believes, and what the optimum is."""

from itertools import product

import numpy as np
import pytest

from cloudwhale import plugins
from cloudwhale.simulation.spotting import one_site, played
from cloudwhale.spi.spot import Errand, Sight, Site, SpotPolicy, Standing, Use
from cloudwhale_policies.spot import programme, safety
from cloudwhale_policies.spot.known import AlwaysOnDemand, Greedy, TimeSliced, UniformProgress
from cloudwhale_policies.spot.omniscient import NextLifetime, Omniscient, least_usd
from cloudwhale_policies.spot.spells import Belief, Law, Laws
from cloudwhale_policies.spot.whale_spot import WhaleSpot

TICK_S = 600.0
HERE = Site("here", "here", 0.9, 3.0)
SPOT, ON_DEMAND = Use("here", "spot"), Use("here", "on-demand")
DAY = Errand(43200.0, 64800.0, 720.0, TICK_S)


def cost(errand: Errand, is_on: list[bool], policy: SpotPolicy) -> float:
    return played(errand, one_site(is_on, HERE.spot_usd_h, HERE.on_demand_usd_h), policy).usd


def a_standing(**changed: object) -> Standing:
    known: dict[str, object] = {
        "at_s": 0.0, "work_left_s": 6000.0, "changeover_left_s": 0.0, "use": None, "region": "",
        "sites": (HERE,), "is_on": {"here": True},
    }  # fmt: skip
    known.update(changed)
    return Standing(**known)  # type: ignore[arg-type]


@pytest.mark.parametrize(("deadline_s", "safe"), [(7320.0, True), (7319.0, False)])
def test_idling_is_safe_while_on_demand_could_still_do_it_afterwards(
    deadline_s: float, safe: bool
) -> None:
    errand = Errand(6000.0, deadline_s, 720.0, TICK_S)
    assert safety.may_idle(errand, a_standing()) is safe


@pytest.mark.parametrize(("deadline_s", "safe"), [(6720.0, True), (6719.0, False)])
def test_staying_on_spot_is_safe_while_on_demand_could_do_what_is_left_after_it(
    deadline_s: float, safe: bool
) -> None:
    errand = Errand(6000.0, deadline_s, 720.0, TICK_S)
    assert safety.may_use_spot(errand, a_standing(use=SPOT), stays=True) is safe


def test_the_last_tick_of_the_work_may_be_on_spot() -> None:
    errand = Errand(6000.0, 600.0, 720.0, TICK_S)
    now = a_standing(use=SPOT, work_left_s=600.0)
    assert safety.may_use_spot(errand, now, stays=True)


def test_greedy_takes_spot_idles_without_and_ends_on_demand() -> None:
    errand = Errand(6000.0, 12000.0, 720.0, TICK_S)
    ridden = played(errand, one_site([True] * 3 + [False] * 17, 0.9, 3.0), Greedy())
    markets = [None if beat.use is None else beat.use.market for beat in ridden.beats]
    assert markets[:3] == ["spot"] * 3
    assert markets[3] is None
    assert markets[-1] == "on-demand"
    assert markets == sorted(markets, key=["spot", None, "on-demand"].index)


def test_uniform_progress_works_on_demand_as_soon_as_it_is_behind() -> None:
    ridden = played(DAY, one_site([False] * 108, 0.9, 3.0), UniformProgress())
    assert ridden.beats[0].use is None, "nothing is due at once"
    assert ridden.beats[1].use == ON_DEMAND
    assert ridden.hours["on-demand"] == pytest.approx(12.2), "it does not go idle again"


def test_time_sliced_meets_the_part_of_every_slice() -> None:
    slices = 3
    ridden = played(DAY, one_site([False] * 108, 0.9, 3.0), TimeSliced(slices))
    for number in range(1, slices + 1):
        until = number * DAY.deadline_s / slices
        done = sum(beat.work_s for beat in ridden.beats if beat.at_s < until)
        assert done >= number * DAY.work_s / slices - TICK_S


def test_ours_stays_on_spot_that_stays_and_pays_no_on_demand() -> None:
    ridden = played(DAY, one_site([True] * 108, 0.9, 3.0), WhaleSpot())
    assert ridden.hours["on-demand"] == 0.0
    assert ridden.starts == 1


def test_ours_waits_longer_where_spot_has_come_back_soon_before() -> None:
    soon = [Sight("here", -TICK_S * at, at % 12 > 1) for at in range(600, 0, -1)]
    late = [Sight("here", -TICK_S * at, at % 110 > 99) for at in range(600, 0, -1)]
    idle: list[int] = []
    for past in (soon, late):
        ridden = played(DAY, one_site([False] * 108, 0.9, 3.0), WhaleSpot(), past)
        idle.append(sum(beat.use is None for beat in ridden.beats))
    assert idle[0] > idle[1]


def test_ours_plays_where_spot_is_seen_only_by_trying() -> None:
    errand = Errand(43200.0, 64800.0, 720.0, TICK_S, probes_every_s=7200.0)
    is_on = [at % 20 > 6 for at in range(108)]
    ridden = played(errand, one_site(is_on, 0.9, 3.0), WhaleSpot())
    assert not ridden.missed and ridden.hours["spot"] > 0.0


def test_ours_finishes_at_once_on_demand_when_the_deadline_cannot_be_met() -> None:
    errand = Errand(6000.0, 3000.0, 720.0, TICK_S)
    ridden = played(errand, one_site([True] * 5, 0.9, 3.0), WhaleSpot())
    assert ridden.missed
    assert {beat.use for beat in ridden.beats} == {ON_DEMAND}


def test_ours_never_takes_spot_that_costs_more_than_on_demand() -> None:
    ridden = played(DAY, one_site([True] * 108, 3.5, 3.0), WhaleSpot())
    assert ridden.hours["spot"] == 0.0


def test_a_long_changeover_and_short_ticks_make_longer_steps() -> None:
    step_s = programme.step_of(60.0, 172800.0, 3600.0)
    assert step_s % 60.0 == 0.0
    assert 172800.0 / step_s <= programme.MOST_STEPS
    assert 3600.0 / step_s <= programme.MOST_CHANGEOVER
    errand = Errand(7200.0, 14400.0, 1800.0, 60.0)
    assert not played(errand, one_site([True] * 30 + [False] * 210, 0.9, 3.0), WhaleSpot()).missed


def test_a_spell_ends_less_likely_the_older_it_is() -> None:
    law = Law(0.8, 0.0)
    ends = [law.ends(hours * 3600.0, TICK_S) for hours in (0.0, 1.0, 5.0, 20.0)]
    assert ends == sorted(ends, reverse=True)
    whole = 1.0 - (1.0 - law.ends(0.0, 300.0)) * (1.0 - law.ends(300.0, 300.0))
    assert whole == pytest.approx(law.ends(0.0, 600.0))


def test_a_belief_moves_to_the_law_that_made_the_spells() -> None:
    laws = Laws((Law(0.3, 0.0), Law(1.0, 1.0)), (Law(0.6, 0.06),))
    for true in range(2):
        dice = np.random.default_rng(3)
        belief = Belief(laws, TICK_S)
        is_on, age, at = True, 0, -280
        while at < 0:
            belief.see(at * TICK_S, is_on=is_on)
            law = laws.on[true] if is_on else laws.off[0]
            ended = dice.random() < law.ends(age * TICK_S, TICK_S)
            is_on, age, at = is_on != ended, 0 if ended else age + 1, at + 1
        assert belief.weights()[true] > 0.9
        assert belief.weights().sum() == pytest.approx(1.0)


def test_what_was_seen_for_days_is_believed_of_the_zone_itself() -> None:
    belief = Belief(Laws(), TICK_S)
    usual = belief.kinds()
    for at in range(570):
        belief.see(at * TICK_S, is_on=at % 12 > 1)
    assert belief.kinds() is usual, "four days are not over"
    for at in range(570, 1200):
        belief.see(at * TICK_S, is_on=at % 12 > 1)
    ((on, off),) = belief.kinds()
    assert off[1] > 0.7, "spells without machines last two ticks"
    assert off[0] < usual[0][1][0]
    assert on[0] < 0.15 and on[4] > 0.3
    assert belief.weights().tolist() == [1.0]


def test_what_was_never_seen_is_as_usual() -> None:
    belief = Belief(Laws(), TICK_S)
    usual = belief.kinds()
    for at in range(600):
        belief.see(at * TICK_S, is_on=True)
    ((_, off),) = belief.kinds()
    means = [sum(kind[1][bracket] for kind in usual) / len(usual) for bracket in range(len(off))]
    assert off == pytest.approx(means)


def test_a_belief_hears_the_same_time_once() -> None:
    belief = Belief(Laws(), TICK_S)
    belief.see(0.0, is_on=True)
    belief.see(600.0, is_on=True)
    before = belief.weights().tolist(), belief.age_s
    belief.see(600.0, is_on=True)
    assert (belief.weights().tolist(), belief.age_s) == before


def cheapest_by_trying(errand: Errand, is_on: list[bool]) -> float:
    """Play every sequence of choices."""
    found = float("inf")
    for words in product((None, SPOT, ON_DEMAND), repeat=len(is_on)):
        if any(use == SPOT and not on for use, on in zip(words, is_on, strict=True)):
            continue
        ridden = played(
            errand, one_site(is_on, HERE.spot_usd_h, HERE.on_demand_usd_h), Words(words)
        )
        if not ridden.missed:
            found = min(found, ridden.usd)
    return found


class Words:
    """Plays a sequence of choices."""

    def __init__(self, words: tuple[Use | None, ...]) -> None:
        self.words = words

    def begin(self, errand: Errand, sites: object, past: object) -> "Words":
        return self

    def choose(self, now: Standing) -> Use | None:
        return self.words[round(now.at_s / TICK_S)]


@pytest.mark.parametrize("changeover_s", [0.0, 300.0, 720.0])
@pytest.mark.parametrize("pattern", ["1101011", "0110111", "1110001", "0000000"])
def test_the_optimum_is_what_trying_every_sequence_finds(pattern: str, changeover_s: float) -> None:
    errand = Errand(1500.0, 3900.0, changeover_s, TICK_S)
    is_on = [flag == "1" for flag in pattern]
    best = float(least_usd(errand, np.array([is_on]), HERE)[0])
    assert best == pytest.approx(cheapest_by_trying(errand, is_on))


def test_what_cannot_be_met_has_no_optimum() -> None:
    errand = Errand(6000.0, 6300.0, 720.0, TICK_S)
    assert np.isinf(least_usd(errand, np.ones((1, 11), dtype=np.bool_), HERE)).all()


@pytest.mark.parametrize("policy", [Omniscient(), NextLifetime()])
def test_who_is_for_measuring_does_nothing_without_the_future(policy: SpotPolicy) -> None:
    past = [Sight("here", -TICK_S, True)]
    with pytest.raises(ValueError, match="for measuring"):
        policy.begin(DAY, [HERE], past)


def test_the_lifetime_oracle_leaves_short_spells_alone() -> None:
    record = one_site([at % 3 == 0 for at in range(108)], 0.9, 3.0)
    future = record.sights(TICK_S, range(108), 0)
    assert played(DAY, record, NextLifetime(), future).hours["spot"] == 0.0


def test_always_on_demand_takes_work_and_one_changeover() -> None:
    assert cost(DAY, [True] * 108, AlwaysOnDemand()) == pytest.approx(3.0 * 12.2)


@pytest.mark.parametrize(
    "name",
    ["always-on-demand", "greedy", "uniform-progress", "time-sliced", "next-lifetime",
     "omniscient", "whale-spot"],
)  # fmt: skip
def test_every_spot_policy_is_found_by_its_name(name: str) -> None:
    policy = plugins.load("cloudwhale.policies.spot", name)()
    assert hasattr(policy, "begin")
