"""Launches that the sandbox's EC2 refuses: capacity, quota, price, and words that are wrong."""

from collections.abc import Iterator
from typing import Any

import pytest
from boxed import (
    IMAGE,
    REGION,
    SCARCE,
    TYPE,
    Box,
    a_box,
    codes,
    fleet_words,
    made,
)

A, B, D, E = (f"{REGION}{letter}" for letter in "abde")


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with a_box(SCARCE) as box:
        box.template("plain")
        yield box


def test_a_fleet_goes_on_to_the_next_zone_and_says_why(box: Box) -> None:
    answer = box.fleet("plain", ("g5.2xlarge", A), ("g5.2xlarge", B))
    assert codes(answer) == [(A, "InsufficientInstanceCapacity")]
    assert box.described(made(answer)[0])["Placement"]["AvailabilityZone"] == B


def test_a_fleet_takes_the_cheapest_offer_first(box: Box) -> None:
    answer = box.fleet("plain", ("g5.8xlarge", A), (TYPE, A))
    assert [row["InstanceType"] for row in answer["Instances"]] == [TYPE]
    words = fleet_words(
        "plain",
        [
            {"InstanceType": TYPE, "AvailabilityZone": A, "Priority": 2.0},
            {"InstanceType": "g5.8xlarge", "AvailabilityZone": A, "Priority": 1.0},
        ],
        "on-demand",
        OnDemandOptions={"AllocationStrategy": "prioritized"},
    )
    answer = box.ec2("create_fleet", **words)
    assert [row["InstanceType"] for row in answer["Instances"]] == ["g5.8xlarge"]


def test_capacity_is_freed_when_a_machine_ends(box: Box) -> None:
    offer = ("g5.4xlarge", A)
    first = made(box.fleet("plain", offer, market="on-demand"))[0]
    assert made(box.fleet("plain", offer, market="on-demand"))
    answer = box.fleet("plain", offer, market="on-demand")
    assert codes(answer) == [(A, "InsufficientInstanceCapacity")]
    box.ec2("terminate_instances", InstanceIds=[first])
    assert made(box.fleet("plain", offer, market="on-demand"))


def test_capacity_may_be_gone_for_good_when_a_machine_ends(box: Box) -> None:
    offer = ("m7i.large", A)
    first = made(box.fleet("plain", offer, market="on-demand"))[0]
    box.ec2("terminate_instances", InstanceIds=[first])
    answer = box.fleet("plain", offer, market="on-demand")
    assert codes(answer) == [(A, "InsufficientInstanceCapacity")]


def test_a_price_above_the_cap_is_refused(box: Box) -> None:
    words = fleet_words(
        "plain", [{"InstanceType": TYPE, "AvailabilityZone": A, "MaxPrice": "0.01"}]
    )
    assert codes(box.ec2("create_fleet", **words)) == [(A, "SpotMaxPriceTooLow")]


def test_a_type_that_a_zone_lacks_is_unsupported(box: Box) -> None:
    answer = box.fleet("plain", (TYPE, E), ("g6.xlarge", A))
    assert sorted(codes(answer)) == [(A, "InsufficientFreeAddressesInSubnet"), (E, "Unsupported")]


@pytest.mark.parametrize(
    ("market", "code"),
    [("spot", "MaxSpotInstanceCountExceeded"), ("on-demand", "VcpuLimitExceeded")],
)
def test_a_quota_is_counted_in_vcpus_of_what_runs(box: Box, market: str, code: str) -> None:
    offer = ("c7i.2xlarge", B)
    first = made(box.fleet("plain", offer, market=market))
    assert codes(box.fleet("plain", offer, market=market)) == [(B, code)]
    box.ec2("terminate_instances", InstanceIds=first)
    assert made(box.fleet("plain", offer, market=market))


def test_run_instances_is_refused_with_the_code_itself(box: Box) -> None:
    words: dict[str, Any] = {
        "ImageId": IMAGE, "InstanceType": "g5.2xlarge", "MinCount": 1, "MaxCount": 1,
        "Placement": {"AvailabilityZone": A}, "InstanceMarketOptions": {"MarketType": "spot"},
    }  # fmt: skip
    assert box.refusal("ec2", "run_instances", **words) == "InsufficientInstanceCapacity"
    many: dict[str, Any] = {**words, "InstanceType": "c7i.2xlarge", "MinCount": 9, "MaxCount": 9}
    assert box.refusal("ec2", "run_instances", **many) == "MaxSpotInstanceCountExceeded"


def test_a_dry_run_makes_nothing(box: Box) -> None:
    before = len(box.endpoint.instances())
    words: dict[str, Any] = {
        "ImageId": IMAGE,
        "InstanceType": TYPE,
        "MinCount": 1,
        "MaxCount": 1,
        "DryRun": True,
    }
    assert box.refusal("ec2", "run_instances", **words) == "DryRunOperation"
    fleet = fleet_words("plain", [{"InstanceType": TYPE}], DryRun=True)
    assert box.refusal("ec2", "create_fleet", **fleet) == "DryRunOperation"
    assert len(box.endpoint.instances()) == before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"InstanceType": "g5.nothing"}, "InvalidParameterValue"),
        ({"SecurityGroupIds": ["sg-0"]}, "InvalidGroup.NotFound"),
        ({"SubnetId": "subnet-0"}, "InvalidSubnetID.NotFound"),
        ({"UserData": "x" * 16_385}, "InvalidUserData.Malformed"),
        ({"IamInstanceProfile": {"Name": "nobody"}}, "InvalidParameterValue"),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 8}}]},
            "InvalidBlockDeviceMapping",
        ),
        (
            {"LaunchTemplate": {"LaunchTemplateName": "nothing"}},
            "InvalidLaunchTemplateName.NotFoundException",
        ),
        ({"MinCount": 2}, "InvalidParameterValue"),
    ],
)
def test_a_launch_that_names_something_wrong_is_refused(
    box: Box, words: dict[str, object], code: str
) -> None:
    asked: dict[str, Any] = {
        "ImageId": IMAGE,
        "InstanceType": TYPE,
        "MinCount": 1,
        "MaxCount": 1,
        **words,
    }
    before = len(box.endpoint.instances())
    assert box.refusal("ec2", "run_instances", **asked) == code
    assert len(box.endpoint.instances()) == before


def test_a_word_that_ec2_does_not_know_is_refused(box: Box) -> None:
    words: dict[str, Any] = {"ImageId": IMAGE, "InstanceType": TYPE, "MinCount": 1, "MaxCount": 1}
    events = box.client("ec2").meta.events

    def colour(request: Any, **_: Any) -> None:
        request.data["Colour"] = "red"

    events.register("before-sign.ec2.RunInstances", colour)
    try:
        assert box.refusal("ec2", "run_instances", **words) == "UnknownParameter"
    finally:
        events.unregister("before-sign.ec2.RunInstances", colour)


def test_machines_do_not_stop_they_end(box: Box) -> None:
    machine = box.run()
    assert box.refusal("ec2", "stop_instances", InstanceIds=[machine]) == "UnsupportedOperation"
    assert box.state(machine) == "running"
