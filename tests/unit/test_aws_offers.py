"""EC2's offers: today's prices, zones and quotas over the catalogue; unknown stays unknown."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from aws_calls import FakeCalls, refused

from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale_providers.aws.offers import LiveOffers

NOW = 1_800_000_000.0
ONE_GPU = "g5.xlarge"
CPUS = "m6i.xlarge"


def an_offer(
    zone: str = "us-east-1a",
    type_name: str = ONE_GPU,
    market: Any = "spot",
    price: int | None = 500_000,
    **fields: Any,
) -> Offer:
    return Offer(
        id=f"aws/{zone}/{type_name}/{market}",
        provider="aws",
        region=zone.rstrip("abcdef"),
        zone=zone,
        market=market,
        facts=Facts(cpu=4.0, memory_gib=14.0, disk_gib=120.0),
        price_usd_h=None if price is None else MicroUsd(price),
        cap_usd_h=MicroUsd(1_006_000),
        boot_s=180.0,
        type=type_name,
        quota_units=4.0,
        hazard_per_h=0.05 if market == "spot" else 0.0,
        estimated=market == "spot",
        source="spotinfo",
        priced_at=NOW - 1e6,
        **fields,
    )


CATALOGUE = (
    an_offer("us-east-1a"),
    an_offer("us-east-1b"),
    an_offer("us-east-1a", market="on-demand", price=1_006_000),
    an_offer("us-east-1b", market="on-demand", price=1_006_000),
    an_offer("eu-west-1a"),
    an_offer("eu-west-1a", market="on-demand", price=1_120_000),
)


def a_row(zone: str, price: str, type_name: str = ONE_GPU, minutes_ago: int = 30) -> dict[str, Any]:
    return {
        "InstanceType": type_name,
        "AvailabilityZone": zone,
        "SpotPrice": price,
        "Timestamp": datetime.fromtimestamp(NOW - 60 * minutes_ago, UTC),
    }


def in_zones(*names: str, type_name: str = ONE_GPU) -> dict[str, Any]:
    return {"InstanceTypeOfferings": [{"InstanceType": type_name, "Location": n} for n in names]}


@pytest.fixture
def aws() -> FakeCalls:
    """Two regions: one with three zones and prices, one in which nothing is said."""
    calls = FakeCalls()
    regions = [{"RegionName": name} for name in ("us-east-1", "eu-west-1")]
    calls.says("describe_regions", {"Regions": regions})

    def offerings(region: str, words: Mapping[str, Any]) -> dict[str, Any]:
        if region == "us-east-1":
            return in_zones("us-east-1a", "us-east-1b", "us-east-1c")
        return in_zones("eu-west-1a")

    def history(region: str, words: Mapping[str, Any]) -> dict[str, Any]:
        if region == "us-east-1":
            return {"SpotPriceHistory": [a_row("us-east-1a", "0.41"), a_row("us-east-1b", "0.43")]}
        return {"SpotPriceHistory": [a_row("eu-west-1a", "0.52")]}

    calls.says("describe_instance_type_offerings", offerings)
    calls.says("describe_spot_price_history", history)
    calls.says("describe_instances", {"Reservations": []})
    calls.says("get_service_quota", {"Quota": {"Value": 64.0}})
    return calls


def offers_of(
    aws: FakeCalls, regions: Sequence[str] = ("us-east-1",), at: float = NOW
) -> dict[str, Offer]:
    return {one.id: one for one in LiveOffers(aws, lambda now: CATALOGUE, regions).offers(at)}


def test_a_spot_price_is_that_of_its_own_zone(aws: FakeCalls) -> None:
    found = offers_of(aws)
    assert found["aws/us-east-1a/g5.xlarge/spot"].price_usd_h == 410_000
    assert found["aws/us-east-1b/g5.xlarge/spot"].price_usd_h == 430_000
    assert not found["aws/us-east-1a/g5.xlarge/spot"].estimated


def test_the_newest_price_of_a_zone_holds(aws: FakeCalls) -> None:
    rows = [a_row("us-east-1a", "0.40", minutes_ago=9), a_row("us-east-1a", "0.45", minutes_ago=3)]
    aws.says("describe_spot_price_history", {"SpotPriceHistory": rows})
    assert offers_of(aws)["aws/us-east-1a/g5.xlarge/spot"].price_usd_h == 450_000


def test_a_zone_without_a_spot_price_is_not_guessed(aws: FakeCalls) -> None:
    found = offers_of(aws)
    assert found["aws/us-east-1c/g5.xlarge/spot"].price_usd_h is None


def test_a_zone_that_the_catalogue_does_not_name_is_offered_on_demand(aws: FakeCalls) -> None:
    found = offers_of(aws)["aws/us-east-1c/g5.xlarge/on-demand"]
    assert (found.zone, found.price_usd_h) == ("us-east-1c", 1_006_000)


def test_a_type_that_no_zone_has_is_not_offered(aws: FakeCalls) -> None:
    aws.says("describe_instance_type_offerings", in_zones("us-east-1a", type_name=CPUS))
    assert offers_of(aws) == {}


def test_local_zones_are_no_zones_of_ours(aws: FakeCalls) -> None:
    places = in_zones("us-east-1a", "us-east-1-bos-1a", "us-east-1-wl1-bos-wlz-1")
    aws.says("describe_instance_type_offerings", places)
    assert {one.zone for one in offers_of(aws).values()} == {"us-east-1a"}


def test_prices_come_in_pages(aws: FakeCalls) -> None:
    pages: Mapping[str, dict[str, Any]] = {
        "": {"SpotPriceHistory": [a_row("us-east-1a", "0.41")], "NextToken": "2"},
        "2": {"SpotPriceHistory": [a_row("us-east-1b", "0.43")], "NextToken": ""},
    }
    aws.says("describe_spot_price_history", lambda region, words: pages[words.get("NextToken", "")])
    assert offers_of(aws)["aws/us-east-1b/g5.xlarge/spot"].price_usd_h == 430_000


def test_a_spot_price_above_what_we_think_bounds_it_leaves_the_bound_unknown(
    aws: FakeCalls,
) -> None:
    aws.says("describe_spot_price_history", {"SpotPriceHistory": [a_row("us-east-1a", "1.10")]})
    found = offers_of(aws)["aws/us-east-1a/g5.xlarge/spot"]
    assert (found.price_usd_h, found.cap_usd_h) == (1_100_000, None)


def test_the_hazard_stays_what_the_catalogue_says(aws: FakeCalls) -> None:
    assert offers_of(aws)["aws/us-east-1a/g5.xlarge/spot"].hazard_per_h == 0.05


def test_what_instances_use_is_not_left_of_a_quota(aws: FakeCalls) -> None:
    one = {"InstanceType": ONE_GPU, "State": {"Name": "running"}, "InstanceLifecycle": "spot"}
    aws.says("describe_instances", {"Reservations": [{"Instances": [one, one]}]})
    found = offers_of(aws)
    assert found["aws/us-east-1a/g5.xlarge/spot"].quota_left == 56.0
    assert found["aws/us-east-1a/g5.xlarge/on-demand"].quota_left == 64.0


def test_a_quota_that_cannot_be_read_is_unknown(aws: FakeCalls) -> None:
    aws.says("get_service_quota", refused("AccessDeniedException"))
    assert offers_of(aws)["aws/us-east-1a/g5.xlarge/spot"].quota_left is None


def test_a_region_that_is_not_enabled_is_not_offered(aws: FakeCalls) -> None:
    aws.says("describe_regions", {"Regions": [{"RegionName": "us-east-1"}]})
    assert {one.region for one in offers_of(aws, ()).values()} == {"us-east-1"}
    assert {region for region, _, _ in aws.asked} == {"us-east-1"}


def test_a_region_that_is_not_configured_is_not_asked(aws: FakeCalls) -> None:
    assert {one.region for one in offers_of(aws, ("eu-*",)).values()} == {"eu-west-1"}
    assert "describe_spot_price_history" not in [
        verb for region, verb, _ in aws.asked if region == "us-east-1"
    ]


def test_whoever_may_not_list_regions_has_all_that_are_configured(aws: FakeCalls) -> None:
    aws.says("describe_regions", refused("UnauthorizedOperation"))
    live = LiveOffers(aws, lambda now: CATALOGUE, ())
    assert {one.region for one in live.offers(NOW)} == {"us-east-1", "eu-west-1"}
    assert "ec2:" in live.rows()[0].says + live.rows()[0].remedy


def test_a_region_that_turns_out_not_to_be_enabled_is_not_offered(aws: FakeCalls) -> None:
    aws.says("describe_regions", refused("UnauthorizedOperation"))

    def offerings(region: str, words: Mapping[str, Any]) -> Any:
        return refused("OptInRequired") if region == "eu-west-1" else in_zones("us-east-1a")

    for verb in ("describe_spot_price_history", "describe_instances"):
        aws.says(verb, lambda region, words: refused("OptInRequired"))
    aws.says("describe_instance_type_offerings", offerings)
    live = LiveOffers(aws, lambda now: CATALOGUE, ("eu-*",))
    assert live.offers(NOW) == ()
    assert all("enable-region" in row.remedy for row in live.rows()[1:])


@pytest.mark.parametrize("code", ["AuthFailure", "ExpiredToken", "InvalidClientTokenId"])
def test_wrong_credentials_are_said_rather_than_old_prices(aws: FakeCalls, code: str) -> None:
    aws.says("describe_regions", refused(code))
    with pytest.raises(Denied):
        offers_of(aws)


def test_without_a_network_nothing_is_offered_as_new(aws: FakeCalls) -> None:
    aws.says("describe_regions", Unreachable("no route"))
    with pytest.raises(Unreachable):
        offers_of(aws)


def test_a_price_that_has_moved_is_asked_for_at_once(aws: FakeCalls) -> None:
    live = LiveOffers(aws, lambda now: CATALOGUE, ("us-east-1",))
    live.offers(NOW)
    moved = {"SpotPriceHistory": [a_row("us-east-1a", "0.82")]}
    aws.says("describe_spot_price_history", moved)
    assert _price(live.offers(NOW + 60)) == 410_000
    live.forget_prices("us-east-1")
    live.forget_prices("nowhere")
    assert _price(live.offers(NOW + 61)) == 820_000


def _price(offers: Sequence[Offer]) -> int | None:
    (found,) = [one for one in offers if one.id == "aws/us-east-1a/g5.xlarge/spot"]
    return found.price_usd_h


def test_prices_are_kept_for_five_minutes_and_zones_for_an_hour(aws: FakeCalls) -> None:
    live = LiveOffers(aws, lambda now: CATALOGUE, ("us-east-1",))
    for minute in range(11):
        live.offers(NOW + 60 * minute)
    assert aws.counted("describe_spot_price_history") == 3
    assert aws.counted("describe_instance_type_offerings") == 1
    assert aws.counted("get_service_quota") == 2  # spot and on-demand
    assert aws.counted("describe_instances") == 11
    assert aws.counted("describe_regions") == 1


def test_a_region_that_falls_silent_keeps_its_prices_and_is_told_of(aws: FakeCalls) -> None:
    live = LiveOffers(aws, lambda now: CATALOGUE, ("us-east-1",))
    before = {one.id: one.price_usd_h for one in live.offers(NOW)}
    aws.says("describe_spot_price_history", Unreachable("no answer"))
    after = {one.id: one.price_usd_h for one in live.offers(NOW + 600)}
    assert after == before
    assert [row.state for row in live.rows()] == ["warning"]
    assert "spot prices of us-east-1" in live.rows()[0].says


def test_a_row_goes_when_the_region_answers_again(aws: FakeCalls) -> None:
    live = LiveOffers(aws, lambda now: CATALOGUE, ("us-east-1",))
    aws.says("describe_instances", Unreachable("no answer"))
    live.offers(NOW)
    assert live.rows()
    aws.says("describe_instances", {"Reservations": []})
    live.offers(NOW + 60)
    assert live.rows() == ()


def test_one_silent_region_does_not_silence_the_others(aws: FakeCalls) -> None:
    def history(region: str, words: Mapping[str, Any]) -> Any:
        return Unreachable("no answer") if region == "eu-west-1" else {"SpotPriceHistory": []}

    aws.says("describe_spot_price_history", history)
    found = offers_of(aws, ())
    assert found["aws/eu-west-1a/g5.xlarge/spot"].price_usd_h == 500_000  # as listed
    assert found["aws/us-east-1a/g5.xlarge/spot"].price_usd_h is None  # no price was said


def test_what_is_no_price_is_no_price(aws: FakeCalls) -> None:
    aws.says("describe_spot_price_history", {"SpotPriceHistory": [a_row("us-east-1a", "free")]})
    assert offers_of(aws)["aws/us-east-1a/g5.xlarge/spot"].price_usd_h == 500_000


def test_an_hour_of_a_machine_is_priced_before_anything_was_offered(aws: FakeCalls) -> None:
    live = LiveOffers(aws, lambda now: CATALOGUE, ())
    assert live.usd_h("us-east-1a", ONE_GPU, "on-demand", NOW) == 1_006_000
    assert live.usd_h("us-east-1a", "x9.huge", "spot", NOW) is None
