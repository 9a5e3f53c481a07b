"""What AWS's error codes become: each provoked, as a refusal and in a fleet's answer."""

from typing import Any

import pytest
from renting_aws import a_clock, a_provider, a_request, an_offer
from small_aws import SmallAws
from small_schedules import refused

from cloudwhale.spi.errors import (
    CloudwhaleError,
    Denied,
    NoCapacity,
    PriceMoved,
    QuotaExceeded,
    TryAnother,
    Unreachable,
)
from cloudwhale_providers.aws.errors import BOTO, REACTIONS, Errand, failure, refusal

NO_HARDWARE = (
    "InsufficientInstanceCapacity", "UnfulfillableCapacity", "InsufficientHostCapacity",
    "InsufficientReservedInstanceCapacity", "ReservationCapacityExceeded", "Unsupported",
    "InvalidAvailabilityZone", "InsufficientFreeAddressesInSubnet", "MaxFleetCountExceeded",
)  # fmt: skip
QUOTA = ("MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "InstanceLimitExceeded")
UNKNOWN = (
    "RequestLimitExceeded", "Throttling", "ThrottlingException", "InternalError",
    "InternalFailure", "ServiceUnavailable", "Unavailable", "ServerInternal",
)  # fmt: skip
ACCOUNT = (
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "UnauthorizedOperation", "AuthFailure",
    "OptInRequired", "PendingVerification", "Blocked", "ExpiredToken", "RequestExpired",
    "InvalidClientTokenId", "SignatureDoesNotMatch",
)  # fmt: skip
MISTAKES = (
    "InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIName.NotFound",
    "InvalidParameterValue", "InvalidParameterCombination", "InvalidParameter",
    "InvalidUserData.Malformed", "InvalidLaunchTemplateId.Malformed",
    "InvalidLaunchTemplateName.MalformedException", "InvalidSubnetID.NotFound",
    "InvalidBlockDeviceMapping", "VPCIdNotSpecified", "MissingInput",
)  # fmt: skip
KINDS: dict[type[CloudwhaleError], tuple[str, ...]] = {
    NoCapacity: NO_HARDWARE,
    PriceMoved: ("SpotMaxPriceTooLow",),
    QuotaExceeded: QUOTA,
    Unreachable: UNKNOWN,
    Denied: ACCOUNT + MISTAKES,
}
CASES = [(code, kind) for kind, codes in KINDS.items() for code in codes]


@pytest.fixture
def aws() -> SmallAws:
    return SmallAws(a_clock())


def _launch(aws: SmallAws, **offer: Any) -> CloudwhaleError:
    with pytest.raises(CloudwhaleError) as caught:
        a_provider(aws).launch(a_request(offer=an_offer(**offer)))
    return caught.value


@pytest.mark.parametrize(("code", "kind"), CASES)
def test_a_launch_that_is_refused_with_a_code(
    aws: SmallAws, code: str, kind: type[CloudwhaleError]
) -> None:
    aws.refusals["create_fleet"] = refused(code)
    error = _launch(aws)
    assert type(error) is kind and code in error.says and "us-east-1" in error.says
    assert error.__cause__ is not None
    assert error.remedy or kind in (NoCapacity, PriceMoved)


@pytest.mark.parametrize(("code", "kind"), CASES)
def test_a_fleet_that_made_nothing_with_a_code(
    aws: SmallAws, code: str, kind: type[CloudwhaleError]
) -> None:
    aws.fleet_errors = {"*": code}
    error = _launch(aws)
    # It is known that nothing was made, so a fault of AWS is no doubt here.
    assert type(error) is (TryAnother if kind is Unreachable else kind)
    assert code in error.says


def test_all_that_a_fleet_has_tried_is_told(aws: SmallAws) -> None:
    aws.fleet_errors = {"*": "InsufficientInstanceCapacity"}
    error = _launch(aws)
    assert isinstance(error, TryAnother)
    assert error.offers == ("aws/us-east-1b/g5.xlarge/spot", "aws/us-east-1c/g5.xlarge/spot")
    assert "us-east-1a" in error.says and "us-east-1c" in error.says


def test_one_zone_without_hardware_leaves_the_others(aws: SmallAws) -> None:
    aws.fleet_errors = {"us-east-1a": "InsufficientInstanceCapacity"}
    assert a_provider(aws).launch(a_request()).zone == "us-east-1b"


def test_a_quota_decides_whatever_other_zones_say(aws: SmallAws) -> None:
    aws.fleet_errors = {
        "us-east-1a": "InsufficientInstanceCapacity",
        "us-east-1b": "MaxSpotInstanceCountExceeded",
        "us-east-1c": "Unsupported",
    }
    assert isinstance(_launch(aws), QuotaExceeded)


@pytest.mark.parametrize(
    ("kind", "market", "code", "quota"),
    [
        ("g5.xlarge", "spot", "MaxSpotInstanceCountExceeded", "L-3819A6DF"),
        ("g5.xlarge", "on-demand", "VcpuLimitExceeded", "L-DB2E81BA"),
        ("p4d.24xlarge", "spot", "MaxSpotInstanceCountExceeded", "L-7212CCBC"),
        ("p5.48xlarge", "spot", "MaxSpotInstanceCountExceeded", "L-C4BD4855"),
        ("m7i.large", "on-demand", "VcpuLimitExceeded", "L-1216C47A"),
    ],
)
def test_a_quota_comes_with_the_command_that_raises_it(
    aws: SmallAws, kind: str, market: str, code: str, quota: str
) -> None:
    aws.fleet_errors = {"*": code}
    assert f"--quota-code {quota}" in _launch(aws, type=kind, market=market).remedy
    aws.refusals["create_fleet"] = refused(code)
    assert f"--quota-code {quota}" in _launch(aws, type=kind, market=market).remedy


def test_a_zone_that_does_not_support_a_type_is_left_out_for_hours(aws: SmallAws) -> None:
    provider = a_provider(aws)
    aws.fleet_errors = {"us-east-1a": "Unsupported", "us-east-1b": "InsufficientInstanceCapacity",
                        "us-east-1c": "InsufficientInstanceCapacity"}  # fmt: skip
    with pytest.raises(NoCapacity):
        provider.launch(a_request())
    aws.fleet_errors = {}
    provider.launch(a_request("rental-2", an_offer("us-east-1b")))
    overrides = aws.words_of("create_fleet")[-1]["LaunchTemplateConfigs"][0]["Overrides"]
    assert [one["AvailabilityZone"] for one in overrides] == ["us-east-1b", "us-east-1c"]


def test_the_spot_role_comes_with_its_command(aws: SmallAws) -> None:
    aws.fleet_errors = {"*": "AuthFailure.ServiceLinkedRoleCreationNotPermitted"}
    assert "create-service-linked-role --aws-service-name spot" in _launch(aws).remedy


def test_a_permission_that_lacks_is_named(aws: SmallAws) -> None:
    aws.refusals["create_launch_template"] = refused("UnauthorizedOperation")
    error = _launch(aws)
    assert "ec2:CreateLaunchTemplate" in error.says and "ec2:CreateLaunchTemplate" in error.remedy


def test_an_unknown_instance_profile_names_its_setting(aws: SmallAws) -> None:
    says = "Value (x) for parameter iamInstanceProfile.name is invalid"
    aws.refusals["create_fleet"] = refused("InvalidParameterValue", says)
    assert "instance_profile" in _launch(aws).remedy


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("Server.InsufficientInstanceCapacity", NoCapacity),
        ("Server.InternalError", TryAnother),
        ("Client.VolumeLimitExceeded", QuotaExceeded),
        ("Client.InternalError", Denied),
        ("Client.InvalidSnapshot.NotFound", Denied),
    ],
)
def test_a_machine_that_never_ran_is_refused_by_its_reason(
    aws: SmallAws, code: str, kind: type[CloudwhaleError]
) -> None:
    aws.dies = (code, f"{code}: it is so")
    error = _launch(aws)
    assert type(error) is kind and code.partition(".")[2] in error.says


