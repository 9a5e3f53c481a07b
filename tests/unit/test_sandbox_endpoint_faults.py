"""Calls of the sandbox that go wrong, as those of a real cloud do, and its life."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any

import obstore
import pytest
from boxed import (
    IMAGE,
    NOON,
    REGION,
    TYPE,
    Box,
    a_box,
    fleet_words,
    made,
)

from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.spi.errors import Denied
from cloudwhale_providers.sandbox.endpoint import Endpoint, Weather
from cloudwhale_providers.sandbox.endpoint.faults import Fault, Faults, Kind
from cloudwhale_providers.sandbox.endpoint.messages import Answer
from cloudwhale_providers.sandbox.endpoint.refused import Refused

Closed: type[Exception] = import_module("botocore.exceptions").ConnectionClosedError
KEY, OTHER = "AKIDCLOUDWHALESANDBOX", "AKIDNOBODY"
BUCKET = "cloudwhale-sandbox"
MIB = 1024 * 1024
WAITS: list[float] = []


def at_once(for_s: float) -> float:
    WAITS.append(for_s)
    return 0.0


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    weather = Weather(
        access_key=KEY,
        closed_regions=frozenset({"ap-east-1"}),
        spot_role=False,
        image=False,
        default_network=False,
        s3_slow_s=0.5,
        s3_mib_s=2.0,
    )
    with a_box(weather, real=at_once) as box:
        yield box


@pytest.fixture(autouse=True)
def fair(box: Box) -> Iterator[None]:
    yield
    box.endpoint.no_faults()


WORDS: dict[str, Any] = {
    "LaunchTemplateName": "plain",
    "LaunchTemplateData": {"InstanceType": TYPE},
}


# -- as they are asked for -------------------------------------------------------------------


def test_an_error_before_has_done_nothing(box: Box) -> None:
    box.endpoint.fault("CreateKeyPair", "error-before")
    assert box.refusal("ec2", "create_key_pair", KeyName="before") == "InternalError"
    assert box.ec2("create_key_pair", KeyName="before")["KeyName"] == "before"


def test_an_error_after_success_has_done_all(box: Box) -> None:
    box.endpoint.fault("Create*", "error-after-success")
    assert box.refusal("ec2", "create_key_pair", KeyName="after") == "InternalError"
    assert box.ec2("describe_key_pairs", KeyNames=["after"])["KeyPairs"]


def test_a_call_without_an_answer_may_be_repeated_with_its_token(box: Box) -> None:
    words: dict[str, Any] = {**WORDS, "LaunchTemplateName": "lost", "ClientToken": "lost"}
    box.endpoint.fault("CreateLaunchTemplate", "timeout")
    with pytest.raises(Closed):
        box.ec2("create_launch_template", **words)
    again = box.ec2("create_launch_template", **words)
    assert again["LaunchTemplate"]["LaunchTemplateName"] == "lost"


def test_a_refusal_is_heard_whatever_befalls_the_answer(box: Box) -> None:
    box.endpoint.fault("DescribeInstances", "error-after-success")
    refused = box.refusal("ec2", "describe_instances", InstanceIds=["i-00000000000000000"])
    assert refused == "InvalidInstanceID.NotFound"


@pytest.mark.parametrize(
    ("service", "verb", "action", "code"),
    [
        ("ec2", "describe_regions", "DescribeRegions", "RequestLimitExceeded"),
        ("s3", "list_buckets", "ListObjects", "SlowDown"),
        ("scheduler", "list_schedules", "ListSchedules", "ThrottlingException"),
        ("sts", "get_caller_identity", "GetCallerIdentity", "Throttling"),
    ],
)
def test_services_throttle_in_their_own_words(
    box: Box, service: str, verb: str, action: str, code: str
) -> None:
    box.endpoint.fault(action, "throttle", times=2)
    assert [box.refusal(service, verb) for _ in range(2)] == [code, code]
    box.ask(service, verb)


def test_a_fault_may_have_a_code_of_its_own(box: Box) -> None:
    box.endpoint.fault("DescribeRegions", "error-before", code="UnauthorizedOperation")
    assert box.refusal("ec2", "describe_regions") == "UnauthorizedOperation"


# -- by chance -------------------------------------------------------------------------------


def drawn(faults: Faults, calls: int) -> list[str]:
    """Return what befell some calls."""
    found: list[str] = []
    for _ in range(calls):
        done: list[int] = []

        def do(done: list[int] = done) -> Answer:
            done.append(1)
            return Answer()

        try:
            answer = faults.met("ec2", "DescribeInstances", do)
        except Refused as refused:
            found.append(f"{refused.code}{len(done)}")
        else:
            found.append(f"{'lost' if answer is None else 'fine'}{len(done)}")
    return found


def test_chance_is_the_same_for_the_same_seed() -> None:
    assert drawn(Faults(7, 0.2, 0.1), 200) == drawn(Faults(7, 0.2, 0.1), 200)
    assert drawn(Faults(7, 0.2, 0.1), 200) != drawn(Faults(8, 0.2, 0.1), 200)


def test_a_share_of_the_calls_fails_in_every_way() -> None:
    found = drawn(Faults(1, 0.4, 0.0), 2000)
    assert set(found) == {"fine1", "lost1", "InternalError0", "InternalError1",
                          "RequestLimitExceeded0"}  # fmt: skip
    assert 0.35 < 1 - found.count("fine1") / len(found) < 0.45
    throttled = drawn(Faults(1, 0.0, 0.3), 2000)
    assert set(throttled) == {"fine1", "RequestLimitExceeded0"}


def test_s3_is_spared_by_chance() -> None:
    faults = Faults(1, 1.0, 1.0)
    assert faults.met("s3", "PutObject", Answer) == Answer()
    kind: Kind = "error-before"
    faults.add(Fault("PutObject", kind, 1, ""))
    with pytest.raises(Refused, match="InternalError"):
        faults.met("s3", "PutObject", Answer)


def test_a_share_of_faults_reaches_the_clients(box: Box) -> None:
    box.endpoint.fault_share(1.0, seed=3)
    with pytest.raises(
        Exception, match=r"InternalError|RequestLimitExceeded|Connection was closed"
    ):
        box.ec2("describe_regions")


# -- accounts in which something is missing --------------------------------------------------


@pytest.mark.parametrize(
    ("service", "verb", "code"),
    [
        ("ec2", "describe_instances", "AuthFailure"),
        ("s3", "list_buckets", "InvalidAccessKeyId"),
        ("sts", "get_caller_identity", "InvalidClientTokenId"),
        ("iam", "list_roles", "InvalidClientTokenId"),
        ("scheduler", "list_schedules", "UnrecognizedClientException"),
    ],
)
def test_an_unknown_key_is_refused(box: Box, service: str, verb: str, code: str) -> None:
    client = box.client(service, key=OTHER)
    with pytest.raises(client.exceptions.ClientError) as caught:
        getattr(client, verb)()
    assert caught.value.response["Error"]["Code"] == code


def test_a_region_that_is_not_enabled_is_refused(box: Box) -> None:
    assert box.refusal("ec2", "describe_instances", "ap-east-1") == "AuthFailure"


def test_a_region_that_does_not_exist_is_refused(box: Box) -> None:
    assert box.refusal("ec2", "describe_instances", "us-nowhere-7") == "AuthFailure"


def test_without_image_and_network_launches_are_refused(box: Box) -> None:
    name = (
        "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
    )
    assert box.refusal("ssm", "get_parameter", Name=name) == "ParameterNotFound"
    assert box.ec2("describe_vpcs")["Vpcs"] == []
    words: dict[str, Any] = {"ImageId": IMAGE, "InstanceType": TYPE, "MinCount": 1, "MaxCount": 1}
    assert box.refusal("ec2", "run_instances", **words) == "VPCIdNotSpecified"


def test_spot_needs_its_role(box: Box) -> None:
    vpc = box.ec2("create_vpc", CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    zone = f"{REGION}a"
    subnet = box.ec2("create_subnet", VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone=zone)
    copied = box.ec2("register_image", Name="own", RootDeviceName="/dev/sda1")["ImageId"]
    box.template("spot", ImageId=copied)
    override = {"InstanceType": TYPE, "SubnetId": subnet["Subnet"]["SubnetId"]}
    answer = box.ec2("create_fleet", **fleet_words("spot", [override]))
    assert [one["ErrorCode"] for one in answer["Errors"]] == [
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
    ]
    box.ask("iam", "create_service_linked_role", AWSServiceName="spot.amazonaws.com")
    assert made(box.ec2("create_fleet", **fleet_words("spot", [override])))


def test_what_the_sandbox_lacks_is_said(box: Box) -> None:
    refused = box.refusal("ec2", "get_spot_placement_scores", TargetCapacity=1)
    assert refused == "InvalidAction"
    assert box.refusal("ec2", "describe_capacity_block_offerings", CapacityDurationHours=24) == (
        "InvalidAction"
    )


def test_a_slow_store_takes_its_time(box: Box) -> None:
    WAITS.clear()
    box.client("s3").put_object(Bucket=BUCKET, Key="a", Body=b"x" * MIB)
    box.client("s3").list_buckets()
    assert WAITS[0] == 1.0 and 0.5 <= WAITS[1] < 0.51


# -- its life --------------------------------------------------------------------------------


def test_there_is_one_at_a_time(box: Box) -> None:
    with pytest.raises(RuntimeError, match="another endpoint"):
        Endpoint(SteppedClock(NOON)).start()
    assert box.ec2("describe_regions")["Regions"]


def test_half_an_object_is_not_kept(box: Box) -> None:
    host, port = box.endpoint.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as link:
        head = f"PUT /{BUCKET}/half HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        link.sendall(head.encode() + b"x" * 500)
        link.shutdown(socket.SHUT_WR)
        assert link.recv(1000) == b""
    assert box.refusal("s3", "get_object", Bucket=BUCKET, Key="half") == "NoSuchKey"


def test_a_client_that_asks_whether_it_may_send_is_answered_at_once(box: Box) -> None:
    host, port = box.endpoint.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30.0) as link:
        url = obstore.sign(box.store(), "PUT", "may", timedelta(minutes=5))
        target = url.removeprefix(box.endpoint.url)
        head = f"PUT {target} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 2\r\n"
        link.sendall(head.encode() + b"Expect: 100-continue\r\n\r\n")
        assert link.recv(1000).startswith(b"HTTP/1.1 100")
        link.sendall(b"ok")
        assert link.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_port_that_is_taken_leaves_nothing_behind(box: Box) -> None:
    port = int(box.endpoint.url.rpartition(":")[2])
    program = (
        "import threading; from cloudwhale.simulation.clock import SteppedClock\n"
        "from cloudwhale_providers.sandbox.endpoint import Endpoint\n"
        f"first = Endpoint(SteppedClock(), port={port})\n"
        "try: first.start()\n"
        "except OSError: pass\n"
        "second = Endpoint(SteppedClock())\n"
        "second.start(); second.close()\n"
        "assert threading.active_count() == 1"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_it_says_whether_anybody_has_asked(box: Box) -> None:
    box.client("s3").list_buckets()
    assert box.endpoint.asked_lately()
    assert not box.endpoint.asked_lately()


def test_many_clients_are_answered_at_once(box: Box) -> None:
    found: list[int] = []

    def ask() -> None:
        found.append(len(box.client("ec2").describe_regions()["Regions"]))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12 and len(set(found)) == 1


def test_without_moto_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "cloudwhale_providers.sandbox.endpoint.moto_cloud.NEEDED", ("moto_that_is_not_there",)
    )
    with pytest.raises(Denied) as caught:
        Endpoint(SteppedClock(NOON)).start()
    assert "cloudwhale[sandbox]" in caught.value.remedy


def test_importing_it_loads_no_sdk() -> None:
    program = (
        "import sys; import cloudwhale_providers.sandbox.endpoint; "
        "sys.exit(any(name in sys.modules for name in ('moto', 'boto3', 'botocore')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
