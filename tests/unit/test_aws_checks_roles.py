"""What `doctor aws` says of roles and of the mailbox's bucket: what is wrong, and what mends it."""

import pytest
from checked_aws import row, rows_of
from scripted_aws import ACCOUNT, ScriptedAws, refusal, said

from cloudwhale_providers.aws import checks_bucket
from cloudwhale_providers.aws.clients import Clients

# -- roles -----------------------------------------------------------------------------------


def test_an_account_that_never_had_spot_is_told_the_command(
    aws: ScriptedAws, calls: Clients
) -> None:
    aws.script(
        lambda verb: (
            refusal(verb, "NoSuchEntity", status=404)
            if verb.words.get("RoleName", "").startswith("AWSServiceRole")
            else None
        )
    )
    found = row(rows_of(calls), "spot role")
    assert found.state == "warning"
    assert (
        "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com" in found.remedy
    )


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ("", "could not reach the mailbox"),
        ("nobody", "there is no instance profile nobody"),
        (f"arn:aws:iam::{ACCOUNT}:instance-profile/nobody", "no instance profile nobody"),
        ("empty", "has no role"),
    ],
)
def test_machines_without_a_role_could_not_work(
    aws: ScriptedAws, calls: Clients, profile: str, says: str
) -> None:
    found = row(rows_of(calls, instance_profile=profile), "machine role")
    assert (found.state, says in found.says, bool(found.remedy)) == ("failed", True, True)


@pytest.mark.parametrize(
    ("role", "state", "says"),
    [
        ("", "warning", "AWS does not end machines on time"),
        (f"arn:aws:iam::{ACCOUNT}:role/nobody", "failed", "there is no role nobody"),
        ("arn:aws:iam::999999999999:role/stops", "failed", "of account 999999999999"),
        (f"arn:aws:iam::{ACCOUNT}:role/for-lambda", "failed", "does not trust scheduler"),
    ],
)
def test_a_role_that_could_not_end_machines_is_told(
    aws: ScriptedAws, calls: Clients, role: str, state: str, says: str
) -> None:
    found = row(rows_of(calls, scheduler_role=role), "stop role")
    assert (found.state, says in found.says, bool(found.remedy)) == (state, True, True)


def test_roles_that_may_not_be_seen_may_be_there(aws: ScriptedAws, calls: Clients) -> None:
    aws.refuse("GetRole", "AccessDenied", status=403)
    found = row(rows_of(calls), "stop role")
    assert (found.state, "iam:GetRole" in found.remedy) == ("warning", True)


# -- bucket ----------------------------------------------------------------------------------


def test_a_name_that_no_bucket_can_have_is_said_to_be_one(aws: ScriptedAws, calls: Clients) -> None:
    found = row(rows_of(calls, mailbox="s3://lab bucket!/whale"), "bucket")
    assert (found.state, found.says) == ("failed", "no bucket can have the name lab bucket!")
    assert "Set `mailbox` to s3://NAME/cloudwhale" in found.remedy


def test_credentials_of_a_profile_are_not_found_by_the_mailboxs_client() -> None:
    found = checks_bucket.credentials(f"arn:aws:iam::{ACCOUNT}:user/ann", {"AWS_REGION": "x"})
    assert found is not None and found.state == "failed"
    assert "export-credentials --format env" in found.remedy


@pytest.mark.parametrize(
    ("arn", "told"),
    [
        ("user/ann", {"AWS_ACCESS_KEY_ID": "dummy"}),
        ("assumed-role/lab/session", {"AWS_WEB_IDENTITY_TOKEN_FILE": "/var/token"}),
        ("assumed-role/lab/i-0123456789abcdef0", {}),
    ],
)
def test_credentials_of_the_environment_or_the_machine_are_found(
    arn: str, told: dict[str, str]
) -> None:
    assert checks_bucket.credentials(f"arn:aws:sts::{ACCOUNT}:{arn}", told) is None


def test_a_bucket_that_is_not_there_has_its_command(aws: ScriptedAws, calls: Clients) -> None:
    found = row(rows_of(calls, mailbox="s3://nowhere/x"), "bucket")
    assert (found.state, "nowhere" in found.says) == ("failed", True)
    assert "aws s3 mb s3://nowhere" in found.remedy


def test_a_mailbox_on_this_host_is_out_of_machines_reach(aws: ScriptedAws, calls: Clients) -> None:
    found = row(rows_of(calls, mailbox="file:///home/ann/mailbox"), "bucket")
    assert (found.state, "cannot reach" in found.says) == ("failed", True)


def test_a_bucket_in_another_region_is_told_with_its_region(
    aws: ScriptedAws, calls: Clients
) -> None:
    found = row(rows_of(calls, mailbox="s3://far-away/x"), "bucket")
    assert (found.state, "is in eu-west-1" in found.says) == ("failed", True)
    assert "export AWS_REGION=eu-west-1" in found.remedy


def test_a_bucket_is_well_where_the_environment_says_that_it_is(
    aws: ScriptedAws, calls: Clients
) -> None:
    told = {"AWS_DEFAULT_REGION": "eu-west-1"}
    found = row(rows_of(calls, mailbox="s3://far-away/x", environment=told), "bucket")
    assert found.state == "ok"


def test_a_bucket_of_somebody_else_is_not_used(aws: ScriptedAws, calls: Clients) -> None:
    aws.script(
        lambda verb: (
            refusal(verb, "AccessDenied", status=403)
            if verb.name == "HeadBucket" and verb.words["Owner"]
            else None
        )
    )
    found = row(rows_of(calls), "bucket")
    assert (found.state, "another AWS account" in found.says) == ("failed", True)
    assert not aws.counted("PutObject")


def test_a_bucket_that_lets_nobody_in_names_the_permission(
    aws: ScriptedAws, calls: Clients
) -> None:
    aws.refuse("HeadBucket", "AccessDenied", status=403)
    assert "s3:ListBucket" in row(rows_of(calls), "bucket").remedy


@pytest.mark.parametrize("verb", ["PutObject", "DeleteObject"])
def test_a_bucket_that_cannot_be_written_names_the_permission(
    aws: ScriptedAws, calls: Clients, verb: str
) -> None:
    aws.refuse(verb, "AccessDenied", status=403)
    found = row(rows_of(calls), "bucket")
    assert f"s3:{verb} on arn:aws:s3:::mailbox-1/cloudwhale/*" in found.remedy


def test_a_store_that_lets_things_be_made_twice_is_refused(
    aws: ScriptedAws, calls: Clients
) -> None:
    answer = type(said({}))(200, {"ETag": '"1"'}, b"")
    aws.script(lambda verb: answer if verb.name == "PutObject" else None)
    found = row(rows_of(calls), "bucket")
    assert (found.state, "twice" in found.says) == ("failed", True)
