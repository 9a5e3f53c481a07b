"""What `doctor aws --fix` makes: what an account lacks, once, and nothing that is another's."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from boxed_aws import Box, boxed
from checked_aws import OFFERS

from cloudwhale.spi.provider import Amends, Check, Grounds
from cloudwhale_providers.aws import AwsProvider
from cloudwhale_providers.aws.checks_bucket import Bucket
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.aws.mending import documents
from cloudwhale_providers.aws.mending.buckets import rules
from cloudwhale_providers.aws.policies import Places, filled
from cloudwhale_providers.sandbox.endpoint import Weather
from cloudwhale_providers.sandbox.names import ACCOUNT

REGION = "us-east-1"
MAILBOX = f"s3://cloudwhale-{ACCOUNT}/cloudwhale"
EMPTY = {"instance_profile": "lab-machine",
         "scheduler_role": f"arn:aws:iam::{ACCOUNT}:role/lab-stops"}  # fmt: skip
"""Names that the account of the box has not: with them all is still to be made."""


@pytest.fixture(scope="module")
def opened() -> Iterator[Box]:
    with boxed(weather=WEATHER) as box:
        box_calls.cache_clear()
        yield box


@pytest.fixture
def box(opened: Box) -> Box:
    """Give an account without bucket, roles and policies of a test before."""
    opened.endpoint.no_faults()
    undone(opened)
    return opened


def undone(box: Box) -> None:
    """Take away what tests have made."""
    calls = box_calls()
    for one in calls.call(REGION, "s3", "list_buckets")["Buckets"]:
        found = calls.call(REGION, "s3", "list_objects_v2", Bucket=one["Name"])
        for entry in found.get("Contents", ()):
            calls.call(REGION, "s3", "delete_object", Bucket=one["Name"], Key=entry["Key"])
        for verb in ("delete_public_access_block", "delete_bucket_ownership_controls",
                     "delete_bucket_encryption", "delete_bucket_lifecycle",
                     "delete_bucket_tagging", "delete_bucket"):  # fmt: skip
            calls.call(REGION, "s3", verb, Bucket=one["Name"])
    _without_users()
    _without_roles()


def _without_users() -> None:
    for user in iam("list_users")["Users"]:
        who = user["UserName"]
        for one in iam("list_attached_user_policies", UserName=who)["AttachedPolicies"]:
            iam("detach_user_policy", UserName=who, PolicyArn=one["PolicyArn"])
        iam("delete_user", UserName=who)
    for policy in iam("list_policies", Scope="Local")["Policies"]:
        for one in iam("list_policy_versions", PolicyArn=policy["Arn"])["Versions"]:
            if not one["IsDefaultVersion"]:
                iam("delete_policy_version", PolicyArn=policy["Arn"], VersionId=one["VersionId"])
        iam("delete_policy", PolicyArn=policy["Arn"])


def _without_roles() -> None:
    for profile in iam("list_instance_profiles")["InstanceProfiles"]:
        name = profile["InstanceProfileName"]
        for role in profile["Roles"]:
            iam("remove_role_from_instance_profile", InstanceProfileName=name,
                RoleName=role["RoleName"])  # fmt: skip
        iam("delete_instance_profile", InstanceProfileName=name)
    for role in iam("list_roles")["Roles"]:
        name = role["RoleName"]
        for policy in iam("list_role_policies", RoleName=name)["PolicyNames"]:
            iam("delete_role_policy", RoleName=name, PolicyName=policy)
        iam("delete_role", RoleName=name)


def a_provider(box: Box, mailbox: str = "file:///home/ann/mailbox", **table: Any) -> AwsProvider:
    grounds = Grounds("aws", "", table, lambda now: OFFERS, box.clock, mailbox)
    return AwsProvider(grounds, box_calls(), pause=lambda for_s: None)


@cache
def box_calls() -> Clients:
    """Return the clients of all tests: to make new ones takes a second."""
    return Clients(attempts=1)


def amends(box: Box, mailbox: str = "file:///x", allow: str = "", **table: Any) -> Amends:
    return a_provider(box, mailbox, **table).amends(lambda: "lab-1", allow)


def made(found: Amends) -> dict[str, Check]:
    return {one.name.removeprefix("aws "): one.mend() for one in found.mendings}


def names(found: Amends) -> list[str]:
    return [one.name.removeprefix("aws ") for one in found.mendings]


def s3(verb: str, **words: Any) -> Mapping[str, Any]:
    name = words.pop("Bucket", f"cloudwhale-{ACCOUNT}")
    return box_calls().call(REGION, "s3", verb, Bucket=name, **words)


def iam(verb: str, **words: Any) -> Mapping[str, Any]:
    return box_calls().call(REGION, "iam", verb, **words)


WEATHER = Weather(spot_role=False, foreign_buckets=frozenset({"theirs"}))
OLD = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::old/*"}]})  # fmt: skip
"""A policy that is none of ours."""
ALL = [
    "bucket", "bucket's privacy", "bucket's owner", "bucket's encryption", "bucket's lifecycle",
    "bucket's tag", "machine role", "machine role's policy", "machine profile", "stop role",
    "stop role's policy", "spot role",
]  # fmt: skip
"""What an account that has nothing lacks; the trust of a new role comes with it."""


def test_an_account_that_has_nothing_gets_all_that_machines_need(box: Box) -> None:
    found = amends(box)
    assert names(found) == ALL
    assert {row.state for row in made(found).values()} == {"ok"}
    checks = a_provider(box, found.mailbox, **found.settings).check()
    assert [one for one in checks if one.state == "failed"] == []


def test_looking_changes_nothing(box: Box) -> None:
    amends(box, allow="ann")
    assert s3_names() == []
    assert iam("list_roles")["Roles"] == []


def s3_names() -> list[str]:
    buckets = box_calls().call(REGION, "s3", "list_buckets")["Buckets"]
    return [str(one["Name"]) for one in buckets]


def test_a_second_time_there_is_nothing_to_do(box: Box) -> None:
    made(amends(box))
    again = amends(box)
    assert again.mendings == []
    assert {row.state for row in again.rows} == {"ok"}


def test_the_settings_name_what_was_made(box: Box) -> None:
    found = amends(box)
    assert found.mailbox == MAILBOX
    assert found.settings == {
        "regions": [REGION],
        "instance_profile": "cloudwhale-machine",
        "scheduler_role": f"arn:aws:iam::{ACCOUNT}:role/cloudwhale-stops",
    }


def test_names_that_the_settings_have_are_kept(box: Box) -> None:
    found = amends(box, "s3://lab/whale", regions=["eu-west-1"], **EMPTY)
    rows = made(found)
    assert {row.state for row in rows.values()} == {"ok"}
    assert found.mailbox == ""
    assert found.settings == {"regions": ["eu-west-1"], **EMPTY}
    assert s3_names() == ["lab"]
    profile = iam("get_instance_profile", InstanceProfileName="lab-machine")["InstanceProfile"]
    assert [role["RoleName"] for role in profile["Roles"]] == ["lab-machine"]
    policy = json.loads(found.policy)
    assert f"arn:aws:iam::{ACCOUNT}:role/lab-machine" in json.dumps(policy)
    assert "cloudwhale-stops" not in json.dumps(policy)


def test_the_bucket_is_private_encrypted_and_forgets(box: Box) -> None:
    made(amends(box))
    block = s3("get_public_access_block")["PublicAccessBlockConfiguration"]
    assert len(block) == 4 and all(block.values())
    owned = s3("get_bucket_ownership_controls")["OwnershipControls"]["Rules"]
    assert owned == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert s3("get_bucket_encryption")["ServerSideEncryptionConfiguration"]["Rules"]
    assert s3("get_bucket_lifecycle_configuration")["Rules"] == rules("cloudwhale")
    assert s3("get_bucket_tagging")["TagSet"] == [
        {"Key": "cloudwhale:installation", "Value": "lab-1"}
    ]


def test_what_users_keep_is_never_forgotten_by_age() -> None:
    expired = [one["Filter"]["Prefix"] for one in rules("lab") if "Expiration" in one]
    kept = ("bundles/", "checkpoints/", "installation.json", "logs/", "orders/gpu7/", "outputs/",
            "workdirs/")  # fmt: skip
    assert not [key for key in kept if any(f"lab/{key}".startswith(prefix) for prefix in expired)]


def test_a_bucket_in_another_region_is_made_there(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert made(amends(box))["bucket"].state == "ok"
    assert s3("get_bucket_location")["LocationConstraint"] == "eu-west-1"


def test_a_bucket_that_is_elsewhere_is_mended_where_it_is(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    made(amends(box))
    s3("delete_bucket_lifecycle")
    monkeypatch.setenv("AWS_REGION", REGION)
    found = amends(box)
    assert names(found) == ["bucket's lifecycle"]
    assert made(found)["bucket's lifecycle"].state == "ok"
    (bad,) = [one for one in a_provider(box, MAILBOX).check() if one.name == "aws bucket"]
    assert "export AWS_REGION=eu-west-1" in bad.remedy


def test_rules_and_tags_of_others_stay(box: Box) -> None:
    made(amends(box))
    own: dict[str, Any] = {"ID": "mine", "Status": "Enabled", "Filter": {"Prefix": "mine/"},
                           "Expiration": {"Days": 3}}  # fmt: skip
    old = {**rules("cloudwhale")[0], "Status": "Disabled"}
    s3("put_bucket_lifecycle_configuration", LifecycleConfiguration={"Rules": [own, old]})
    s3("put_bucket_tagging", Tagging={"TagSet": [{"Key": "team", "Value": "nlp"}]})
    found = amends(box)
    assert names(found) == ["bucket's lifecycle", "bucket's tag"]
    made(found)
    kept = s3("get_bucket_lifecycle_configuration")["Rules"]
    assert own in kept and old not in kept and len(kept) == 1 + len(rules("cloudwhale"))
    assert {one["Key"] for one in s3("get_bucket_tagging")["TagSet"]} == {
        "team", "cloudwhale:installation",
    }  # fmt: skip


def test_an_encryption_that_somebody_has_chosen_stays(box: Box) -> None:
    made(amends(box))
    chosen = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}
    s3("put_bucket_encryption", ServerSideEncryptionConfiguration={"Rules": [chosen]})
    assert names(amends(box)) == []


def test_a_policy_of_an_older_version_is_written_anew(box: Box) -> None:
    made(amends(box))
    name = documents.name_for("machine", Bucket(f"cloudwhale-{ACCOUNT}", "cloudwhale"))
    iam("put_role_policy", RoleName="cloudwhale-machine", PolicyName=name,
        PolicyDocument=OLD)  # fmt: skip
    found = amends(box)
    assert names(found) == ["machine role's policy"]
    made(found)
    said = iam("get_role_policy", RoleName="cloudwhale-machine", PolicyName=name)
    ours = filled("machine-policy", Places(ACCOUNT, f"cloudwhale-{ACCOUNT}"))
    assert documents.same(ours, said["PolicyDocument"])


def test_another_mailbox_of_the_account_keeps_its_own_policy(box: Box) -> None:
    made(amends(box, "s3://one/lab"))
    made(amends(box, "s3://two/lab"))
    told = iam("list_role_policies", RoleName="cloudwhale-machine")["PolicyNames"]
    assert sorted(told) == ["machine.one.lab", "machine.two.lab"]


def test_a_role_that_trusts_somebody_else_trusts_ours_too(box: Box) -> None:
    trust = {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"},
         "Action": "sts:AssumeRole"}]}  # fmt: skip
    iam("create_role", RoleName="cloudwhale-stops", AssumeRolePolicyDocument=json.dumps(trust))
    found = amends(box)
    assert "stop role's trust" in names(found) and "stop role" not in names(found)
    made(found)
    said = iam("get_role", RoleName="cloudwhale-stops")["Role"]["AssumeRolePolicyDocument"]
    services = [one["Principal"]["Service"] for one in said["Statement"]]
    assert services == ["lambda.amazonaws.com", "scheduler.amazonaws.com"]


def test_a_profile_without_a_role_gets_it(box: Box) -> None:
    made(amends(box))
    iam("remove_role_from_instance_profile", InstanceProfileName="cloudwhale-machine",
        RoleName="cloudwhale-machine")  # fmt: skip
    found = amends(box)
    assert names(found) == ["machine profile"]
    assert made(found)["machine profile"].state == "ok"


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "row", "permission"),
    [
        ("PutPublicAccessBlock", "bucket's privacy", "s3:PutBucketPublicAccessBlock"),
        ("PutBucketLifecycleConfiguration", "bucket's lifecycle", "s3:PutLifecycleConfiguration"),
        ("CreateRole", "machine role", "iam:CreateRole"),
        ("PutRolePolicy", "machine role's policy", "iam:PutRolePolicy"),
        ("CreateServiceLinkedRole", "spot role", "iam:CreateServiceLinkedRole"),
    ],
)
def test_a_refusal_names_the_permission_and_the_rest_is_made(
    box: Box, action: str, row: str, permission: str
) -> None:
    found = amends(box)
    box.endpoint.fault(action, "error-before", code="AccessDenied")
    rows = made(found)
    assert rows[row].state == "failed"
    assert rows[row].remedy.startswith(f"Allow {permission} to")
    hanging = {"machine role": {"machine role's policy", "machine profile"}}.get(row, set())
    assert {name for name, one in rows.items() if one.state != "ok"} == {row, *hanging}


def test_what_hangs_on_a_bucket_is_not_tried_without_it(box: Box) -> None:
    found = amends(box)
    box.endpoint.fault("PutBucket", "error-before", code="AccessDenied")
    rows = made(found)
    assert "s3:CreateBucket" in rows["bucket"].remedy
    own = {row.says for name, row in rows.items() if name.startswith("bucket's")}
    assert own == {"not tried, as there is no bucket"}
    assert rows["stop role"].state == "ok"


def test_what_may_not_be_looked_at_is_a_row_with_the_permission(box: Box) -> None:
    made(amends(box))
    box.endpoint.fault("GetBucketLifecycleConfiguration", "error-before", code="AccessDenied")
    found = amends(box)
    (bad,) = [row for row in found.rows if row.state != "ok"]
    assert bad.name == "aws bucket's lifecycle"
    assert "s3:GetLifecycleConfiguration" in bad.remedy
    assert found.mendings == []


def test_a_bucket_of_somebody_else_is_never_changed(box: Box) -> None:
    found = amends(box, "s3://theirs/lab")
    (bad,) = [row for row in found.rows if row.state != "ok"]
    assert bad.name == "aws bucket" and "another account's" in bad.says
    assert "another name" in bad.remedy
    assert not [name for name in names(found) if name.startswith("bucket")]


def test_whoever_has_no_credentials_is_told_so_in_the_only_row(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    grounds = Grounds("aws", "", {}, lambda now: OFFERS, box.clock)
    found = AwsProvider(grounds, Clients(attempts=1)).amends(lambda: "lab-1")
    (row,) = found.rows
    assert (row.name, row.state) == ("aws credentials", "failed")
    assert "aws configure" in row.remedy
    assert not found.mendings and not found.settings and not found.policy


def test_who_was_faster_is_no_trouble(box: Box) -> None:
    first, second = amends(box), amends(box)
    made(first)
    assert {row.state for row in made(second).values()} == {"ok"}


# -- whoever runs cloudwhale -----------------------------------------------------------------


def test_the_policy_of_the_controller_is_given_only_when_that_is_asked_for(box: Box) -> None:
    iam("create_user", UserName="ann")
    made(amends(box))
    assert iam("list_policies", Scope="Local")["Policies"] == []
    found = amends(box, allow="ann")
    assert names(found) == ["policy", "permission"]
    assert {row.state for row in made(found).values()} == {"ok"}
    (told,) = iam("list_attached_user_policies", UserName="ann")["AttachedPolicies"]
    assert told["PolicyName"] == f"cloudwhale-controller.cloudwhale-{ACCOUNT}.cloudwhale"
    assert amends(box, allow="user/ann").mendings == []


def test_a_policy_of_the_controller_that_is_older_becomes_a_new_version(box: Box) -> None:
    iam("create_user", UserName="ann")
    made(amends(box, allow="ann"))
    arn = f"arn:aws:iam::{ACCOUNT}:policy/cloudwhale-controller.cloudwhale-{ACCOUNT}.cloudwhale"
    for _ in range(4):
        iam("create_policy_version", PolicyArn=arn, PolicyDocument=OLD, SetAsDefault=True)
    found = amends(box, allow="ann")
    assert names(found) == ["policy"]
    assert made(found)["policy"].state == "ok"
    assert len(iam("list_policy_versions", PolicyArn=arn)["Versions"]) == 5


def test_a_user_who_is_not_there_is_told_by_name(box: Box) -> None:
    (bad,) = [row for row in amends(box, allow="bob").rows if row.state == "failed"]
    assert "no user bob" in bad.says
