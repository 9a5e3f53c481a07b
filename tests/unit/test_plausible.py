"""Prices that cannot be right: each rule, and that it leaves the others alone."""

from collections.abc import Mapping

import pytest
from price_lists import DAY_S, NOW, a_listing, a_price

from cloudwhale.planning.plausible import DROPPED, FLAGGED, plausible, possible
from cloudwhale.spi.prices import Listing

MAX_AGE_S = 30 * DAY_S


def judged(*listings: Listing) -> tuple[tuple[Listing, ...], Mapping[str, int]]:
    found = plausible(listings, NOW, MAX_AGE_S)
    return found.listings, found.counts


@pytest.mark.parametrize(
    ("on_demand", "spot", "rule"),
    [
        (0.0, 0.4, "zero"),
        (999.0, 0.4, "sentinel"),
        (9999.0, 0.4, "sentinel"),
        (3000.0, 0.4, "out-of-bounds"),
        (0.0005, None, "out-of-bounds"),
        (1.0, 1.0, "spot-dearer"),
        (1.0, 1.5, "spot-dearer"),
        (1.0, 0.05, "spot-too-cheap"),
        (1.0, 0.0, "zero"),
    ],
)
def test_a_price_that_is_wrong_by_itself_is_dropped_and_counted(
    on_demand: float, spot: float | None, rule: str
) -> None:
    found = possible([a_listing(on_demand=on_demand, spot=spot)])
    assert found.counts == {rule: 1}
    bad_market = "spot" if rule.startswith("spot") or on_demand == 1.0 else "on-demand"
    assert all(one.price("spot" if bad_market == "spot" else "on-demand") is None
               for one in found.listings)  # fmt: skip


def test_the_other_price_of_the_listing_stays() -> None:
    [one] = possible([a_listing(on_demand=0.0, spot=0.4)]).listings
    assert one.on_demand is None and one.spot == a_price(0.4)


def test_a_listing_without_any_price_goes() -> None:
    assert possible([a_listing(on_demand=0.0, spot=None)]).listings == ()
    assert possible([a_listing(on_demand=None, spot=None)]).listings == ()


def test_sane_prices_stay_as_they_are() -> None:
    listings = tuple(a_listing(region=f"r{n}", on_demand=1.0 + n / 10) for n in range(5))
    assert possible(listings).listings == listings
    assert judged(*listings) == (listings, {})


def test_a_price_five_times_below_its_neighbours_is_dropped() -> None:
    near = [a_listing(region=f"r{n}", on_demand=10.0, spot=None) for n in range(3)]
    kept, counts = judged(*near, a_listing(region="odd", on_demand=1.9, spot=None))
    assert counts == {"far-below": 1}
    assert [one.region for one in kept] == ["r0", "r1", "r2"]


def test_one_above_them_is_kept_and_pointed_at() -> None:
    near = [a_listing(region=f"r{n}", on_demand=10.0, spot=None) for n in range(3)]
    kept, counts = judged(*near, a_listing(region="odd", on_demand=51.0, spot=None))
    assert counts == {"far-above": 1}
    assert len(kept) == 4


def test_of_two_regions_nobody_can_say_which_one_is_off() -> None:
    near = a_listing(region="r0", on_demand=10.0, spot=None)
    kept, counts = judged(near, a_listing(region="odd", on_demand=0.5, spot=None))
    assert (len(kept), counts) == (2, {})


def test_markets_are_beside_their_own_neighbours() -> None:
    near = [a_listing(region=f"r{n}", on_demand=10.0, spot=1.0) for n in range(4)]
    assert judged(*near) == (tuple(near), {})


@pytest.mark.parametrize(
    ("age_s", "counts"),
    [(0.0, {}), (30 * DAY_S, {}), (31 * DAY_S, {"stale": 1}), (-2 * DAY_S, {"from-the-future": 1})],
)
def test_what_is_old_or_ahead_is_kept_and_counted(age_s: float, counts: Mapping[str, int]) -> None:
    one = a_listing(on_demand=a_price(1.0, at=NOW - age_s), spot=None)
    assert judged(one) == ((one,), counts)


def test_every_rule_says_what_is_wrong_with_its_prices() -> None:
    assert not DROPPED.keys() & FLAGGED.keys()
    assert all(says.startswith(("are ", "cost ")) for says in {**DROPPED, **FLAGGED}.values())
