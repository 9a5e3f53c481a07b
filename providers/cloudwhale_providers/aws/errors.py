"""What AWS's refusals mean to us: one table of its error codes, and what is to be done."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cloudwhale.spi.errors import (
    CloudwhaleError,
    Denied,
    NoCapacity,
    PriceMoved,
    QuotaExceeded,
    TryAnother,
    Unreachable,
)


class Errand(NamedTuple):
    """What was asked of AWS, for the sentences that tell how it was refused."""

    permission: str
    """As IAM calls it, `ec2:CreateFleet`."""
    region: str
    quota: str = ""
    """Command that asks for more of the quota that a launch counts against."""


class Reaction(NamedTuple):
    """What a code means, as the error that it becomes, and how it is mended."""

    kind: type[CloudwhaleError]
    remedy: str = ""
    """Names of Errand stand in it in braces."""


SPOT_COMMAND = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
SPOT_ROLE = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
MISMATCH = "IdempotentParameterMismatch"
PERMITTED = "DryRunOperation"
"""The answer to a dry run of what would have been done."""
GUARDED = "OperationNotPermitted"
ENCODED = "Encoded authorization failure message:"
"""What EC2 ends a refusal with that only the account may read; a kilobyte or two follow."""

_ELSEWHERE = Reaction(NoCapacity)
_QUOTA = Reaction(QuotaExceeded, "{quota}")
_OTHER_QUOTA = Reaction(
    QuotaExceeded,
    "Ask for more with `aws service-quotas request-service-quota-increase`, or remove what is not "
    "needed any more in {region}; `cloudwhale leaks` shows what is ours.",
)
_AGAIN = Reaction(Unreachable, "It is asked again by itself.")
_ALLOW = Reaction(
    Denied,
    "Allow {permission} to whoever runs cloudwhale (a launch also needs iam:PassRole on the role "
    "of the instance profile and of the scheduler).",
)
_CREDENTIALS = Reaction(
    Denied,
    "Check the credentials with `aws sts get-caller-identity`; `aws configure` or `aws sso login` "
    "makes new ones. If they are right, {region} is not enabled: "
    "`aws account enable-region --region-name {region}`.",
)
_EXPIRED = Reaction(Denied, "The credentials have run out: `aws sso login`, or renew them.")
_CLOCK = Reaction(
    Denied, "This host's clock is off, or the secret key is wrong: `timedatectl set-ntp true`."
)
_ENABLE = Reaction(Denied, "`aws account enable-region --region-name {region}` enables a region.")
_ACCOUNT = Reaction(Denied, "AWS holds the account back in {region}: ask AWS Support.")
_MISTAKE = Reaction(
    Denied,
    "Check what [clouds.aws] says (image, instance_profile, security_group, subnets); if it is "
    "right, {permission} was asked in a wrong way: please report it.",
)
_SUBNET = Reaction(Denied, "Check `subnets` of [clouds.aws]: `aws ec2 describe-subnets`.")
_GROUP = Reaction(
    Denied, "Check `security_group` of [clouds.aws]: `aws ec2 describe-security-groups`."
)
_IMAGE = Reaction(
    Denied, "Check `image` of [clouds.aws]: `aws ssm get-parameter --region {region} --name …`."
)
_TEMPLATE = Reaction(Denied, "It is made anew by the next launch; if not, please report it.")
_NETWORK = Reaction(
    Denied,
    "`aws ec2 create-default-vpc --region {region}` makes a network; or name `subnets` in "
    "[clouds.aws].",
)

REACTIONS: Mapping[str, Reaction] = {
    # No hardware there now. Karpenter counts the first ten as unfulfillable: pkg/errors/errors.go.
    "InsufficientInstanceCapacity": _ELSEWHERE,
    "UnfulfillableCapacity": _ELSEWHERE,
    "InsufficientHostCapacity": _ELSEWHERE,
    "InsufficientReservedInstanceCapacity": _ELSEWHERE,
    "ReservationCapacityExceeded": _ELSEWHERE,
    "InsufficientCapacity": _ELSEWHERE,
    "Unsupported": _ELSEWHERE,
    "InvalidAvailabilityZone": _ELSEWHERE,
    "InsufficientFreeAddressesInSubnet": Reaction(
        NoCapacity, "The subnet is full: name a larger one in `subnets` of [clouds.aws]."
    ),
    "MaxFleetCountExceeded": Reaction(NoCapacity, "It is asked again later by itself."),
    "SpotMaxPriceTooLow": Reaction(PriceMoved),
    "MaxSpotInstanceCountExceeded": _QUOTA,
    "VcpuLimitExceeded": _QUOTA,
    "InstanceLimitExceeded": _QUOTA,
    "VolumeLimitExceeded": _OTHER_QUOTA,
    "NetworkInterfaceLimitExceeded": _OTHER_QUOTA,
    "AddressLimitExceeded": _OTHER_QUOTA,
    "SecurityGroupLimitExceeded": _OTHER_QUOTA,
    "LaunchTemplateLimitExceeded": _OTHER_QUOTA,
    "ServiceQuotaExceededException": _OTHER_QUOTA,
    # It may or may not have happened; the same token makes asking again harmless.
    "RequestLimitExceeded": _AGAIN,
    "Throttling": _AGAIN,
    "ThrottlingException": _AGAIN,
    "TooManyRequestsException": _AGAIN,
    "InternalError": _AGAIN,
    "InternalFailure": _AGAIN,
    "InternalServerException": _AGAIN,
    "InternalServerError": _AGAIN,
    "ServiceUnavailable": _AGAIN,
    "ServiceUnavailableException": _AGAIN,
    "Unavailable": _AGAIN,
    "ServerInternal": _AGAIN,
    "RequestTimeout": _AGAIN,
    "InvalidInstanceID": _AGAIN,  # right after a launch: EC2's answers are late by seconds
    "InvalidID": _AGAIN,  # the same, by CreateTags
    MISMATCH: Reaction(Unreachable, "What the first call with this token made is looked for."),
    # The account, its credentials and permissions.
    SPOT_ROLE: Reaction(Denied, f"`{SPOT_COMMAND}`"),
    "UnauthorizedOperation": _ALLOW,
    "AccessDenied": _ALLOW,
    "AccessDeniedException": _ALLOW,
    "AuthFailure": _CREDENTIALS,
    "InvalidClientTokenId": _CREDENTIALS,
    "UnrecognizedClientException": _CREDENTIALS,
    "MissingAuthenticationToken": _CREDENTIALS,
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "SignatureDoesNotMatch": _CLOCK,
    "InvalidSignatureException": _CLOCK,
    "RequestExpired": _CLOCK,
    "RequestTimeTooSkewed": _CLOCK,
    "OptInRequired": _ENABLE,
    "PendingVerification": _ACCOUNT,
    "Blocked": _ACCOUNT,
    # What we, or the settings, have said wrongly.
    "VPCIdNotSpecified": _NETWORK,
    "InvalidVpcID": _NETWORK,
    "DefaultVpcDoesNotExist": _NETWORK,
    "MissingInput": _NETWORK,  # EC2's for an instance without a subnet where no VPC is the default
    "InvalidAMIID": _IMAGE,
    "InvalidSubnetID": _SUBNET,
    "InvalidSubnet": _SUBNET,
    "InvalidGroup": _GROUP,
    "InvalidSecurityGroupID": _GROUP,
    "InvalidLaunchTemplateName": _TEMPLATE,
    "InvalidLaunchTemplateId": _TEMPLATE,
    "InvalidLaunchTemplate": _TEMPLATE,
    "InvalidParameter": _MISTAKE,
    "InvalidInstanceID.Malformed": _MISTAKE,
    "InvalidUserData": _MISTAKE,
    "InvalidBlockDeviceMapping": _MISTAKE,
    "ValidationException": _MISTAKE,
    GUARDED: Reaction(
        Denied,
        "Somebody protects it: `aws ec2 modify-instance-attribute --region {region} "
        "--no-disable-api-termination --instance-id …`.",
    ),
    # How an instance can end before it has run: API_StateReason, without `Server.` and `Client.`.
    "InvalidSnapshot": _MISTAKE,
}

FAMILIES = ("InvalidParameter", "InvalidLaunchTemplate", "InvalidSubnet", "InvalidAMI")
"""Codes that begin so mean the same as the word itself."""

BOTO: Mapping[str, Reaction] = {
    "NoCredentialsError": Reaction(Denied, "`aws configure` makes some."),
    "PartialCredentialsError": Reaction(Denied, "`aws configure` completes them."),
    "CredentialRetrievalError": _EXPIRED,
    "ProfileNotFound": Reaction(Denied, "`aws configure list-profiles` lists those there are."),
    "SSOError": Reaction(Denied, "`aws sso login` logs in again."),
    "TokenRetrievalError": Reaction(Denied, "`aws sso login` logs in again."),
    "LoginError": Reaction(Denied, "`aws login` logs in again."),
    "ParamValidationError": _MISTAKE,
    "InvalidRegionError": _MISTAKE,
    "NoRegionError": _MISTAKE,
}
"""By name of botocore's exceptions, or of a base of theirs; all others: out of reach."""