@pytest.mark.parametrize(
    "code", ["Server.SpotInstanceTermination", "Client.UserInitiatedShutdown",
             "Client.InstanceInitiatedShutdown"],
)  # fmt: skip
def test_a_machine_that_may_have_run_is_listed_as_gone(aws: SmallAws, code: str) -> None:
    aws.dies = (code, f"{code}: it is so")
    machine = a_provider(aws).launch(a_request())
    assert machine.state == "gone" and code in machine.says


def test_a_code_that_nobody_knows_is_told_by_its_status() -> None:
    errand = Errand("ec2:CreateFleet", "us-east-1")
    assert isinstance(refusal("Strange", "?", errand, 503), Unreachable)
    assert isinstance(refusal("Strange", "?", errand, 400), Denied)


@pytest.mark.parametrize("code", sorted(REACTIONS))
def test_every_remedy_can_be_said(code: str) -> None:
    error = refusal(code, "so", Errand("ec2:CreateFleet", "us-east-1", "a command"))
    assert "{" not in str(error)


@pytest.mark.parametrize("name", sorted(BOTO))
def test_what_botocore_says_itself_comes_with_a_remedy(name: str) -> None:
    made = type(name, (Exception,), {})("no")
    assert failure(made, Errand("ec2:CreateFleet", "us-east-1")).remedy


def test_what_only_the_account_can_read_stands_in_the_command_that_reads_it() -> None:
    says = "You are not authorized. Encoded authorization failure message: QUJD"
    error = refusal("UnauthorizedOperation", says, Errand("ec2:CreateFleet", "us-east-1"))
    assert "QUJD" not in error.says
    assert "--encoded-message QUJD`" in error.remedy


def test_a_group_of_ours_that_was_removed_is_made_anew_for_the_next_launch(aws: SmallAws) -> None:
    provider = a_provider(aws)
    provider.launch(a_request())
    aws.fleet_errors, aws.groups = {"*": "InvalidGroup.NotFound"}, {}
    with pytest.raises(TryAnother, match="was removed"):
        provider.launch(a_request("rental-2"))
    aws.fleet_errors = {}
    provider.launch(a_request("rental-3"))
    assert "us-east-1" in aws.groups


def test_a_group_of_the_settings_that_is_not_there_is_told(aws: SmallAws) -> None:
    aws.fleet_errors = {"*": "InvalidGroup.NotFound"}
    with pytest.raises(Denied, match="InvalidGroup.NotFound"):
        a_provider(aws, security_group="sg-9").launch(a_request())
