"""What `doctor aws` says of an account: each wrong thing, and the command that mends it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from scripted_aws import ACCOUNT, ScriptedAws, an_account, hasty_clients, refusal, said

from cloudwhale.clock import SystemClock
from cloudwhale.control.checks import checks
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.provider import Check
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.checks import Checks
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.aws.images import PARAMETER
from cloudwhale_providers.aws.settings import read
from cloudwhale_providers.prices.aws import quota_group

REGION = "us-east-1"
PROFILE, STOPS = "cloudwhale-machine", "cloudwhale-stops"
TRUST = json.loads(
    (Path(__file__).parents[2] / "infra/aws/scheduler-trust.json").read_text(encoding="utf-8")
)
GOOD: Mapping[str, Any] = {
    "regions": [REGION],
    "instance_profile": PROFILE,
    "scheduler_role": f"arn:aws:iam::{ACCOUNT}:role/{STOPS}",
    "image": "ami-12c6146b",
}


def an_offer(type_name: str, market: Any, region: str = REGION, vcpus: float = 4.0) -> Offer:
    return Offer(
        id=f"aws/{region}a/{type_name}/{market}", provider="aws", region=region, zone=f"{region}a",
        market=market, facts=Facts(cpu=vcpus, memory_gib=14.0, disk_gib=120.0), type=type_name,
        price_usd_h=MicroUsd(1), cap_usd_h=MicroUsd(1), boot_s=0.0, quota_units=vcpus,
        quota=f"aws/{region}/{market}/{quota_group(type_name, market)}",
    )  # fmt: skip


OFFERS = (an_offer("g5.xlarge", "spot"), an_offer("g5.xlarge", "on-demand"))


@pytest.fixture(scope="module")
def cloud() -> Iterator[tuple[ScriptedAws, Clients, pytest.MonkeyPatch]]:
    """An account in which all is well."""
    with an_account() as (aws, patch):
        aws.forget()
        calls = hasty_clients()
        _furnish(calls)
        yield aws, calls, patch


def _furnish(calls: Clients) -> None:
    def make(service: str, verb: str, **words: Any) -> None:
        calls.call(REGION, service, verb, **words)

    for name in ("mailbox-1", "mailbox-2"):
        make("s3", "create_bucket", Bucket=name)
    west = {"LocationConstraint": "eu-west-1"}
    calls.call(
        "eu-west-1", "s3", "create_bucket", Bucket="far-away", CreateBucketConfiguration=west
    )
    trust = json.dumps(TRUST)
    make("iam", "create_role", RoleName="AWSServiceRoleForEC2Spot", AssumeRolePolicyDocument=trust)
    make("iam", "create_role", RoleName=STOPS, AssumeRolePolicyDocument=trust)
    make("iam", "create_role", RoleName="machines", AssumeRolePolicyDocument="{}")
    make("iam", "create_role", RoleName="for-lambda", AssumeRolePolicyDocument="{}")
    for name in (PROFILE, "empty"):
        make("iam", "create_instance_profile", InstanceProfileName=name)
    make("iam", "add_role_to_instance_profile", InstanceProfileName=PROFILE, RoleName="machines")


@pytest.fixture
def aws(cloud: tuple[ScriptedAws, Clients, pytest.MonkeyPatch]) -> ScriptedAws:
    cloud[0].unscript()
    return cloud[0]


@pytest.fixture
def calls(cloud: tuple[ScriptedAws, Clients, pytest.MonkeyPatch]) -> Clients:
    return cloud[1]


def rows_of(
    calls: Clients,
    mailbox: str = "s3://mailbox-1/cloudwhale",
    offers: Sequence[Offer] = OFFERS,
    environment: Mapping[str, str] | None = None,
    **changed: Any,
) -> Sequence[Check]:
    options = read({**GOOD, **changed})
    account = Account(calls, "whale-1", options, SystemClock())
    told = {"AWS_REGION": REGION} if environment is None else environment
    return Checks(account, mailbox, lambda now: offers, told).rows()


def row(rows: Sequence[Check], name: str) -> Check:
    return next(one for one in rows if one.name == f"aws {name}")


def bad(rows: Sequence[Check]) -> list[Check]:
    return [one for one in rows if one.state != "ok"]


def test_an_account_in_which_all_is_there_is_well(aws: ScriptedAws, calls: Clients) -> None:
    rows = rows_of(calls)
    assert bad(rows) == []
    # A row of the clock is there where answers have a date, which moto's have not.
    names = [one.name.removeprefix("aws ") for one in rows]
    assert names == [
        "credentials", "regions", "network", "image", "quotas", "launches",
        "spot role", "machine role", "stop role", "bucket",
    ]  # fmt: skip


def test_the_command_shows_the_rows_of_one_provider(
    aws: ScriptedAws, calls: Clients, tmp_path: Path
) -> None:
    settings = Settings(
        home=tmp_path, mailbox="s3://mailbox-1/cloudwhale", clouds={"aws": dict(GOOD)}
    )
    rows = checks(settings, "aws")
    assert {one.name.partition(" ")[0] for one in rows} == {"aws"}
    assert bad(rows) == []


def test_a_provider_that_is_not_set_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no provider 'gcp', but aws, local"):
        checks(Settings(home=tmp_path, clouds={"aws": {}}), "gcp")


def test_nothing_is_left_of_a_look(aws: ScriptedAws, calls: Clients) -> None:
    rows_of(calls, mailbox="s3://mailbox-2/x")
    assert "Contents" not in calls.call(REGION, "s3", "list_objects_v2", Bucket="mailbox-2")


# -- credentials and clock -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "says", "remedy"),
    [
        ("InvalidClientTokenId", "does not know this access key", "aws configure"),
        ("SignatureDoesNotMatch", "secret key does not belong", "aws configure"),
        ("ExpiredToken", "have run out", "aws sso login"),
    ],
)
def test_credentials_that_are_refused_are_the_only_row(
    aws: ScriptedAws, calls: Clients, code: str, says: str, remedy: str
) -> None:
    aws.refuse_all(code, status=403)
    rows = rows_of(calls)
    assert [one.name for one in rows] == ["aws credentials"]
    assert rows[0].state == "failed"
    assert says in rows[0].says
    assert remedy in rows[0].remedy


def test_whoever_has_no_credentials_is_told_how_to_make_some(
    aws: ScriptedAws, cloud: tuple[ScriptedAws, Clients, pytest.MonkeyPatch]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("AWS_ACCESS_KEY_ID")
        patch.delenv("AWS_SECRET_ACCESS_KEY")
        rows = rows_of(hasty_clients())
    assert [(one.name, one.state) for one in rows] == [("aws credentials", "failed")]
    assert "aws configure" in rows[0].remedy
    assert aws.asked == []


def test_a_profile_that_is_not_there_is_named(aws: ScriptedAws) -> None:
    rows = rows_of(Clients("nobody", attempts=1))
    assert "nobody" in rows[0].says
    assert "aws configure list-profiles" in rows[0].remedy


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("RequestTimeTooSkewed", "The difference is too large"),
        ("SignatureDoesNotMatch", "Signature expired: 20261130T010000Z is now earlier than 0130Z"),
        ("RequestExpired", "Request has expired"),
    ],
)
def test_a_clock_that_aws_refuses_is_to_be_set(
    aws: ScriptedAws, calls: Clients, code: str, message: str
) -> None:
    aws.refuse_all(code, message, status=403)
    (only,) = rows_of(calls)
    assert "clock" in only.says
    assert "timedatectl" in only.remedy


@pytest.mark.parametrize(
    ("off_s", "state", "way"), [(90, "warning", "ahead of"), (-900, "failed", "behind")]
)
def test_a_clock_that_is_off_is_seen_before_aws_refuses_it(
    aws: ScriptedAws, calls: Clients, off_s: int, state: str, way: str
) -> None:
    inner = f"<Arn>arn:aws:iam::{ACCOUNT}:user/ann</Arn><Account>{ACCOUNT}</Account>"
    result = f"<GetCallerIdentityResult>{inner}</GetCallerIdentityResult>"
    body = f"<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>"
    date = formatdate(SystemClock().now() - off_s, usegmt=True)

    def dated(verb: Any) -> Any:
        if verb.name != "GetCallerIdentity":
            return None
        answer = said({})
        return type(answer)(200, {"Content-Type": "text/xml", "Date": date}, body.encode())

    aws.script(dated)
    found = row(rows_of(calls), "clock")
    assert (found.state, way in found.says) == (state, True)
    assert "timedatectl" in found.remedy


def test_a_cloud_out_of_reach_is_a_row_and_no_error(aws: ScriptedAws) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        rows = rows_of(Clients(attempts=1, answer_s=1.0))
    assert [(one.name, one.state) for one in rows] == [("aws credentials", "failed")]


# -- regions ---------------------------------------------------------------------------------


def test_a_region_that_is_not_enabled_has_its_command(aws: ScriptedAws, calls: Clients) -> None:
    one = f"<item><regionName>{REGION}</regionName></item>"
    body = f"<DescribeRegionsResponse><regionInfo>{one}</regionInfo></DescribeRegionsResponse>"
    answer = type(said({}))(200, {"Content-Type": "text/xml"}, body.encode())
    aws.script(lambda verb: answer if verb.name == "DescribeRegions" else None)
    rows = rows_of(calls, regions=[REGION, "me-central-1"])
    found = next(one for one in rows if one.name == "aws regions" and one.state == "failed")
    assert "me-central-1" in found.says
    assert "aws account enable-region --region-name me-central-1" in found.remedy
    assert row(rows, "network").says.startswith(REGION)


def test_an_unknown_region_in_the_settings_is_refused_with_those_near_it() -> None:
    with pytest.raises(SettingsError, match=r"clouds\.aws.*'us-esat-1'") as caught:
        read({"regions": ["us-esat-1"]})
    assert "us-east-1" in caught.value.remedy


def test_whoever_may_not_list_regions_is_told_the_permission(
    aws: ScriptedAws, calls: Clients
) -> None:
    aws.refuse("DescribeRegions", "UnauthorizedOperation", status=403)
    assert "ec2:DescribeRegions" in row(rows_of(calls), "regions").remedy


def test_regions_in_which_all_is_alike_share_a_row(aws: ScriptedAws, calls: Clients) -> None:
    offers = [*OFFERS, an_offer("g5.xlarge", "spot", "eu-west-1")]
    rows = rows_of(calls, regions=["*"], offers=offers)
    assert row(rows, "network").says.startswith("eu-west-1, us-east-1: ")


# -- network, image, quotas, permission ------------------------------------------------------


def test_no_default_network_has_its_command(aws: ScriptedAws, calls: Clients) -> None:
    empty = b"<DescribeVpcsResponse><vpcSet/></DescribeVpcsResponse>"
    aws.script(
        lambda verb: (
            type(said({}))(200, {"Content-Type": "text/xml"}, empty)
            if verb.name == "DescribeVpcs"
            else None
        )
    )
    found = row(rows_of(calls), "network")
    assert (found.state, "no default VPC" in found.says) == ("failed", True)
    assert f"aws ec2 create-default-vpc --region {REGION}" in found.remedy


def test_subnets_that_are_not_there_are_named(aws: ScriptedAws, calls: Clients) -> None:
    found = row(rows_of(calls, subnets={REGION: ["subnet-12345678"]}), "network")
    assert (found.state, "subnet-12345678" in found.says) == ("failed", True)
    assert "`subnets`" in found.remedy


def test_an_image_whose_parameter_is_missing_is_named_with_the_setting(
    aws: ScriptedAws, calls: Clients
) -> None:
    aws.refuse("GetParameter", "ParameterNotFound")
    rows = rows_of(calls, image=PARAMETER)
    found = row(rows, "image")
    assert (found.state, PARAMETER in found.says) == ("failed", True)
    assert "`image` in [clouds.aws]" in found.remedy
    assert f"--region {REGION}" in found.remedy
    assert not [one for one in rows if one.name == "aws launches"]  # it could not be asked


def test_an_image_that_is_not_there_is_named(aws: ScriptedAws, calls: Clients) -> None:
    aws.refuse("DescribeImages", "InvalidAMIID.NotFound")
    found = row(rows_of(calls), "image")
    assert (found.state, "ami-12c6146b" in found.says) == ("failed", True)


def test_a_quota_of_nothing_has_its_code_and_its_command(aws: ScriptedAws, calls: Clients) -> None:
    def none_of_spot(verb: Any) -> Any:
        if verb.words.get("QuotaCode") != "L-3819A6DF":
            return None
        return said({"Quota": {"Value": 0.0}})

    aws.script(none_of_spot)
    found = row(rows_of(calls), "quotas")
    assert (found.state, "L-3819A6DF" in found.says) == ("warning", True)
    assert (
        "aws service-quotas request-service-quota-increase --service-code ec2 "
        f"--quota-code L-3819A6DF --desired-value 4 --region {REGION}"
    ) in found.remedy


def test_when_every_quota_is_nothing_nothing_can_be_rented(
    aws: ScriptedAws, calls: Clients
) -> None:
    aws.says("GetServiceQuota", {"Quota": {"Value": 0.0}})
    found = [one for one in rows_of(calls) if one.name == "aws quotas"]
    assert [one.state for one in found] == ["failed", "failed"]
    assert {"L-3819A6DF" in one.says for one in found} == {True, False}


def test_quotas_that_may_not_be_read_are_a_warning(aws: ScriptedAws, calls: Clients) -> None:
    aws.refuse("GetServiceQuota", "AccessDeniedException")
    rows = [one for one in rows_of(calls) if one.name == "aws quotas"]
    assert "servicequotas:GetServiceQuota" in rows[-1].remedy
    assert rows[-1].state == "warning"


def test_a_launch_that_is_not_permitted_names_the_action(aws: ScriptedAws, calls: Clients) -> None:
    why = "not authorized to perform: iam:PassRole on resource machines"
    aws.refuse("RunInstances", "UnauthorizedOperation", why, status=403)
    found = row(rows_of(calls), "launches")
    assert (found.state, why in found.says) == ("failed", True)
    assert "ec2:RunInstances" in found.remedy
    assert "iam:PassRole" in found.remedy


def test_a_dry_run_says_what_policies_look_at(aws: ScriptedAws, calls: Clients) -> None:
    rows_of(calls)
    asked = next(one.words for one in aws.asked if one.name == "RunInstances")
    assert asked["DryRun"] == "true"
    assert asked["IamInstanceProfile.Name"] == PROFILE
    assert "cloudwhale:installation" in asked.values()


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
