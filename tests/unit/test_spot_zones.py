"""What our rule for several zones chooses, what it learns, and the optimum beside it."""

import numpy as np
import pytest

from cloudwhale import plugins
from cloudwhale.simulation.spotting import Record, played
from cloudwhale.spi.spot import Errand, Sight, Site, Standing, Use
from cloudwhale_policies.spot.lives import Spells
from cloudwhale_policies.spot.whale_spot import WhaleSpot
from cloudwhale_policies.spot.zones import Player, WhaleZones
from cloudwhale_policies.spot.zones_chains import ON_OLD, ON_YOUNG, PHASES, Chain
from cloudwhale_policies.spot.zones_learning import learned
from cloudwhale_policies.spot.zones_omniscient import Future, least
from cloudwhale_policies.spot.zones_published import UpA, UpAp, UpS

HOUR = 3600.0
ERRAND = Errand(10 * HOUR, 15 * HOUR, 720.0, 300.0, {("a", "b"): 1.0, ("b", "a"): 1.0})
A1, A2, B1 = Site("a1", "a", 1.0, 3.0), Site("a2", "a", 1.0, 3.0), Site("b1", "b", 1.0, 3.0)


def steady(site: str, *, is_on: bool, hours: int = 72) -> list[Sight]:
    return [Sight(site, -300.0 * at, is_on) for at in reversed(range(1, 12 * hours))]


def together(*rows: list[Sight]) -> list[Sight]:
    return sorted((sight for row in rows for sight in row), key=lambda sight: sight.at_s)


def standing(
    is_on: dict[str, bool | None], use: Use | None = None, region: str = "", at_h: float = 0.0
) -> Standing:
    left_s = ERRAND.work_s - at_h * HOUR / 2.0
    return Standing(at_h * HOUR, left_s, 0.0, use, region, (A1, A2, B1), is_on)


def a_record(columns: dict[str, list[bool]], usd_h: list[float]) -> Record:
    names = tuple(columns)
    regions = tuple(name[0] for name in names)
    flags = np.array(list(columns.values())).T
    return Record(names, regions, flags, np.array([usd_h]), (3.0,) * len(names))


def test_a_zone_that_stays_on_is_preferred_to_one_that_flaps() -> None:
    flaps = [Sight("b1", -300.0 * at, at % 4 < 2) for at in reversed(range(1, 860))]
    past = together(steady("a1", is_on=True), flaps)
    player = WhaleZones().begin(ERRAND, (B1, A1), past)
    now = Standing(0.0, ERRAND.work_s, 0.0, None, "", (B1, A1), {"a1": True, "b1": True})
    assert player.choose(now) == Use("a1", "spot")


def test_after_a_loss_a_zone_of_the_same_region_is_taken_before_one_that_costs_egress() -> None:
    sites = {"a1": True, "a2": True, "b1": True}
    past = together(*(steady(name, is_on=True) for name in sites))
    player = WhaleZones().begin(ERRAND, (A1, A2, B1), past)
    had = player.choose(standing({"a1": True, "a2": False, "b1": False}))
    assert had == Use("a1", "spot")
    lost: dict[str, bool | None] = {"a1": False, "a2": True, "b1": True}
    assert player.choose(standing(lost, None, "a", 2.0)) == Use("a2", "spot")


def test_a_zone_that_was_not_seen_is_tried_and_then_the_next_best_taken() -> None:
    past = together(*(steady(name, is_on=True) for name in ("a1", "a2", "b1")))
    player = WhaleZones().begin(ERRAND, (A1, A2, B1), past)
    first = player.choose(standing({"a1": None, "a2": None, "b1": None}))
    assert first is not None and first.market == "spot"
    flags: dict[str, bool | None] = {"a1": None, "a2": None, "b1": None, first.site: False}
    second = player.choose(standing(flags))
    assert second is not None and second.market == "spot" and second.site != first.site


def test_a_checkpoint_that_lies_where_no_zone_is_costs_its_egress_and_no_more() -> None:
    errand = Errand(10 * HOUR, 15 * HOUR, 720.0, 300.0, {("home", "a"): 0.1, ("home", "b"): 50.0})
    past = together(steady("a1", is_on=True), steady("b1", is_on=True))
    player = WhaleZones().begin(errand, (A1, B1), past)
    now = Standing(0.0, errand.work_s, 0.0, None, "home", (A1, B1), {"a1": True, "b1": True})
    assert player.choose(now) == Use("a1", "spot")


def test_tries_go_on_in_a_tick_until_all_zones_are_off() -> None:
    columns = {"a1": [False] * 180, "a2": [False] * 180, "b1": [True] * 180}
    errand = Errand(10 * HOUR, 15 * HOUR, 720.0, 300.0, {}, 7200.0)
    ridden = played(errand, a_record(columns, [1.0, 1.0, 1.0]), WhaleZones())
    assert {beat.use for beat in ridden.beats} <= {Use("b1", "spot"), None}
    assert ridden.starts == 1


