"""The evaluator of IAM policies: what is allowed, what is not, and what it refuses to guess."""

from typing import Any

import pytest

from cloudwhale_providers.sandbox.endpoint.iam_conditions import Context, Malformed
from cloudwhale_providers.sandbox.endpoint.iam_policies import Need, Policy, policy

BUCKET = "arn:aws:s3:::lab"
INSTANCE = "arn:aws:ec2:us-east-1:123456789012:instance/i-1"


def a_statement(**fields: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **fields}


def a_policy(*statements: dict[str, Any]) -> Policy:
    return policy({"Version": "2012-10-17", "Statement": list(statements)})


def allows(
    statement: dict[str, Any],
    context: Context | None = None,
    action: str = "s3:GetObject",
    resource: str = f"{BUCKET}/a/b",
) -> bool:
    return a_policy(a_statement(**statement)).allows(Need(action, resource, context or {}))


# -- actions and things ----------------------------------------------------------------------


def test_what_nothing_allows_is_denied() -> None:
    need = Need("s3:PutObject", f"{BUCKET}/a", {})
    assert a_policy(a_statement()).verdict(need) == "implicitly"


def test_an_explicit_deny_goes_before_every_allow() -> None:
    deny = a_statement(Effect="Deny", Resource=f"{BUCKET}/secret/*")
    for order in ((a_statement(), deny), (deny, a_statement())):
        held = a_policy(*order)
        assert held.verdict(Need("s3:GetObject", f"{BUCKET}/secret/x", {})) == "explicitly"
        assert held.allows(Need("s3:GetObject", f"{BUCKET}/plain", {}))


@pytest.mark.parametrize(
    ("said", "is_meant"),
    [
        ("s3:GetObject", True),
        ("S3:getobject", True),
        ("s3:Get*", True),
        ("s3:G?tObject", True),
        ("*", True),
        ("s3:GetObjec", False),
        ("s3:GetObjectTagging", False),
        (["s3:PutObject", "s3:GetObject"], True),
    ],
)
def test_an_action_is_named_or_like_a_pattern_whatever_its_case(said: Any, is_meant: bool) -> None:
    assert allows({"Action": said}) == is_meant


def test_all_actions_but_some_may_be_meant() -> None:
    held = a_policy({"Effect": "Allow", "NotAction": "s3:Delete*", "Resource": "*"})
    assert held.allows(Need("s3:GetObject", f"{BUCKET}/a", {}))
    assert not held.allows(Need("s3:DeleteObject", f"{BUCKET}/a", {}))


@pytest.mark.parametrize(
    ("said", "is_meant"),
    [
        (f"{BUCKET}/*", True),  # a star takes slashes too
        (f"{BUCKET}/a/?", True),
        (f"{BUCKET}/a?b", True),
        (f"{BUCKET}/a", False),
        (f"{BUCKET}/A/b", False),
        (BUCKET, False),
        ("arn:aws:s3:::*/a/b", True),
        ("arn:aws:ec2:::lab/a/b", False),
        ("arn:*", False),  # it does not reach over a colon
        ([f"{BUCKET}/x", f"{BUCKET}/a/*"], True),
    ],
)
def test_a_thing_is_named_part_by_part(said: Any, is_meant: bool) -> None:
    assert allows({"Resource": said}) == is_meant


def test_variables_stand_for_what_the_request_says_character_by_character() -> None:
    mine = {"Resource": f"{BUCKET}/${{aws:userid}}/*"}
    key = f"{BUCKET}/AROA:i-1/x"
    assert allows(mine, {"aws:userid": ("AROA:i-1",)}, resource=key)
    assert not allows(mine, {"aws:userid": ("AROA:i-2",)}, resource=key)
    assert not allows(mine, {}, resource=key), "a variable without a value matches nothing"
    assert not allows(mine, {"aws:userid": ("*",)}, resource=key), "its star is no wildcard"
    assert allows({"Resource": f"{BUCKET}/${{*}}"}, resource=f"{BUCKET}/*")
    assert not allows({"Resource": f"{BUCKET}/${{*}}"}, resource=f"{BUCKET}/x")
    assert allows({"Resource": f"{BUCKET}/${{aws:userid, 'a'}}/b"})


# -- conditions ------------------------------------------------------------------------------

X = {"aws:requesttag/x": ("one",)}


