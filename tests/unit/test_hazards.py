"""Hazards: what is published holds until machines have lived there; bursts rise and fade."""

import itertools

import pytest
from clouding import an_offer
from hypothesis import given
from hypothesis import strategies as st

from cloudwhale.control.lives import ANEW_EVERY_S, Lives
from cloudwhale.control.offers import Offered, Offers
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.planning.hazards import (
    BURST_HALF_LIFE_S,
    BURST_PER_H,
    FORGOTTEN_S,
    HOUR_S,
    SLOW_HALF_LIFE_S,
    Hazards,
    Life,
    in_steps,
    learned,
    life_of,
    pool_of,
)

DAY_S = 24 * HOUR_S
STEP = 2.0**0.125
"""Half of a step: nothing is told more exactly."""


def spot(zone: str = "a", region: str = "r1", hazard_per_h: float | None = 0.01) -> Offer:
    return an_offer(
        f"x1-{region}{zone}", type="x1", market="spot", zone=zone, region=region,
        hazard_per_h=hazard_per_h,
    )  # fmt: skip


def life(since: Instant, until: Instant | None, taken: bool = False, zone: str = "a") -> Life:
    return Life(pool_of(spot(zone)), since, until, taken)


def rental(name: str, **more: object) -> Rental:
    lease = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)
    return Rental(
        id=name, node=name, payer="r", offer="x1", lease=lease, reserved=MicroUsd(5),
        taken=spot(), state=RentalState.READY, requested_at=0.0,
    ).but(**more)  # fmt: skip


def test_where_nobody_has_been_holds_what_is_published() -> None:
    assert Hazards().per_h(spot()) == 0.01
    assert learned([life(0.0, None)], DAY_S).per_h(spot(zone="b")) == 0.01
    assert learned([life(0.0, None)], DAY_S).per_h(spot(region="r2")) == 0.01
    assert Hazards().per_h(spot(hazard_per_h=None)) is None


def test_on_demand_is_never_taken_whatever_was_seen() -> None:
    lives = [life(0.0, 60.0, taken=True)]
    assert learned(lives, 60.0).per_h(spot().but(market="on-demand", hazard_per_h=0.0)) == 0.0


def test_right_after_an_interruption_its_pool_is_as_bad_as_recorded_series_have_it() -> None:
    per_h = learned([life(0.0, HOUR_S, taken=True)], HOUR_S).per_h(spot())
    assert per_h == pytest.approx(BURST_PER_H + 0.0135, rel=STEP - 1)


def test_a_burst_halves_every_hour_and_is_all_but_over_after_a_day() -> None:
    lives = [life(0.0, HOUR_S, taken=True)]
    at = [learned(lives, HOUR_S + n * BURST_HALF_LIFE_S).per_h(spot()) or 0.0 for n in range(4)]
    for before, after in itertools.pairwise(at):
        assert 0.4 < after / before < 0.7
    assert learned(lives, DAY_S + HOUR_S).per_h(spot()) == pytest.approx(0.0134, rel=STEP - 1)


def test_a_neighbour_hears_of_it_and_another_region_does_not() -> None:
    found = learned([life(0.0, HOUR_S, taken=True)], HOUR_S)
    near, far = found.per_h(spot(zone="b")), found.per_h(spot(region="r2"))
    assert near is not None and far is not None
    assert far == 0.01 < near < 0.1


def test_who_lives_long_makes_its_pool_better_and_a_hundred_hours_of_ten_a_little() -> None:
    for_a_year = learned([life(0.0, None)], 400 * DAY_S).per_h(spot())
    assert for_a_year == pytest.approx(1 / (100 + SLOW_HALF_LIFE_S / HOUR_S / 0.693), rel=STEP - 1)


@given(
    st.lists(
        st.tuples(st.floats(0, 5e5), st.floats(0, 5e5), st.booleans(), st.sampled_from("ab")),
        max_size=20,
    ),
    st.floats(0, 6e5),
)
def test_hazards_are_finite_positive_and_never_better_for_one_more_interruption(
    drawn: list[tuple[float, float, bool, str]], now: float
) -> None:
    lives = [life(since, since + for_s, taken, zone) for since, for_s, taken, zone in drawn]
    before = learned(lives, now).per_h(spot()) or 0.0
    assert 0.0 < before < 100.0
    after = learned([*lives, life(now, now, taken=True)], now).per_h(spot()) or 0.0
    assert after >= before


@given(st.floats(1e-4, 50.0))
def test_steps_are_at_most_a_tenth_off(per_h: float) -> None:
    assert 1 / STEP <= in_steps(per_h) / per_h <= STEP * (1 + 1e-5)


def test_a_machine_that_was_told_that_it_goes_counts_as_taken_from_then_on() -> None:
    made = rental("m", interrupted_at=500.0, ended_at=620.0)
    assert life_of(made) == Life(pool_of(spot()), 0.0, 500.0, True)
    assert life_of(rental("m", ended_at=620.0)) == Life(pool_of(spot()), 0.0, 620.0, False)
    assert life_of(rental("m", requested_at=None)) is None
    assert life_of(rental("m", taken=spot().but(market="on-demand"))) is None


def test_a_controller_that_starts_knows_what_the_one_before_has_seen() -> None:
    taken = rental("m", interrupted_at=500.0, ended_at=620.0, state=RentalState.RETURNED)
    after = Lives(lambda: [taken]).hazards({}, 700.0).per_h(spot())
    followed = Lives(list)
    followed.hazards({"m": rental("m")}, 100.0)
    followed.hazards({"m": taken.but(state=RentalState.LOST)}, 650.0)
    assert followed.hazards({}, 700.0).per_h(spot()) == after
    assert after is not None and after > 0.5


def test_one_that_could_not_be_given_back_for_months_is_forgotten_before_it_goes() -> None:
    lives = Lives(list)
    stuck = rental("m", interrupted_at=500.0, state=RentalState.NEEDS_ATTENTION)
    lives.hazards({"m": stuck}, 600.0)
    assert not lives.hazards({"m": stuck}, 600.0 + 2 * FORGOTTEN_S).pools
    assert not lives.hazards({}, 700.0 + 2 * FORGOTTEN_S).pools


def test_while_nothing_happens_the_same_is_told_and_a_little_later_what_has_faded() -> None:
    lives = Lives(lambda: [rental("m", interrupted_at=0.0, ended_at=0.0)])
    first = lives.hazards({}, 0.0)
    assert lives.hazards({}, ANEW_EVERY_S / 2) is first
    later = lives.hazards({}, 3 * HOUR_S)
    assert (later.per_h(spot()) or 0.0) < (first.per_h(spot()) or 0.0)


def test_offers_carry_what_was_learned_and_change_only_with_it() -> None:
    offers, dear = Offers({}, 60.0), MicroUsd(4_000_000)
    dearer = spot("b").but(price_usd_h=dear, cap_usd_h=dear)
    offers.came(Offered("cloud", (spot("a"), dearer)))
    before = offers.open(0.0)
    offers.learn(learned([life(0.0, HOUR_S, taken=True)], HOUR_S))
    after = {one.zone: one.hazard_per_h for one in offers.open(1.0)}
    assert after["a"] is not None and after["a"] > 0.5
    assert offers.open(2.0) is offers.open(3.0)
    offers.came(Offered("cloud", (spot("a"),)))
    assert [one.hazard_per_h for one in offers.open(4.0)] == [after["a"]]
    offers.learn(Hazards())
    assert [one.hazard_per_h for one in offers.open(5.0)] == [before[0].hazard_per_h]