NEVER_RAN = frozenset(
    {"InsufficientInstanceCapacity", "VolumeLimitExceeded", "InternalError", "InvalidSnapshot"}
)
"""Why an instance ends while it is still pending, which costs nothing (API_StateReason)."""
KEY = Reaction(
    Denied,
    "Usually the key of the disk: allow {permission}'s caller to use the account's default EBS "
    "key, kms:CreateGrant and kms:GenerateDataKeyWithoutPlaintext.",
)


def reaction(code: str) -> Reaction | None:
    """Return what a code means; None for one that the table does not know."""
    known = REACTIONS.get(code) or REACTIONS.get(code.partition(".")[0])
    if known is None:
        family = next((word for word in FAMILIES if code.startswith(word)), "")
        known = REACTIONS.get(family) or (_IMAGE if family == "InvalidAMI" else None)
    return known


def refusal(code: str, says: str, errand: Errand, status: int = 400) -> CloudwhaleError:
    """Return a refusal as an error of ours; unknown codes by their HTTP status."""
    known = reaction(code) or (_AGAIN if status >= 500 else _MISTAKE)
    if "iamInstanceProfile" in says:
        known = Reaction(Denied, "Check `instance_profile` of [clouds.aws]: `cloudwhale doctor`.")
    says, _, encoded = says.partition(ENCODED)
    sentence = f"{errand.permission} in {errand.region}: {says.strip().rstrip('.')} ({code})"
    remedy = known.remedy.format_map(errand._asdict())
    if encoded:
        remedy += f" `aws sts decode-authorization-message --encoded-message {encoded.strip()}`"
    return known.kind(sentence, remedy)


