"""What `doctor aws` says of an account and its regions: what is wrong, and what mends it."""

from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from checked_aws import GOOD, OFFERS, PROFILE, REGION, an_offer, bad, row, rows_of
from scripted_aws import ACCOUNT, ScriptedAws, hasty_clients, said

from cloudwhale.clock import SystemClock
from cloudwhale.control.checks import checks
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import SettingsError
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.aws.images import DEFAULT, KNOWN
from cloudwhale_providers.aws.settings import read


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
    assert {one.name.partition(" ")[0] for one in rows} == {"aws", "bundle"}
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
    aws: ScriptedAws,
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
    rows = rows_of(calls, image=DEFAULT)
    found = row(rows, "image")
    assert (found.state, KNOWN[DEFAULT].parameter in found.says) == ("failed", True)
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
