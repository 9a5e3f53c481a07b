"""What every cloud's price list must do; each that is installed passes the same suite."""

import pytest
from price_lists import NOW

from cloudwhale.control.catalogue import price_lists
from cloudwhale.control.catalogue.listed import offers_of
from cloudwhale.model.gpus import MODELS
from cloudwhale.model.offer import Offer
from cloudwhale.planning.plausible import plausible, possible
from cloudwhale.spi.listings import Origin, read, written
from cloudwhale.spi.prices import Listing, Market, PriceList

CLOUDS = price_lists()
MARKETS: tuple[Market, ...] = ("on-demand", "spot")

both = pytest.mark.parametrize("name", sorted(CLOUDS))


def listings(name: str) -> list[Listing]:
    return list(CLOUDS[name].shipped())


def test_both_clouds_are_installed() -> None:
    assert sorted(CLOUDS) == ["aws", "gcp"]


@both
def test_what_ships_is_of_the_cloud_and_says_each_thing_once(name: str) -> None:
    found = [(one.shape.provider, one.shape.type, one.region) for one in listings(name)]
    assert len(found) > 100
    assert len(set(found)) == len(found)
    assert {provider for provider, _, _ in found} == {name}


@both
def test_what_ships_lies_in_six_regions_with_gpus_and_without(name: str) -> None:
    found = listings(name)
    assert len({one.region for one in found}) == 6
    models = {one.shape.gpu for one in found}
    assert {"", "L4", "A100-40GB", "A100-80GB", "H100-80GB", "RTXPRO6000"} <= models
    assert models - {""} <= MODELS.keys()


@both
def test_every_price_that_ships_has_a_day_and_a_source(name: str) -> None:
    prices = [price for one in listings(name) for m in MARKETS if (price := one.price(m))]
    assert all(price.source and 1_700_000_000 < price.at < NOW for price in prices)
    assert all(isinstance(price.usd_h, int) and price.usd_h > 0 for price in prices)


@both
def test_no_rule_finds_anything_wrong_with_what_ships(name: str) -> None:
    assert possible(listings(name)).counts == {}
    assert plausible(listings(name), NOW, 1e12).counts == {}


@both
def test_zones_lie_in_their_region(name: str) -> None:
    for one in listings(name):
        assert all(zone.startswith(one.region) for zone in one.zones)


@both
def test_terms_are_sane_for_every_machine(name: str) -> None:
    for one in listings(name):
        for market in MARKETS:
            terms = CLOUDS[name].terms(one.shape, one.region, market)
            assert 0 < terms.boot_s <= 900
            assert terms.notice_s == 0 or market == "spot"
            assert (terms.billing_step_s, terms.billing_least_s) == (1.0, 60.0)
            assert 0 < terms.extras_usd_h < 200_000
            assert 0 < terms.memory_share <= 1
            assert terms.quota.startswith(f"{name}/{one.region}/{market}/")
            assert terms.quota_units >= 1


@both
def test_a_spot_lease_is_bounded_by_the_on_demand_price(name: str) -> None:
    cloud: PriceList = CLOUDS[name]
    for one in listings(name):
        cap = cloud.cap(one, "spot")
        assert one.on_demand is not None and cap == one.on_demand.usd_h
        assert one.spot is None or one.spot.usd_h < cap
    assert cloud.cap(one._replace(on_demand=None), "spot") is None


@both
def test_spot_machines_have_a_hazard(name: str) -> None:
    spot = [one for one in listings(name) if one.spot is not None]
    assert all(one.hazard_per_h is None or 0 < one.hazard_per_h < 0.1 for one in spot)
    assert sum(one.hazard_per_h is None for one in spot) == 0


@both
def test_all_of_it_becomes_offers_that_are_valid_and_differ(name: str) -> None:
    offers = list(offers_of(listings(name), CLOUDS))
    assert len({offer.id for offer in offers}) == len(offers) > 300
    for offer in offers[::37]:
        assert Offer.model_validate(offer.model_dump()) == offer
        assert offer.facts.cpu > 0 and offer.facts.disk_gib >= 100


@both
def test_it_can_be_written_and_read_again(name: str) -> None:
    found = listings(name)
    assert list(read(list(written(found)), Origin("x.csv", 0.0, ""))) == found


@both
def test_regions_of_other_clouds_are_passed_over(name: str) -> None:
    reading = CLOUDS[name].read(["nobody/anywhere"], NOW, lambda words: None)
    assert (list(reading.listings), reading.regions) == ([], frozenset())
