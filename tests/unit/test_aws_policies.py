"""The IAM policies that ship: they allow what our code asks of AWS, and nothing else."""

import ast
import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

HOUSE = Path(__file__).parents[2]
INFRA = HOUSE / "infra" / "aws"
CODE = HOUSE / "providers" / "cloudwhale_providers" / "aws"
SERVICES = {
    "ec2": "ec2",
    "iam": "iam",
    "s3": "s3",
    "scheduler": "scheduler",
    "service-quotas": "servicequotas",
    "ssm": "ssm",
    "sts": "sts",
}
"""What our code asks, and what IAM calls it."""

OTHERWISE = {"s3:HeadBucket": "s3:ListBucket"}
"""Calls whose permission is called otherwise (S3 API reference, HeadBucket)."""
OPEN_TO_ALL = {"sts:GetCallerIdentity"}
"""STS API reference: no permission is needed."""
ALONG = {
    "iam:PassRole": "checked when a machine or a schedule is given its role",
    "iam:CreateServiceLinkedRole": "checked when the first spot machine is launched",
    "scheduler:TagResource": "checked when a group of schedules is made with tags",
    "s3:GetObject": "the mailbox's own client reads",
    "s3:AbortMultipartUpload": "the mailbox's own client gives an upload up",
}
"""What no call of ours is named after, and why it is there."""
ENDS = ("Delete", "Terminate", "Release", "Disassociate")


def policy(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((INFRA / f"{name}.json").read_text(encoding="utf-8"))
    return found


def statements(name: str) -> list[Mapping[str, Any]]:
    return list(policy(name)["Statement"])


def several(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def actions(name: str) -> set[str]:
    return {action for one in statements(name) for action in several(one["Action"])}


@cache
def operations() -> Mapping[str, str]:
    """Return every call that boto3 knows of our services, by its Python name, as IAM names it."""
    session: Any = import_module("botocore.session").get_session()
    snake: Any = import_module("botocore").xform_name
    return {
        snake(name): f"{prefix}:{name}"
        for service, prefix in SERVICES.items()
        for name in session.get_service_model(service).operation_names
    }


def words_of(file: Path) -> Iterator[str]:
    """Yield every text in a file's code: a call's verb is always said as one."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def asked() -> set[str]:
    """Return the permissions of all calls that our code makes, once an account is set up."""
    found = {
        operations()[word]
        for file in CODE.rglob("*.py")
        if file.parent.name != "mending"  # that has a policy of its own, for whoever sets up
        for word in words_of(file)
        if word in operations()
    }
    return {OTHERWISE.get(call, call) for call in found} - OPEN_TO_ALL


def test_the_calls_of_our_code_are_found() -> None:
    assert {"ec2:CreateFleet", "scheduler:CreateSchedule", "ssm:GetParameter"} <= asked()
    assert len(asked()) > 35


def test_the_controller_may_do_what_it_asks_for() -> None:
    assert asked() - actions("controller-policy") == set()


def test_the_controller_may_do_nothing_else() -> None:
    assert actions("controller-policy") - asked() == set(ALONG)


def test_no_action_is_a_pattern() -> None:
    for name in ("controller-policy", "machine-policy", "scheduler-policy"):
        assert not [action for action in actions(name) if "*" in action]


def test_only_looking_is_allowed_everywhere() -> None:
    for one in statements("controller-policy"):
        if "*" in several(one["Resource"]) and "Condition" not in one:
            verbs = [action.partition(":")[2] for action in several(one["Action"])]
            assert [v for v in verbs if not v.startswith(("Describe", "Get", "List"))] == []


@pytest.mark.parametrize("name", ["controller-policy", "scheduler-policy"])
def test_what_does_not_carry_our_tag_cannot_be_ended(name: str) -> None:
    ends = [
        one
        for one in statements(name)
        if any(a.startswith("ec2:") and a[4:].startswith(ENDS) for a in several(one["Action"]))
    ]
    assert ends
    for one in ends:
        assert one["Condition"]["Null"] == {"aws:ResourceTag/cloudwhale:installation": "false"}


def test_what_is_launched_must_carry_our_tag() -> None:
    for one in statements("controller-policy"):
        makes = "ec2:RunInstances" in several(one["Action"])
        if makes and any(fnmatchcase(r, "*:instance/*") for r in several(one["Resource"])):
            assert one["Condition"]["Null"] == {"aws:RequestTag/cloudwhale:installation": "false"}


def test_roles_are_passed_to_their_own_services_only() -> None:
    passed = {
        one["Resource"]: one["Condition"]["StringEquals"]["iam:PassedToService"]
        for one in statements("controller-policy")
        if one["Action"] == "iam:PassRole"
    }
    assert passed == {
        "arn:aws:iam::ACCOUNT:role/cloudwhale-machine": "ec2.amazonaws.com",
        "arn:aws:iam::ACCOUNT:role/cloudwhale-stops": "scheduler.amazonaws.com",
    }


def test_a_machine_reaches_its_mailbox_and_nothing_else() -> None:
    for one in statements("machine-policy"):
        assert {action.partition(":")[0] for action in several(one["Action"])} == {"s3"}
        assert all("BUCKET" in resource for resource in several(one["Resource"]))


def test_a_schedule_may_only_end_machines() -> None:
    assert actions("scheduler-policy") == {"ec2:TerminateInstances"}


def test_policies_are_as_small_as_iam_takes_them() -> None:
    # A managed policy holds 6,144 characters without white space (IAM quotas).
    text = json.dumps(policy("controller-policy"), separators=(",", ":"))
    assert len(text.replace("BUCKET", "b" * 63).replace("ACCOUNT", "1" * 12)) <= 6144


def test_actions_are_named_as_iam_names_them() -> None:
    known = set(operations().values()) | set(ALONG) | {"s3:ListBucket"}
    for name in ("controller-policy", "machine-policy", "scheduler-policy"):
        assert actions(name) - known == set()


def test_the_tables_of_the_page_name_every_permission() -> None:
    page = (HOUSE / "docs" / "aws.md").read_text(encoding="utf-8")
    bare = {action.partition(":")[2] for action in actions("controller-policy")}
    assert [name for name in sorted(bare) if name not in page] == []
