"""Whichever machine of the sandbox runs is interrupted, once for each line of the weather."""

import json
from collections.abc import Iterator

import pytest
from boxed import NOON, REGION, TYPE, Box, a_box, made

from cloudwhale_providers.sandbox.endpoint import Instance, Interruption, Weather, Which
from cloudwhale_providers.sandbox.endpoint.weather_values import Maintenance
from cloudwhale_providers.sandbox.guests import told_of

A = f"{REGION}a"
MAINTAINED = "g5.2xlarge"
WEATHER = Weather(
    boot_s=10.0,
    interruptions=(
        Interruption(age_s=40.0, which=Which(TYPE), once=True, rebalance_s=10.0),
        Interruption(age_s=40.0, which=Which(TYPE), once=True, notice_s=0.0),
        Interruption(at_s=50_000.0, which=Which(TYPE), once=True, notice_s=30.0),
    ),
    maintenance=(
        Maintenance(age_s=30.0, which=Which(MAINTAINED), once=True, ahead_s=600.0),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with a_box(WEATHER) as box:
        box.template("plain")
        yield box


def launched(box: Box, kind: str = TYPE) -> str:
    return made(box.fleet("plain", (kind, A)))[0]


def known(box: Box, machine: str) -> Instance:
    found = box.endpoint.instance(machine)
    assert found is not None
    return found


def test_each_line_takes_one_machine_one_after_the_other(box: Box) -> None:
    gone = launched(box)
    box.wait(5.0)
    box.ec2("terminate_instances", InstanceIds=[gone])
    first = launched(box)
    box.wait(40.0)
    assert known(box, first).goes_at == known(box, first).launched_at + 160.0
    second = launched(box)
    box.wait(40.0)
    assert known(box, second).ended_at is not None, "without a word"
    assert known(box, second).reason == "Server.SpotInstanceTermination"
    third = launched(box)
    box.wait(1000.0)
    assert box.state(third) == "running", "there is no third line of that kind"
    box.clock.advance_to(NOON + 49_000.0)
    box.ec2("terminate_instances", InstanceIds=[third])
    box.clock.advance_to(NOON + 51_000.0)
    late = launched(box)
    box.wait(5.0)
    assert known(box, late).goes_at is None, "it boots still"
    box.wait(5.0)
    assert known(box, late).goes_at == known(box, late).launched_at + 40.0


def test_maintenance_is_announced_to_the_machine_and_ends_it(box: Box) -> None:
    machine, other = launched(box, MAINTAINED), launched(box, MAINTAINED)
    box.wait(30.0)
    one = known(box, machine)
    [event] = json.loads(told_of(one, box.clock.now())["events/maintenance/scheduled"])
    assert event["Code"] == "instance-retirement" and event["State"] == "active"
    assert event["NotBefore"].endswith(" GMT")
    assert "events/maintenance/scheduled" not in told_of(known(box, other), box.clock.now())
    box.wait(599.0)
    assert box.state(machine) == "running"
    box.wait(2.0)
    assert known(box, machine).reason == "Server.ScheduledStop"
    assert box.state(other) == "running"
