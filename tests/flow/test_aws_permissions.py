"""The policies that ship are enough for a whole life, and no action of theirs is superfluous."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from allowed_aws import (
    LAB,
    REGION,
    TAGS,
    Life,
    a_fleet,
    keys_of,
    machines_mailbox,
    planted,
    request,
    strict_box,
    whole_life,
)
from boxed_aws import Box

from cloudwhale.mailbox.box import folder_of, orders_to
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.spi.errors import CloudwhaleError, StoreUnusable
from cloudwhale.spi.provider import Machine
from cloudwhale_providers.aws.asking import code_of
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.aws.policies import Name, Places, filled
from cloudwhale_providers.sandbox.box import MAILBOX
from cloudwhale_providers.sandbox.endpoint.iam_policies import Need, Policy, policy
from cloudwhale_providers.sandbox.endpoint.permits import POLICIES
from cloudwhale_providers.sandbox.names import ACCOUNT, BUCKET, FOLDER

PLACES = Places(ACCOUNT, BUCKET, FOLDER)
ROLES = {name: role for role, name in POLICIES.items()}


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Live once for all tests of this file."""
    return whole_life(tmp_path_factory.mktemp("life"))


def several(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def each_action() -> Iterator[tuple[Name, str]]:
    for name in POLICIES.values():
        actions = {a for one in filled(name, PLACES)["Statement"] for a in several(one["Action"])}
        yield from ((name, action) for action in sorted(actions))


@cache
def without(name: Name, action: str) -> Policy:
    """Return a policy that does not allow one of its actions."""
    document = filled(name, PLACES)
    kept: list[Mapping[str, Any]] = []
    for one in document["Statement"]:
        left = [other for other in several(one["Action"]) if other != action]
        if left:
            kept.append({**one, "Action": left})
    return policy({**document, "Statement": kept or [_NOTHING]})


_NOTHING = {"Effect": "Deny", "Action": "*", "Resource": "*"}


def test_nobody_is_refused_anything_in_a_whole_life(life: Life) -> None:
    assert {(role, need.action, need.resource) for role, need in life.refused} == set()


def test_everybody_was_there(life: Life) -> None:
    assert set(life.needs) == {"user", "machine", "stops"}


@pytest.mark.parametrize(
    ("name", "action"),
    list(each_action()),
    ids=[f"{name}-{action}" for name, action in each_action()],
)
def test_without_it_something_is_refused(life: Life, name: Name, action: str) -> None:
    held = without(name, action)
    refused = [need for need in life.needs[ROLES[name]] if not held.allows(need)]
    assert refused, f"{action} of {name} is not needed in a whole life"
    assert {need.action for need in refused} == {action}


# -- whose things may be ended ---------------------------------------------------------------

NOBODYS = {"team": "others"}
ANOTHERS = {"cloudwhale:installation": "another"}
ENDS: Mapping[str, tuple[str, str]] = {
    "volume": ("delete_volume", "VolumeId"),
    "snapshot": ("delete_snapshot", "SnapshotId"),
    "interface": ("delete_network_interface", "NetworkInterfaceId"),
    "address": ("release_address", "AllocationId"),
    "security group": ("delete_security_group", "GroupId"),
}


@pytest.fixture(scope="module")
def box(life: Life) -> Iterator[Box]:
    """Give a cloud whose user is held to the controller's policy.

    A process has one cloud at a time, so the whole life, which has its own, comes first.
    """
    with strict_box() as box:
        yield box


def refusal(calls: Clients, service: str, verb: str, **words: Any) -> str:
    """Return the code with which a call is refused."""
    with pytest.raises(CloudwhaleError) as caught:
        calls.call(REGION, service, verb, **words)
    return code_of(caught.value)


def test_what_does_not_carry_our_tag_is_not_removed(box: Box) -> None:
    calls = Clients()
    left = planted({**NOBODYS, "cloudwhale:installatio": LAB}, "nobodys")
    for what, (verb, word) in ENDS.items():
        assert refusal(calls, "ec2", verb, **{word: left[what]}) == "UnauthorizedOperation"
    found = calls.call(REGION, "ec2", "describe_addresses", AllocationIds=[left["address"]])
    held = found["Addresses"][0]["AssociationId"]
    code = refusal(calls, "ec2", "disassociate_address", AssociationId=held)
    assert code == "UnauthorizedOperation"


def test_a_machine_without_our_tag_is_neither_launched_nor_ended_nor_tagged(box: Box) -> None:
    calls = Clients()
    words: dict[str, Any] = {
        "ImageId": calls.call(
            REGION, "ssm", "get_parameter",
            Name="/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04"
            "/latest/ami-id",
        )["Parameter"]["Value"],
        "InstanceType": "g5.xlarge", "MinCount": 1, "MaxCount": 1,
    }  # fmt: skip
    assert refusal(calls, "ec2", "run_instances", **words) == "UnauthorizedOperation"
    ours = box.provider_with(LAB, [request(box, "x").offer or pytest.fail()]).launch(
        request(box, "tagged")
    )
    own = [{"Key": "cloudwhale:installation", "Value": "mine"}]
    code = refusal(calls, "ec2", "create_tags", Resources=[ours.id], Tags=own)
    assert code == "UnauthorizedOperation", "only the stop may be noted"


def test_a_fleet_without_our_tag_is_not_deleted(box: Box) -> None:
    calls = Clients()
    box.provider_with(LAB, [request(box, "x").offer or pytest.fail()]).launch(request(box, "one"))
    fleet = a_fleet(calls, TAGS)
    assert calls.call(REGION, "ec2", "delete_fleets", FleetIds=[fleet], TerminateInstances=True)
    code = refusal(calls, "ec2", "delete_fleets", FleetIds=["fleet-none"], TerminateInstances=True)
    assert code == "UnauthorizedOperation"


def test_what_is_named_in_another_way_is_nobodys(box: Box) -> None:
    calls = Clients()
    code = refusal(calls, "ec2", "delete_security_group", GroupName="left")
    assert code == "UnauthorizedOperation"
    code = refusal(calls, "ec2", "delete_launch_template", LaunchTemplateName="left")
    assert code == "UnauthorizedOperation"


def test_the_controller_makes_no_roles_and_reads_no_others(box: Box) -> None:
    calls = Clients()
    assert refusal(calls, "iam", "list_roles") == "AccessDenied"
    assert refusal(calls, "iam", "get_role", RoleName="admin") == "AccessDenied"
    words = {"RoleName": "x", "AssumeRolePolicyDocument": "{}"}
    assert refusal(calls, "iam", "create_role", **words) == "AccessDenied"
    assert refusal(calls, "ssm", "get_parameter", Name="/team/secret") == "AccessDeniedException"
    stop: dict[str, Any] = {
        "Name": "x",
        "GroupName": "others",
        "ScheduleExpression": "at(2030-01-01T00:00:00)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {
            "Arn": "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances",
            "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/cloudwhale-stops",
        },
    }
    assert refusal(calls, "scheduler", "create_schedule", **stop) == "AccessDeniedException"