def failure(error: Exception, errand: Errand) -> CloudwhaleError:
    """Return what botocore itself says, without an answer of AWS, as an error of ours."""
    names = (one.__name__ for one in type(error).__mro__)
    known = next((BOTO[name] for name in names if name in BOTO), _AGAIN)
    sentence = f"{errand.permission} in {errand.region}: {error}"
    return known.kind(sentence, known.remedy.format_map(errand._asdict()))


def death(reason: str, says: str, errand: Errand) -> CloudwhaleError | None:
    """Return why an instance has never run, from its StateReason; None when it may have run.

    `Client.InternalError` is what EC2 says when it may not use the key of the disk.
    """
    whose, _, code = reason.partition(".")
    if code.partition(".")[0] not in NEVER_RAN:
        return None
    if (whose, code) == ("Client", "InternalError"):
        return Denied(
            f"{errand.region}: {says} ({reason})", KEY.remedy.format_map(errand._asdict())
        )
    if code == "InternalError":
        return TryAnother(f"{errand.region}: {says} ({reason})")
    return refusal(code, says, errand)


GRAVITY: tuple[type[CloudwhaleError], ...] = (Denied, QuotaExceeded, PriceMoved, NoCapacity)


def gravest(found: Sequence[CloudwhaleError]) -> CloudwhaleError | None:
    """Return what decides among the errors of one answer that made nothing; None of none.

    What we may not do, or have no quota for, is the same in all zones. That AWS had a fault is an
    answer here, not a doubt: another attempt is another launch.
    """
    for kind in GRAVITY:
        some = [one for one in found if isinstance(one, kind)]
        if some:
            says = "; ".join(dict.fromkeys(one.says for one in some))
            return kind(says, some[0].remedy)
    return TryAnother("; ".join(one.says for one in found)) if found else None
