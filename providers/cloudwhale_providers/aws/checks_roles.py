"""Whether the roles are there that spot, machines and their stops need."""

from typing import Any, cast

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.aws.asking import Calls, code_of
from cloudwhale_providers.aws.errors import SPOT_COMMAND
from cloudwhale_providers.aws.rows import Found, failed

IAM_REGION = "us-east-1"  # IAM has one endpoint, which is signed for this region
SPOT_ROLE = "AWSServiceRoleForEC2Spot"
SCHEDULER = "scheduler.amazonaws.com"
ABSENT = frozenset({"NoSuchEntity", "NoSuchEntityException"})
REFUSED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
HOW_TO = "`cloudwhale doctor aws --fix` does, or the commands of docs/aws.md"


def spot(calls: Calls) -> Found:
    """Return whether spot machines can be asked for: EC2 acts under a role of the account."""
    try:
        calls.call(IAM_REGION, "iam", "get_role", RoleName=SPOT_ROLE)
    except CloudwhaleError as error:
        if code_of(error) not in ABSENT:
            return _unseen(error, SPOT_ROLE, "iam:GetRole")
        return Found(
            "warning",
            f"the account has no {SPOT_ROLE}: spot machines are refused, unless whoever launches "
            "the first may iam:CreateServiceLinkedRole",
            f"`{SPOT_COMMAND}`",
        )
    return Found("ok", SPOT_ROLE)


def machines(calls: Calls, named: str) -> Found:
    """Return whether machines get a role that lets them reach the mailbox; `named`: the setting."""
    if not named:
        return Found(
            "failed",
            "no `instance_profile` is set: machines could not reach the mailbox",
            f"Make one ({HOW_TO}) and set `instance_profile` in [clouds.aws].",
        )
    name = named.rpartition("/")[2]
    try:
        answer = calls.call(IAM_REGION, "iam", "get_instance_profile", InstanceProfileName=name)
    except CloudwhaleError as error:
        if code_of(error) not in ABSENT:
            return _unseen(error, name, "iam:GetInstanceProfile")
        return Found(
            "failed",
            f"there is no instance profile {name}",
            f"`aws iam create-instance-profile --instance-profile-name {name}`, then add a role "
            f"({HOW_TO}), or set `instance_profile` in [clouds.aws] to one that is there.",
        )
    if not answer["InstanceProfile"].get("Roles"):
        return Found(
            "failed",
            f"the instance profile {name} has no role, so machines could not reach the mailbox",
            f"`aws iam add-role-to-instance-profile --instance-profile-name {name} "
            "--role-name ROLE`",
        )
    return Found("ok", f"instance profile {name}")


def stops(calls: Calls, arn: str, account: str) -> Found:
    """Return whether AWS itself can end machines on time; `arn`: the setting `scheduler_role`."""
    if not arn:
        return Found(
            "warning",
            "no `scheduler_role` is set: AWS does not end machines on time, only they themselves",
            f"Make one ({HOW_TO}) and set `scheduler_role` in [clouds.aws] to its ARN.",
        )
    owner, name = _parts(arn)
    if account and owner and owner != account:
        return Found(
            "failed",
            f"the role {arn} is of account {owner}, and the credentials are of {account}",
            "Set `scheduler_role` in [clouds.aws] to a role of the same account.",
        )
    try:
        answer = calls.call(IAM_REGION, "iam", "get_role", RoleName=name)
    except CloudwhaleError as error:
        if code_of(error) not in ABSENT:
            return _unseen(error, name, "iam:GetRole")
        return Found(
            "failed",
            f"there is no role {name}, which is to end machines on time",
            f"Make it ({HOW_TO}), or set `scheduler_role` in [clouds.aws] to one that is there.",
        )
    if not trusts(answer["Role"].get("AssumeRolePolicyDocument"), SCHEDULER):
        return Found(
            "failed",
            f"the role {name} does not trust {SCHEDULER}, so no schedule could use it",
            f"`aws iam update-assume-role-policy --role-name {name} --policy-document "
            "file://infra/aws/scheduler-trust.json`",
        )
    return Found("ok", f"role {name}, which schedules may use")


def trusts(document: Any, service: str) -> bool:
    """Say whether a trust policy lets a service take the role; `document`: as boto3 reads it."""
    for statement in several(_of(document, "Statement")):
        named = several(_of(_of(statement, "Principal"), "Service"))
        if _of(statement, "Effect") == "Allow" and service in named:
            return True
    return False


def _of(value: Any, key: str) -> Any:
    """Return what a document says under a key; None where it says nothing, or is none."""
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def several(value: Any) -> list[Any]:
    """Return a list of what IAM lets one write as one or as several."""
    if value is None:
        return []
    return [*value] if isinstance(value, list) else [value]


def _parts(arn: str) -> tuple[str, str]:
    """Return account and name of a role; a bare name has no account."""
    words = arn.split(":", 5)
    return (words[4], words[5].rpartition("/")[2]) if len(words) == 6 else ("", arn)


def _unseen(error: CloudwhaleError, name: str, permission: str) -> Found:
    """Return that something cannot be looked at: it may be there all the same."""
    if code_of(error) in REFUSED:
        return Found(
            "warning",
            f"whether {name} is there cannot be seen: {error.says}",
            f"Allow {permission}, which only `doctor` asks for.",
        )
    return failed(error)