def test_narrowed_to_one_installation_nothing_of_another_is_ended(life: Life) -> None:
    """Several installations of one account: each has a policy of its own."""
    ours = policy(filled("controller-policy", Places(ACCOUNT, BUCKET, FOLDER, LAB)))
    other = policy(filled("controller-policy", Places(ACCOUNT, BUCKET, FOLDER, "another")))
    key = "aws:resourcetag/cloudwhale:installation"
    ends = [need for need in life.needs["user"] if need.context.get(key) == (LAB,)]
    assert {need.action for need in ends} >= {"ec2:TerminateInstances", "ec2:DeleteVolume"}
    for need in ends:
        if need.action in ("ec2:RunInstances", "ec2:CreateFleet"):
            continue  # what a launch stands on is looked at by name, not by whose it is
        assert ours.allows(need), need
        assert not other.allows(need), need


def test_narrowed_to_its_installation_a_whole_life_needs_nothing_more(life: Life) -> None:
    ours = policy(filled("controller-policy", Places(ACCOUNT, BUCKET, FOLDER, LAB)))
    assert [need for need in life.needs["user"] if not ours.allows(need)] == []


def test_a_stop_ends_nothing_that_does_not_carry_our_tag() -> None:
    held = policy(filled("scheduler-policy", PLACES))
    arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"
    tag = {"aws:resourcetag/cloudwhale:installation": ("any",)}
    assert held.allows(Need("ec2:TerminateInstances", arn, tag))
    assert not held.allows(Need("ec2:TerminateInstances", arn, {}))
    assert not held.allows(Need("ec2:StopInstances", arn, tag))


