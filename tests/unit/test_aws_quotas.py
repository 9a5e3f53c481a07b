"""EC2's quotas: which is whose, what is used, and what is left when nobody says."""

from typing import Any

import pytest
from aws_calls import FakeCalls, refused

from cloudwhale.spi.errors import Unreachable
from cloudwhale.spi.prices import Market, Shape
from cloudwhale_providers.aws.quotas import QUOTAS, Limit, Limits, left, used
from cloudwhale_providers.prices.aws import AwsPrices, quota_group

NOW = 1_800_000_000.0
G_SPOT: tuple[Market, str] = ("spot", "G")


def an_instance(type_name: str = "g5.xlarge", **fields: Any) -> dict[str, Any]:
    return {"InstanceType": type_name, "State": {"Name": "running"}, **fields}


def test_every_group_that_ships_has_a_quota_but_p6_on_spot() -> None:
    groups: set[tuple[Market, str]] = {
        (market, quota_group(one.shape.type, market))
        for one in AwsPrices().shipped()
        for market in ("spot", "on-demand")
    }
    assert {("spot", "G"), ("on-demand", "P"), ("spot", "P5")} <= groups
    assert groups - set(QUOTAS) == {("spot", "P6")}


@pytest.mark.parametrize("market", ["spot", "on-demand"])
def test_offers_and_quotas_call_a_quota_alike(market: Market) -> None:
    shape = Shape("aws", "g5.xlarge", cpu=4.0)
    terms = AwsPrices().terms(shape, "us-east-1", market)
    assert terms.quota == f"aws/us-east-1/{market}/{quota_group('g5.xlarge', market)}"


def test_codes_are_all_different() -> None:
    assert len({quota.code for quota in QUOTAS.values()}) == len(QUOTAS)


def test_spot_and_on_demand_are_counted_apart() -> None:
    found = used([an_instance(), an_instance(InstanceLifecycle="spot")], {"g5.xlarge": 4.0})
    assert (found.of("spot", "G"), found.of("on-demand", "G")) == (4.0, 4.0)


def test_machines_that_are_going_or_were_paid_ahead_do_not_count() -> None:
    gone = an_instance(State={"Name": "shutting-down"})
    block = an_instance(InstanceLifecycle="capacity-block")
    assert used([gone, block], {"g5.xlarge": 4.0}).of("on-demand", "G") == 0.0


def test_a_type_that_the_catalogue_lacks_counts_by_its_cores() -> None:
    one = an_instance("g3.8xlarge", CpuOptions={"CoreCount": 16, "ThreadsPerCore": 2})
    assert used([one], {}).of("on-demand", "G") == 32.0


def test_a_machine_whose_size_nobody_says_leaves_its_group_unknown() -> None:
    found = used([an_instance("g9.huge"), an_instance("m6i.large")], {"m6i.large": 2.0})
    assert found.of("on-demand", "G") is None
    assert found.of("on-demand", "standard") == 2.0


def test_less_than_nothing_is_never_left() -> None:
    assert left(Limit(8.0), 32.0) == 0.0
    assert left(Limit(None, "unknown"), 0.0) is None
    assert left(Limit(8.0), None) is None


def test_a_quota_that_was_never_changed_is_aws_default() -> None:
    aws = FakeCalls()
    aws.says("get_service_quota", refused("NoSuchResourceException"))
    aws.says("get_aws_default_service_quota", {"Quota": {"Value": 0.0}})
    assert Limits(aws).of("us-east-1", [G_SPOT], NOW) == {G_SPOT: Limit(0.0)}


@pytest.mark.parametrize(
    ("code", "asked_again"), [("AccessDeniedException", 1), ("TooManyRequestsException", 2)]
)
def test_a_refusal_leaves_quotas_unknown_and_is_not_repeated_for_each(
    code: str, asked_again: int
) -> None:
    aws = FakeCalls()
    aws.says("get_service_quota", refused(code))
    limits = Limits(aws)
    groups: list[tuple[Market, str]] = [("spot", "G"), ("spot", "P"), ("on-demand", "G")]
    found = limits.of("us-east-1", groups, NOW)
    assert {one.vcpus for one in found.values()} == {None}
    assert aws.counted("get_service_quota") == 1
    limits.of("us-east-1", groups, NOW + 60)
    assert aws.counted("get_service_quota") == asked_again


def test_a_limit_that_was_known_is_kept_when_aws_falls_silent() -> None:
    aws = FakeCalls()
    aws.says("get_service_quota", {"Quota": {"Value": 96.0}})
    limits = Limits(aws)
    limits.of("us-east-1", [G_SPOT], NOW)
    aws.says("get_service_quota", Unreachable("no answer"))
    assert limits.of("us-east-1", [G_SPOT], NOW + 7200)[G_SPOT].vcpus == 96.0
    aws.says("get_service_quota", {"Quota": {"Value": 128.0}})
    assert limits.of("us-east-1", [G_SPOT], NOW + 7260)[G_SPOT].vcpus == 128.0


def test_a_quota_without_a_known_code_is_not_asked_for() -> None:
    aws = FakeCalls()
    found = Limits(aws).of("us-east-1", [("spot", "P6")], NOW)
    assert found[("spot", "P6")].vcpus is None
    assert aws.asked == []