def test_one_entry_point_plays_one_zone_and_several() -> None:
    assert isinstance(WhaleSpot().begin(ERRAND, (A1, B1), ()), Player)
    assert not isinstance(WhaleSpot().begin(ERRAND, (A1,), ()), Player)


def test_lives_of_a_zone_that_flaps_are_shorter_than_those_of_one_that_stays() -> None:
    spells = Spells()
    spells.see_all(steady("a1", is_on=True))
    spells.see_all(Sight("b1", 600.0 * at, at % 5 > 0) for at in range(-430, 0))
    lives = learned(spells, ("a1", "b1"), 0.0)
    assert lives["b1"].ends_within(0.0, 1.0, is_on=True) > 0.7
    assert lives["a1"].ends_within(48.0, 1.0, is_on=True) < 0.1


def test_looks_every_two_hours_teach_that_a_zone_changes_often() -> None:
    dice = np.random.default_rng(3)
    spells = Spells()
    spells.see_all(Sight("calm", 7200.0 * at, at % 60 > 0) for at in range(-300, 0))
    spells.see_all(Sight("wild", 7200.0 * at, bool(dice.integers(2))) for at in range(-300, 0))
    lives = learned(spells, ("calm", "wild"), 0.0)
    calm, wild = (lives[name].ends_within(0.0, 1.0, is_on=True) for name in ("calm", "wild"))
    assert wild > 2.0 * calm


@pytest.mark.parametrize("hours", [0.05, 0.2, 1.0, 12.0])
def test_phases_of_a_chain_add_up(hours: float) -> None:
    spells = Spells()
    spells.see_all(Sight("b1", 600.0 * at, at % 7 > 1) for at in range(-430, 0))
    chain = Chain(learned(spells, ("b1",), 0.0)["b1"])
    assert chain.after(hours).sum(axis=1) == pytest.approx(np.ones(PHASES))
    assert chain.rates[ON_YOUNG] >= chain.rates[ON_OLD]
    assert 0.0 < chain.share() < 1.0


def test_the_optimum_pays_egress_only_where_it_gains() -> None:
    ticks = 60
    columns = {"a1": [True] * 30 + [False] * 30, "b1": [True] * ticks}
    record = a_record(columns, [1.0, 1.0])
    errand = Errand(4 * HOUR, 5 * HOUR, 0.0, 300.0, {("a", "b"): 1.0})
    sites = (A1, B1)
    assert least(errand, sites, Future(record.is_on, record.spot_usd_h)).usd == pytest.approx(4.0)
    cheap = np.array([[0.1, 1.0]])
    assert least(errand, sites, Future(record.is_on, cheap)).usd == pytest.approx(0.25 + 1.0 + 1.5)


def test_an_errand_that_nobody_can_make_has_no_least_cost() -> None:
    record = a_record({"a1": [True] * 60}, [1.0])
    errand = Errand(5 * HOUR, 5 * HOUR, 720.0, 300.0)
    assert least(errand, (A1,), Future(record.is_on, record.spot_usd_h)).usd == np.inf


def test_up_s_tries_the_cheapest_first_and_the_region_it_lost_last() -> None:
    sites = (Site("a1", "a", 0.9, 3.0), Site("a2", "a", 0.8, 3.0), Site("b1", "b", 1.5, 3.0))
    player = UpS().begin(ERRAND, sites, ())
    flags: dict[str, bool | None] = {"a1": True, "a2": True, "b1": True}
    had = player.choose(Standing(0.0, ERRAND.work_s, 0.0, None, "", sites, flags))
    assert had == Use("a2", "spot")
    stays = Standing(300.0, ERRAND.work_s, 420.0, had, "", sites, flags)
    assert player.choose(stays) == had
    lost = Standing(600.0, ERRAND.work_s, 0.0, None, "a", sites, {**flags, "a2": False})
    assert player.choose(lost) == Use("b1", "spot")


def test_up_a_moves_to_the_zone_that_was_on_most_and_up_ap_weighs_its_price() -> None:
    sites = (Site("a1", "a", 0.3, 3.0), Site("b1", "b", 1.5, 3.0))
    chosen = {}
    for name, policy in (("up-a", UpA()), ("up-ap", UpAp())):
        player = policy.begin(ERRAND, sites, ())
        use: Use | None = None
        for turn in range(6):
            flags: dict[str, bool | None] = {"a1": turn % 2 == 0, "b1": True}
            if use is not None and not flags[use.site]:
                use = None
            now = Standing(turn * 7200.0, ERRAND.work_s / 10.0, 0.0, use, "", sites, flags)
            use = player.choose(now)
            if use is not None and use.market == "on-demand":
                use = None
        chosen[name] = player.choose(
            Standing(6 * 7200.0, 60.0, 0.0, None, "", sites, {"a1": True, "b1": True})
        )
    assert chosen == {"up-a": Use("b1", "spot"), "up-ap": Use("a1", "spot")}


@pytest.mark.parametrize("name", ["skynomad", "up-s", "up-a", "up-ap"])
def test_every_published_rule_for_zones_is_found_by_its_name(name: str) -> None:
    policy = plugins.load("cloudwhale.policies.spot", name)()
    assert hasattr(policy, "begin")