# -- what a machine may not ------------------------------------------------------------------


@pytest.fixture(scope="module")
def inner(box: Box) -> Machine:
    """Give a machine that runs."""
    offer = request(box, "x").offer
    assert offer is not None
    return box.provider_with(LAB, [offer]).launch(request(box, "inside"))


@pytest.fixture(scope="module")
def outer(box: Box, inner: Machine) -> Machine:
    """Give another machine that runs."""
    offer = request(box, "x").offer
    assert offer is not None
    return box.provider_with(LAB, [offer]).launch(request(box, "outside"))


@pytest.fixture(scope="module")
def inside(box: Box, inner: Machine) -> StoreObjects:
    """Give the mailbox as a machine has it."""
    return machines_mailbox(keys_of(box, inner.id))


def filled_in(key: str, inner: Machine, outer: Machine) -> str:
    """Return a key with what the folders of a machine and of another one are called."""
    return key.format(
        own=folder_of(inner.node, inner.door), others=folder_of(outer.node, outer.door),
        door=inner.door,
    )  # fmt: skip


BOXES = ("inbox", "agents", "boots", "clocks")
ELSEWHERE = [
    f"{box}/{folder}/000001.json"
    for box in BOXES
    for folder in (
        "{others}", "inside", "outside", "@{door}", "@{door}x@inside", "x@{door}@inside",
        "{others}/@{door}@inside", "{others}@{door}@inside", "@*@inside", "@@inside",
    )
]  # fmt: skip
"""Folders that are not the machine's own, however much they are called after it."""


@pytest.mark.parametrize(
    "key",
    [
        "orders/{own}/000001.json",
        "orders/{others}/000001.json",
        "orders/inside/000001.json",
        *ELSEWHERE,
        f"bundles/{'0' * 64}.tar.gz",
        f"workdirs/{'0' * 64}.tar.gz",
        "installation.json",
        "hello/x",
        "else/x",
        "logs",
    ],
)
def test_a_machine_writes_nothing_that_others_are_told(
    inside: StoreObjects, inner: Machine, outer: Machine, key: str
) -> None:
    key = filled_in(key, inner, outer)
    with pytest.raises(StoreUnusable, match="the store refuses us"):
        inside.create(key, b"mine")
    with pytest.raises(StoreUnusable, match="the store refuses us"):
        inside.put_chunks(key, [b"mine"])


@pytest.mark.parametrize(
    "key",
    [
        "orders/{own}/000001.json",
        "orders/{others}/000001.json",
        "agents/{others}/000001.json",
        "clocks/{others}-place",
        f"bundles/{'0' * 64}.tar.gz",
        f"workdirs/{'0' * 64}.tar.gz",
        "inbox/{own}/000001.json",
        "inbox/{others}/000001.json",
        "boots/{own}/000001.json",
        "boots/{others}/000001.json",
        "outputs/job/1/manifest.json",
        "logs/job/1.log",
        "installation.json",
    ],
)
def test_a_machine_deletes_nothing_that_others_need(
    inside: StoreObjects, inner: Machine, outer: Machine, key: str
) -> None:
    with pytest.raises(StoreUnusable):
        inside.delete([filled_in(key, inner, outer)])


@pytest.mark.parametrize(
    "key",
    ["installation.json", "hello/x", "boots/{own}/000001.json", "orders/{others}/000001.json",
     "orders/outside/000001.json", "orders/{others}/@{door}@inside", *ELSEWHERE],
)  # fmt: skip
def test_a_machine_reads_nothing_that_is_not_for_it(
    inside: StoreObjects, inner: Machine, outer: Machine, key: str
) -> None:
    with pytest.raises(StoreUnusable, match="the store refuses us"):
        inside.get(filled_in(key, inner, outer))


