"""The function that ends machines which have outlived their stop, and touches nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import reaper
from scripted_aws import ScriptedAws, an_account, hasty_clients

from cloudwhale_providers.aws.clients import Clients

REGION = "us-east-1"
AMI = "ami-12c6146b"
NOON = 1_800_000_000
AT_NOON = {"time": "2027-01-15T08:00:00Z"}
"""What EventBridge sends: the same moment."""
POLICY = Path(__file__).parents[2] / "infra/aws/reaper-policy.json"


@pytest.fixture(scope="module")
def cloud() -> Iterator[ScriptedAws]:
    with an_account() as (aws, _):
        aws.forget()  # which costs seconds: machines of one test are ended before the next
        yield aws


@pytest.fixture
def aws(cloud: ScriptedAws, monkeypatch: pytest.MonkeyPatch) -> ScriptedAws:
    cloud.unscript()
    for region in (REGION, "us-west-2"):
        _end_all(hasty_clients(), region)
    monkeypatch.setenv("REGIONS", REGION)
    for name in ("INSTALLATION", "LATE_S"):
        monkeypatch.delenv(name, raising=False)
    return cloud


@pytest.fixture
def calls() -> Clients:
    return hasty_clients()


def a_machine(calls: Clients, stop_at: object = "", region: str = REGION, **own: str) -> str:
    """Run one of ours, which is to have ended at a time."""
    tags = {"cloudwhale:installation": "lab-1", "cloudwhale:stop-at": str(stop_at), **own}
    listed = [{"Key": key, "Value": value} for key, value in tags.items() if value]
    answer = calls.call(
        region, "ec2", "run_instances", ImageId=AMI, InstanceType="g5.xlarge", MinCount=1,
        MaxCount=1, TagSpecifications=[{"ResourceType": "instance", "Tags": listed}],
    )  # fmt: skip
    return str(answer["Instances"][0]["InstanceId"])


def _end_all(calls: Clients, region: str) -> None:
    answer = calls.call(region, "ec2", "describe_instances")
    there = [str(one["InstanceId"]) for row in answer["Reservations"] for one in row["Instances"]]
    if there:
        calls.call(region, "ec2", "terminate_instances", InstanceIds=there)


def state(calls: Clients, machine: str, region: str = REGION) -> str:
    answer = calls.call(region, "ec2", "describe_instances", InstanceIds=[machine])
    return str(answer["Reservations"][0]["Instances"][0]["State"]["Name"])


def reap() -> Any:
    return reaper.handler(AT_NOON, None)


def test_a_machine_that_is_minutes_late_is_ended_and_told(
    aws: ScriptedAws, calls: Clients, capsys: pytest.CaptureFixture[str]
) -> None:
    late = a_machine(calls, NOON - 301, **{"cloudwhale:node": "rent-7-1"})
    told = reap()
    assert state(calls, late) == "terminated"
    (one,) = told["ended"]
    assert (one["id"], one["node"], one["installation"]) == (late, "rent-7-1", "lab-1")
    assert json.loads(capsys.readouterr().out) == told


@pytest.mark.parametrize("stop_at", [NOON - 299, NOON, NOON + 3600])
def test_a_machine_whose_schedule_may_still_come_runs_on(
    aws: ScriptedAws, calls: Clients, stop_at: int
) -> None:
    machine = a_machine(calls, stop_at)
    assert reap()["ended"] == []
    assert state(calls, machine) == "running"


@pytest.mark.parametrize("stop_at", ["", "soon", "-5", "1e3"])
def test_a_machine_that_names_no_stop_is_left_alone(
    aws: ScriptedAws, calls: Clients, stop_at: str
) -> None:
    machine = a_machine(calls, stop_at)
    assert reap() == {"ended": [], "failed": []}
    assert state(calls, machine) == "running"


def test_what_does_not_carry_our_tag_is_never_touched(aws: ScriptedAws, calls: Clients) -> None:
    machine = a_machine(calls, NOON - 9999, **{"cloudwhale:installation": ""})
    assert reap()["ended"] == []
    assert state(calls, machine) == "running"


def test_only_the_installation_that_is_named_is_looked_at(
    aws: ScriptedAws, calls: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSTALLATION", "lab-1")
    ours = a_machine(calls, NOON - 999)
    theirs = a_machine(calls, NOON - 999, **{"cloudwhale:installation": "lab-2"})
    reap()
    assert (state(calls, ours), state(calls, theirs)) == ("terminated", "running")


def test_every_region_that_is_named_is_looked_at(
    aws: ScriptedAws, calls: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGIONS", f"{REGION}, us-west-2")
    far = a_machine(calls, NOON - 999, "us-west-2")
    assert [one["region"] for one in reap()["ended"]] == ["us-west-2"]
    assert state(calls, far, "us-west-2") == "terminated"


def test_that_one_cannot_be_ended_keeps_no_other_alive(aws: ScriptedAws, calls: Clients) -> None:
    machines = [a_machine(calls, NOON - 999) for _ in range(2)]
    aws.refuse("TerminateInstances", "OperationNotPermitted", "it is protected")
    with pytest.raises(RuntimeError, match="it is protected"):
        reap()
    refused = [one for one in aws.asked if one.name == "TerminateInstances"][-2:]
    assert {one.words["InstanceId.1"] for one in refused} == set(machines)
    assert {state(calls, one) for one in machines} == {"running"}


def test_a_region_that_does_not_answer_keeps_no_other_from_being_looked_at(
    aws: ScriptedAws, calls: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGIONS", f"eu-west-1,{REGION}")
    late = a_machine(calls, NOON - 999)
    aws.script(
        lambda verb: (
            type(_refusal())(403, {"Content-Type": "text/xml"}, _refusal().body)
            if verb.region == "eu-west-1"
            else None
        )
    )
    with pytest.raises(RuntimeError, match="eu-west-1"):
        reap()
    aws.unscript()
    assert state(calls, late) == "terminated"


def _refusal() -> Any:
    from scripted_aws import Verb, refusal

    return refusal(Verb("ec2", "DescribeInstances", "eu-west-1"), "AuthFailure", status=403)


def test_its_policy_allows_what_it_asks_for_and_ends_nothing_without_our_tag() -> None:
    statements = json.loads(POLICY.read_text())["Statement"]
    ends = [one for one in statements if "ec2:TerminateInstances" in one["Action"]]
    (one,) = ends
    assert one["Condition"]["Null"] == {"aws:ResourceTag/cloudwhale:installation": "false"}
    looks = {action for one in statements for action in _several(one["Action"])}
    assert {"ec2:DescribeInstances", "ec2:DescribeRegions", "ec2:TerminateInstances"} <= looks


def _several(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
