"""What becomes of the sandbox's instances, prices and schedules as time goes by."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from boxed import NOON, REGION, TYPE, Box, a_box, codes, made

from cloudwhale_providers.sandbox.endpoint import (
    Capacity,
    Hang,
    Interruption,
    PriceFactor,
    Reap,
    Refusal,
    Weather,
    Which,
)

A, B, C = (f"{REGION}{letter}" for letter in "abc")
ROLE = "arn:aws:iam::123456789012:role/cloudwhale-stops"
TARGET = "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances"
TAKEN, UNTIMELY, STILLBORN, STUCK = "g5.2xlarge", "g5.4xlarge", "g5.8xlarge", "g5.16xlarge"
RECALLED = "g5.12xlarge"
WEATHER = Weather(
    boot_s=10.0,
    stopping_s=5.0,
    unseen_s=2.0,
    schedule_late_s=3.0,
    capacity=(Capacity(Which("g6.2xlarge", A), 0, until_s=100_000.0),),
    refusals=(Refusal(Which("g6.4xlarge", A), "Unsupported", since_s=100_000.0),),
    price_factors=(
        PriceFactor(50_000.0, 2.0, Which(TYPE, A)),
        PriceFactor(150_000.0, 0.5, Which(TYPE)),
    ),
    interruptions=(
        Interruption(age_s=100.0, which=Which(TAKEN), nth=1, rebalance_s=30.0),
        Interruption(at_s=400_000.0, which=Which(RECALLED, B), notice_s=60.0),
    ),
    reaps=(
        Reap(age_s=60.0, which=Which(UNTIMELY)),
        Reap(which=Which(STILLBORN), code="Server.InsufficientInstanceCapacity"),
    ),
    hangs=(Hang(Which(STUCK), nth=2),),
)


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with a_box(WEATHER) as box:
        box.template("plain")
        yield box


def spot(box: Box, kind: str, zone: str = A) -> str:
    return made(box.fleet("plain", (kind, zone)))[0]


def words(machine: str, at: float, role: str = ROLE, **more: Any) -> dict[str, Any]:
    """Return a schedule that ends an instance."""
    when = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return {
        "Name": f"end-{machine}",
        "ScheduleExpression": f"at({when})",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "DELETE",
        "Target": {
            "Arn": TARGET, "RoleArn": role, "Input": json.dumps({"InstanceIds": [machine]}),
        },
        **more,
    }  # fmt: skip


# -- states ----------------------------------------------------------------------------------


def test_an_instance_is_not_found_at_first_then_pending_then_running(box: Box) -> None:
    machine = spot(box, TYPE)
    not_found = "InvalidInstanceID.NotFound"
    assert box.refusal("ec2", "describe_instances", InstanceIds=[machine]) == not_found
    assert box.refusal("ec2", "terminate_instances", InstanceIds=[machine]) == not_found
    box.wait(2.0)
    assert box.state(machine) == "pending" and ("started", machine) not in box.heard
    box.wait(8.0)
    assert box.state(machine) == "running" and ("started", machine) in box.heard


def test_an_end_takes_its_time_and_is_listed_for_an_hour(box: Box) -> None:
    machine = spot(box, TYPE)
    box.wait(20.0)
    volume = box.described(machine)["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
    now = datetime.fromtimestamp(box.clock.now(), UTC)
    answer = box.ec2("terminate_instances", InstanceIds=[machine])["TerminatingInstances"][0]
    states = (answer["PreviousState"]["Name"], answer["CurrentState"]["Name"])
    assert states == ("running", "shutting-down")
    told = box.described(machine)
    assert told["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert told["StateTransitionReason"] == f"User initiated ({now:%Y-%m-%d %H:%M:%S} GMT)"
    box.wait(5.0)
    assert box.state(machine) == "terminated" and ("ended", machine) in box.heard
    assert box.refusal("ec2", "describe_volumes", VolumeIds=[volume]) == "InvalidVolume.NotFound"
    box.wait(3599.0)
    assert box.state(machine) == "terminated"
    box.wait(1.0)
    refused = box.refusal("ec2", "describe_instances", InstanceIds=[machine])
    assert refused == "InvalidInstanceID.NotFound"
    assert box.endpoint.instance(machine) is None


def test_ending_twice_is_fine_and_keeps_the_first_reason(box: Box) -> None:
    machine = spot(box, TYPE)
    box.wait(20.0)
    box.endpoint.end(machine)
    ended = box.endpoint.instance(machine)
    box.wait(1.0)
    box.ec2("terminate_instances", InstanceIds=[machine])
    told = box.described(machine)
    assert told["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"
    again = box.endpoint.instance(machine)
    assert ended is not None and again is not None and again.ended_at == ended.ended_at
    assert box.heard.count(("ended", machine)) <= 1
    box.endpoint.end("i-00000000000000000")


def test_times_of_an_instance_are_whole_seconds_as_they_are_listed(box: Box) -> None:
    box.wait(0.7)
    machine = spot(box, TYPE)
    box.wait(30.4)
    box.ec2("terminate_instances", InstanceIds=[machine])
    seen, told = box.endpoint.instance(machine), box.described(machine)
    assert seen is not None and seen.ended_at is not None
    assert told["LaunchTime"].timestamp() == seen.launched_at
    ended = datetime.fromtimestamp(seen.ended_at, UTC)
    assert f"({ended:%Y-%m-%d %H:%M:%S} GMT)" in told["StateTransitionReason"]
    box.wait(0.9)


# -- what befalls them -----------------------------------------------------------------------


def test_a_machine_is_interrupted_with_a_recommendation_and_a_notice(box: Box) -> None:
    machine = spot(box, TAKEN)
    launched = box.endpoint.instance(machine)
    assert launched is not None
    launched_at = launched.launched_at
    box.wait(70.0)
    seen = box.endpoint.instance(machine)
    assert seen is not None and seen.rebalance_at == launched_at + 70.0 and seen.goes_at is None
    box.wait(30.0)
    seen = box.endpoint.instance(machine)
    assert seen is not None and seen.noticed_at == launched_at + 100.0
    assert seen.goes_at == launched_at + 220.0 and box.state(machine) == "running"
    box.wait(120.0)
    told = box.described(machine)
    assert told["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    assert ("ended", machine) in box.heard
    second = spot(box, TAKEN)
    box.wait(400.0)
    assert box.state(second) == "running"


def test_an_interruption_by_hand_gives_its_notice(box: Box) -> None:
    machine = spot(box, TYPE)
    box.wait(20.0)
    box.endpoint.interrupt(machine, notice_s=30.0)
    box.wait(29.0)
    assert box.state(machine) == "running"
    box.wait(1.0)
    assert box.state(machine) == "shutting-down"


def test_a_machine_may_fail_without_a_word_or_never_run(box: Box) -> None:
    failing, stillborn = spot(box, UNTIMELY), spot(box, STILLBORN)
    box.wait(9.0)
    told = box.described(stillborn)
    assert told["State"]["Name"] == "terminated"
    assert told["StateReason"]["Code"] == "Server.InsufficientInstanceCapacity"
    assert ("started", stillborn) not in box.heard
    box.wait(51.0)
    told = box.described(failing)
    assert told["StateReason"]["Code"] == "Server.InternalError"
    assert ("started", failing) in box.heard


def test_the_second_of_some_machines_hangs(box: Box) -> None:
    machines = [spot(box, STUCK) for _ in range(3)]
    box.wait(20.0)
    seen = [box.endpoint.instance(machine) for machine in machines]
    assert [one is not None and one.hangs for one in seen] == [False, True, False]


# -- prices and capacity ---------------------------------------------------------------------


def test_weather_holds_for_its_time_and_prices_move(box: Box) -> None:
    assert codes(box.fleet("plain", ("g6.2xlarge", A))) == [(A, "InsufficientInstanceCapacity")]
    assert made(box.fleet("plain", ("g6.4xlarge", A)))
    listed = box.endpoint.price_usd_h(TYPE, A, "spot", NOON)
    assert listed is not None
    box.clock.advance_to(NOON + 200_000.0)
    assert made(box.fleet("plain", ("g6.2xlarge", A)))
    assert codes(box.fleet("plain", ("g6.4xlarge", A))) == [(A, "Unsupported")]
    answer = box.ec2(
        "describe_spot_price_history",
        InstanceTypes=[TYPE],
        AvailabilityZone=A,
        ProductDescriptions=["Linux/UNIX"],
        StartTime=datetime.fromtimestamp(NOON, UTC),
    )
    rows = answer["SpotPriceHistory"]
    assert [row["Timestamp"].timestamp() - NOON for row in rows] == [150_000.0, 50_000.0, 0.0]
    assert [round(float(row["SpotPrice"]) * 1e6) for row in rows] == [
        round(listed * 0.5), listed * 2, listed,
    ]  # fmt: skip
    launched = box.endpoint.instance(spot(box, TYPE))
    assert launched is not None and launched.price_usd_h == round(listed * 0.5)


def test_the_history_of_now_has_a_row_for_each_zone_and_comes_in_pages(box: Box) -> None:
    def history(**asked: Any) -> dict[str, Any]:
        at = datetime.fromtimestamp(box.clock.now(), UTC)
        return box.ec2("describe_spot_price_history", StartTime=at, **asked)

    rows = history(InstanceTypes=[TYPE], ProductDescriptions=["Linux/UNIX"])["SpotPriceHistory"]
    zones = box.ec2(
        "describe_instance_type_offerings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": [TYPE]}],
    )["InstanceTypeOfferings"]
    assert sorted(row["AvailabilityZone"] for row in rows) == sorted(
        zone["Location"] for zone in zones
    )
    first = history(MaxResults=3)
    second = history(MaxResults=3, NextToken=first["NextToken"])
    assert len(first["SpotPriceHistory"]) == 3
    assert first["SpotPriceHistory"] != second["SpotPriceHistory"]
    unknown = box.refusal(
        "ec2", "describe_spot_price_history", Filters=[{"Name": "colour", "Values": ["red"]}]
    )
    assert unknown == "InvalidParameterValue"


# -- schedules -------------------------------------------------------------------------------


def test_a_schedule_ends_its_machine_and_is_gone(box: Box) -> None:
    machine = spot(box, TYPE)
    box.wait(20.0)
    at = box.clock.now() + 100.0
    box.ask("scheduler", "create_schedule", **words(machine, at))
    assert box.endpoint.next_at() is not None
    box.wait(102.0)
    assert box.state(machine) == "running"
    box.wait(1.0)
    assert box.state(machine) == "shutting-down" and ("ended", machine) in box.heard
    missing = box.refusal("scheduler", "get_schedule", Name=f"end-{machine}")
    assert missing == "ResourceNotFoundException"


def test_a_schedule_that_is_moved_fires_later(box: Box) -> None:
    machine = spot(box, TYPE)
    at = box.clock.now() + 100.0
    box.ask("scheduler", "create_schedule", **words(machine, at))
    box.ask("scheduler", "update_schedule", **words(machine, at + 100.0))
    told = box.ask("scheduler", "get_schedule", Name=f"end-{machine}")
    assert told["ActionAfterCompletion"] == "DELETE" and told["State"] == "ENABLED"
    box.wait(150.0)
    assert box.state(machine) == "running"
    box.wait(54.0)
    assert box.state(machine) == "shutting-down"


def test_a_schedule_that_is_deleted_ends_nothing(box: Box) -> None:
    machine = spot(box, TYPE)
    asked = words(machine, box.clock.now() + 50.0)
    box.ask("scheduler", "create_schedule", **asked)
    box.ask("scheduler", "delete_schedule", Name=asked["Name"])
    again = box.refusal("scheduler", "delete_schedule", Name=asked["Name"])
    assert again == "ResourceNotFoundException"
    box.wait(100.0)
    assert box.state(machine) == "running"


def test_schedules_are_made_once_and_listed_by_group(box: Box) -> None:
    tags = [{"Key": "cloudwhale:installation", "Value": "here"}]
    made_group = box.ask("scheduler", "create_schedule_group", Name="ours", Tags=tags)
    twice = box.refusal("scheduler", "create_schedule_group", Name="ours")
    assert twice == "ConflictException"
    arn = made_group["ScheduleGroupArn"]
    assert box.ask("scheduler", "list_tags_for_resource", ResourceArn=arn)["Tags"] == tags
    asked = words("i-00000000000000001", box.clock.now() + 9e6, GroupName="ours")
    first = box.ask("scheduler", "create_schedule", ClientToken="one", **asked)
    assert box.ask("scheduler", "create_schedule", ClientToken="one", **asked) == first
    assert box.refusal("scheduler", "create_schedule", **asked) == "ConflictException"
    listed = box.ask("scheduler", "list_schedules", GroupName="ours")["Schedules"]
    assert [one["Name"] for one in listed] == [asked["Name"]]
    assert listed[0]["GroupName"] == "ours" and listed[0]["Target"] == {"Arn": TARGET}
    pages = (
        box.client("scheduler")
        .get_paginator("list_schedules")
        .paginate(PaginationConfig={"PageSize": 1})
    )
    assert asked["Name"] in [one["Name"] for page in pages for one in page["Schedules"]]
    box.ask("scheduler", "delete_schedule_group", Name="ours")
    gone = box.refusal("scheduler", "get_schedule", Name=asked["Name"], GroupName="ours")
    assert gone == "ResourceNotFoundException"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"role": "arn:aws:iam::123456789012:role/nobody"}, "ValidationException"),
        ({"ScheduleExpression": "at(tomorrow)"}, "ValidationException"),
        ({"ScheduleExpression": "rate(5 minutes)"}, "ValidationException"),
        ({"ScheduleExpressionTimezone": "Mars/Base"}, "ValidationException"),
        ({"GroupName": "nothing"}, "ResourceNotFoundException"),
    ],
)
def test_a_schedule_that_is_wrong_is_refused(box: Box, change: dict[str, Any], code: str) -> None:
    asked = words("i-00000000000000002", box.clock.now() + 100.0, **change)
    assert box.refusal("scheduler", "create_schedule", **asked) == code


def test_a_time_of_the_weather_takes_those_that_are_there_then(box: Box) -> None:
    box.clock.advance_to(NOON + 399_900.0)
    here, elsewhere = spot(box, RECALLED, B), spot(box, RECALLED, C)
    box.wait(161.0)
    assert (box.state(here), box.state(elsewhere)) == ("shutting-down", "running")
    late = spot(box, RECALLED, B)
    box.wait(1000.0)
    assert box.state(late) == "running"