@pytest.mark.parametrize(
    "prefix",
    ["", "hello", "boots", "boots/{own}", "orders", "inbox", "agents", "clocks",
     "orders/{others}", "inbox/{others}", "agents/{others}", "orders/outside", "orders/@{door}"],
)  # fmt: skip
def test_a_machine_lists_nothing_that_is_not_for_it(
    inside: StoreObjects, inner: Machine, outer: Machine, prefix: str
) -> None:
    with pytest.raises(StoreUnusable, match="the store refuses us"):
        inside.keys(filled_in(prefix, inner, outer))


def test_a_machine_hears_that_an_order_is_not_there_yet(
    inside: StoreObjects, inner: Machine
) -> None:
    own = folder_of(inner.node, inner.door)
    assert inside.get(f"orders/{own}/000099.json") is None
    assert inside.modified_at(f"inbox/{own}/000099.json") is None


@pytest.mark.parametrize("kind", BOXES)
def test_a_machine_writes_into_its_own_folders(
    inside: StoreObjects, inner: Machine, kind: str
) -> None:
    assert inside.create(f"{kind}/{folder_of(inner.node, inner.door)}/000001.json", b"mine")


def test_what_a_machine_reads_of_its_own_nobody_else_may(
    box: Box, inside: StoreObjects, inner: Machine, outer: Machine
) -> None:
    own = orders_to(open_objects(MAILBOX), folder_of(inner.node, inner.door))
    own.post(b"an order", own.newest())
    assert orders_to(inside, folder_of(inner.node, inner.door)).read(own.newest()) == b"an order"
    other = orders_to(machines_mailbox(keys_of(box, outer.id)), folder_of(inner.node, inner.door))
    with pytest.raises(StoreUnusable, match="the store refuses us"):
        other.read(1)
    with pytest.raises(StoreUnusable, match="the store refuses us"):
        other.newest()


@pytest.mark.parametrize(
    ("action", "key"),
    [("GetObject", "orders"), *((f"{verb}Object", one) for verb in ("Get", "Put")
                                for one in ("inbox", "agents", "clocks")), ("PutObject", "boots")],
)  # fmt: skip
def test_without_doors_a_machine_would_reach_what_is_anothers(action: str, key: str) -> None:
    """So the doors alone keep them apart: else the tests above would hold for another reason."""
    text = json.dumps(filled("machine-policy", PLACES))
    doors, none = policy(json.loads(text)), policy(json.loads(text.replace("@${aws:userid}@", "")))
    arn = f"arn:aws:s3:::{BUCKET}/{FOLDER}/{key}/@AROA:i-2@rent-2/000001.json"
    need = Need(f"s3:{action}", arn, {"aws:userid": ("AROA:i-1",)})
    assert none.allows(need) and not doors.allows(need)
    assert doors.allows(replace(need, context={"aws:userid": ("AROA:i-2",)}))
    assert not doors.allows(replace(need, context={})), "nobody whom IAM does not know"


def test_a_machine_asks_nothing_of_the_cloud_but_its_mailbox(box: Box) -> None:
    offer = request(box, "x").offer
    assert offer is not None
    keys = keys_of(box, box.provider_with(LAB, [offer]).launch(request(box, "curious")).id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", keys.access_key)
        patch.setenv("AWS_SECRET_ACCESS_KEY", keys.secret_key)
        patch.setenv("AWS_SESSION_TOKEN", keys.token)
        calls = Clients(attempts=1)
        assert refusal(calls, "ec2", "describe_instances") == "UnauthorizedOperation"
        assert refusal(calls, "iam", "list_roles") == "AccessDenied"
        assert refusal(calls, "scheduler", "list_schedules") == "AccessDeniedException"
        assert refusal(calls, "s3", "list_buckets") == "AccessDenied"
        assert refusal(calls, "s3", "list_objects_v2", Bucket=BUCKET) == "AccessDenied"
        words = {"Bucket": BUCKET, "Key": "elsewhere/x"}
        assert refusal(calls, "s3", "get_object", **words) == "AccessDenied"