@pytest.mark.parametrize(
    ("condition", "context", "holds"),
    [
        ({"StringEquals": {"aws:RequestTag/x": "one"}}, X, True),
        ({"StringEquals": {"AWS:requesttag/X": ["two", "one"]}}, X, True),
        ({"StringEquals": {"aws:RequestTag/x": "o*"}}, X, False),
        ({"StringEquals": {"aws:RequestTag/x": "One"}}, X, False),
        ({"StringEquals": {"aws:RequestTag/x": "one"}}, {}, False),
        ({"StringEqualsIfExists": {"aws:RequestTag/x": "one"}}, {}, True),
        ({"StringEqualsIfExists": {"aws:RequestTag/x": "two"}}, X, False),
        ({"StringNotEquals": {"aws:RequestTag/x": "two"}}, X, True),
        ({"StringNotEquals": {"aws:RequestTag/x": ["two", "one"]}}, X, False),
        ({"StringNotEquals": {"aws:RequestTag/x": "two"}}, {}, True),
        ({"StringLike": {"aws:RequestTag/x": "o*"}}, X, True),
        ({"StringLike": {"aws:RequestTag/x": "?n?"}}, X, True),
        ({"StringLike": {"aws:RequestTag/x": "?"}}, X, False),
        ({"StringNotLike": {"aws:RequestTag/x": "o*"}}, X, False),
        ({"Null": {"aws:RequestTag/x": "false"}}, X, True),
        ({"Null": {"aws:RequestTag/x": "false"}}, {}, False),
        ({"Null": {"aws:RequestTag/x": "true"}}, {}, True),
        ({"Null": {"aws:RequestTag/x": "true"}}, X, False),
        ({"Bool": {"aws:SecureTransport": "true"}}, {"aws:securetransport": ("True",)}, True),
        ({"Bool": {"aws:SecureTransport": "true"}}, {"aws:securetransport": ("false",)}, False),
        ({"ArnLike": {"aws:SourceArn": "arn:aws:ec2:*:*:instance/*"}},
         {"aws:sourcearn": (INSTANCE,)}, True),
        ({"ArnLike": {"aws:SourceArn": "arn:aws:ec2:*"}}, {"aws:sourcearn": (INSTANCE,)}, False),
        ({"ArnNotLike": {"aws:SourceArn": INSTANCE}}, {"aws:sourcearn": (INSTANCE,)}, False),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}},
         {"aws:tagkeys": ("b", "a")}, True),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": ["a"]}}, {"aws:tagkeys": ("a", "c")}, False),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": ["a"]}}, {}, True),
        ({"ForAnyValue:StringLike": {"aws:TagKeys": ["a*"]}}, {"aws:tagkeys": ("ab", "c")}, True),
        ({"ForAnyValue:StringLike": {"aws:TagKeys": ["a*"]}}, {"aws:tagkeys": ("c",)}, False),
        ({"ForAnyValue:StringLike": {"aws:TagKeys": ["a*"]}}, {}, False),
        ({"StringEquals": {"aws:RequestTag/x": "one", "aws:RequestTag/y": "y"}}, X, False),
        ({"StringEquals": {"aws:RequestTag/x": "one"},
          "Null": {"aws:RequestTag/y": "true"}}, X, True),
        ({"StringEquals": {"aws:RequestTag/x": "${aws:userid}"}},
         {**X, "aws:userid": ("one",)}, True),
        ({"StringEquals": {"aws:RequestTag/x": "${aws:userid}"}}, X, False),
    ],
)  # fmt: skip
def test_conditions_hold_as_iam_has_them(condition: Any, context: Context, holds: bool) -> None:
    assert allows({"Condition": condition}, context) == holds


@pytest.mark.parametrize(
    "operator",
    ["StringEqual", "NumericLessThan", "DateGreaterThan", "IpAddress", "ForSome:StringEquals",
     "ForAllValues:Null", "BinaryEquals", "stringequals"],
)  # fmt: skip
def test_an_operator_that_is_not_known_is_an_error_and_no_pass(operator: str) -> None:
    with pytest.raises(Malformed, match="not known here"):
        a_policy(a_statement(Condition={operator: {"aws:RequestTag/x": "1"}}))


@pytest.mark.parametrize(
    "document",
    [
        {"Statement": [a_statement()]},
        {"Version": "2008-10-17", "Statement": [a_statement()]},
        {"Version": "2012-10-17", "Statement": []},
        {"Version": "2012-10-17", "Statement": ["Allow"]},
        {"Version": "2012-10-17", "Statement": [a_statement()], "Else": 1},
        {"Version": "2012-10-17", "Statement": [a_statement(Effect="allow")]},
        {"Version": "2012-10-17", "Statement": [a_statement(NotAction="s3:*")]},
        {"Version": "2012-10-17", "Statement": [a_statement(Principal="*")]},
        {"Version": "2012-10-17", "Statement": [a_statement(NotResource="*")]},
        {"Version": "2012-10-17", "Statement": [a_statement(Action=7)]},
        {"Version": "2012-10-17", "Statement": [a_statement(Resource=[])]},
        {"Version": "2012-10-17", "Statement": [a_statement(Condition=["Null"])]},
        {"Version": "2012-10-17", "Statement": [a_statement(Condition={"Null": "x"})]},
        {"Version": "2012-10-17", "Statement": [a_statement(Condition={"Null": {"x": "no"}})]},
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*"}]},
    ],
)
def test_what_is_no_policy_is_an_error(document: Any) -> None:
    with pytest.raises(Malformed):
        policy(document)


def test_one_statement_needs_no_list() -> None:
    held = policy({"Version": "2012-10-17", "Statement": a_statement()})
    assert held.allows(Need("s3:GetObject", f"{BUCKET}/a", {}))
