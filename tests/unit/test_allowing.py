"""What the settings leave of all offers."""

from pathlib import Path

import pytest
from price_lists import FakePrices, a_listing, a_shape

from cloudwhale.control.catalogue.listed import offers_of
from cloudwhale.control.supply import limits_of
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.allowing import Limits, allowed, unmatched
from cloudwhale.settings import Settings

LISTINGS = [
    a_listing("g5.xlarge", "us-east-1"),
    a_listing("p5.48xlarge", "us-east-1", 98.0, 40.0),
    a_listing("g2-standard-4", "us-east1", 0.7, 0.3, shape=a_shape("g2-standard-4", "gcp")),
]
OFFERS = tuple(offers_of(LISTINGS, {"aws": FakePrices([]), "gcp": FakePrices([])}))


def kept(limits: Limits) -> set[str]:
    return {offer.type for offer in allowed(OFFERS, limits).offers}


def test_without_limits_everything_is_allowed() -> None:
    assert allowed(OFFERS, Limits()).offers == OFFERS
    assert allowed(OFFERS, Limits()).counts == {}


@pytest.mark.parametrize(
    ("regions", "types"),
    [
        (("us-east-1",), {"g5.xlarge", "p5.48xlarge"}),
        (("us-*",), {"g5.xlarge", "p5.48xlarge", "g2-standard-4"}),
        (("gcp/*",), {"g2-standard-4"}),
        (("aws/us-east1",), set()),
        (("eu-*", "us-east1"), {"g2-standard-4"}),
    ],
)
def test_regions_are_named_or_patterns(regions: tuple[str, ...], types: set[str]) -> None:
    assert kept(Limits(regions=regions)) == types


@pytest.mark.parametrize(
    ("never", "types"),
    [
        (("p5*",), {"g5.xlarge", "g2-standard-4"}),
        (("gcp/g*",), {"g5.xlarge", "p5.48xlarge"}),
        (("g5.xlarge", "g2-*"), {"p5.48xlarge"}),
        (("*",), set()),
    ],
)
def test_types_that_are_never_rented_are_named_or_patterns(
    never: tuple[str, ...], types: set[str]
) -> None:
    assert kept(Limits(never=never)) == types


def test_a_price_counts_with_disk_and_address() -> None:
    # FakePrices takes a cent an hour for them.
    assert "g5.xlarge" not in {
        one.type for one in allowed(OFFERS, Limits(max_price_usd_h=micro_usd("0.409"))).offers
    }
    assert "g5.xlarge" in kept(Limits(max_price_usd_h=micro_usd("0.41")))


def test_an_unknown_price_is_above_every_limit() -> None:
    unknown = OFFERS[0].but(price_usd_h=None)
    assert allowed([unknown], Limits(max_price_usd_h=micro_usd(1000))).counts == {
        "max_price_usd_h": 1
    }


def test_each_offer_is_counted_for_the_first_limit_that_keeps_it_out() -> None:
    limits = Limits(regions=("us-east-1",), never=("g*",), max_price_usd_h=micro_usd(1))
    found = allowed(OFFERS, limits)
    assert found.offers == ()
    assert found.counts == {"regions": 2, "never": 2, "max_price_usd_h": 2}


def test_an_offer_without_a_type_goes_by_its_id() -> None:
    plain: Offer = OFFERS[0].but(id="l4", type="")
    assert allowed([plain], Limits(never=("l4",))).offers == ()


def test_patterns_that_name_nothing_are_found() -> None:
    limits = Limits(regions=("us-*", "AWS/us-*", "mars"), never=("p5*", "nonsense"))
    offers = [OFFERS[0].but(provider="aws", region="us-east-1", type="p5.48xlarge")]
    assert unmatched(offers, limits) == {"regions": ("AWS/us-*", "mars"), "never": ("nonsense",)}
    assert unmatched(offers, Limits(regions=("us-*",))) == {}


def test_settings_become_limits(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, regions=("us-*",), never=("p5*",), max_price_usd_h=12.5)
    assert limits_of(settings) == Limits(
        regions=("us-*",), never=("p5*",), max_price_usd_h=micro_usd("12.5")
    )
    assert limits_of(Settings(home=tmp_path)) == Limits()
