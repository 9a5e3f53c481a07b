"""Prices that cannot be right: each rule, and that it leaves the others alone."""

from collections.abc import Mapping

import pytest
from price_lists import DAY_S, NOW, a_listing, a_price, a_shape

from cloudwhale.model.units import MicroUsd
from cloudwhale.planning.plausible import DROPPED, FLAGGED, plausible, possible
from cloudwhale.spi.prices import Listing, Price

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


# -- zone by zone ------------------------------------------------------------------------------


def in_zones(**usd_h: float) -> Price:
    zones = tuple((name, MicroUsd(round(price * 1e6))) for name, price in usd_h.items())
    return a_price(min(usd_h.values()), zones=zones)


def test_of_zones_with_prices_of_their_own_only_the_absurd_ones_go() -> None:
    listing = a_listing(spot=in_zones(a=0.0, b=0.4, c=5000.0, d=0.3, e=1.2, f=0.05))
    found = possible([listing])
    assert found.counts == {
        "zero": 1, "out-of-bounds": 1, "spot-dearer": 1, "spot-too-cheap": 1,
    }  # fmt: skip
    assert found.listings[0].spot == in_zones(b=0.4, d=0.3)


def test_a_market_of_nothing_but_absurd_zones_has_no_price() -> None:
    [one] = possible([a_listing(spot=in_zones(a=0.0, b=9999.0))]).listings
    assert one.spot is None


def test_a_zone_far_below_the_other_regions_goes_alone() -> None:
    near = [a_listing(region=f"r{n}", on_demand=None, spot=10.0) for n in range(3)]
    off = a_listing(region="off", on_demand=None, spot=in_zones(a=1.9, b=9.0))
    kept, counts = judged(*near, off)
    assert counts == {"far-below": 1}
    assert kept[-1].spot == in_zones(b=9.0)


def test_a_zone_far_above_the_other_regions_is_pointed_at() -> None:
    near = [a_listing(region=f"r{n}", on_demand=None, spot=1.0) for n in range(3)]
    off = a_listing(region="off", on_demand=None, spot=in_zones(a=1.0, b=5.1))
    kept, counts = judged(*near, off)
    assert (kept[-1], counts) == (off, {"far-above": 1})


# -- beside the same GPU -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spot_usd_h", "estimated", "is_kept"),
    [(1.19, True, False), (1.2, True, True), (1.19, False, True)],
)
def test_an_estimate_below_what_the_gpu_costs_anywhere_is_dropped(
    spot_usd_h: float, estimated: bool, is_kept: bool
) -> None:
    eight = a_shape("g5.48xlarge", gpus=8)
    listings = (
        a_listing("g5.xlarge", on_demand=1.0, spot=None),
        a_listing(shape=eight, on_demand=12.0, spot=a_price(spot_usd_h, estimated=estimated)),
    )
    kept, counts = judged(*listings)
    assert counts == ({} if is_kept else {"gpu-too-cheap": 1})
    assert (kept[1].spot is not None) is is_kept


def test_an_estimate_of_a_machine_without_gpus_is_beside_no_gpu() -> None:
    plain = a_listing(shape=a_shape("m7i.large", gpu="", gpus=0), spot=a_price(0.1, estimated=True))
    assert judged(plain) == ((plain,), {})
