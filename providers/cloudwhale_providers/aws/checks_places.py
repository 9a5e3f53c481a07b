"""What a region has for machines: a network, their image, quotas, and our permission to launch."""

from collections.abc import Mapping, Sequence
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError, Denied
from cloudwhale.spi.prices import Market
from cloudwhale_providers.aws import quotas, tags
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import Calls, code_of
from cloudwhale_providers.aws.errors import PERMITTED
from cloudwhale_providers.aws.images import Images
from cloudwhale_providers.aws.rows import HERE, Found, failed

SETTING_SUBNETS = "or name `subnets` in [clouds.aws]"
PASS_ROLE = "iam:PassRole"
NOBODY = "doctor"
"""Stands in the tags of what is not launched."""
TYPE = "m6i.large"
"""Every region has it, and a dry run asks for none that is scarce."""


def network(account: Account, region: str) -> Found:
    """Return whether machines have somewhere to stand: subnets that are named, or default ones."""
    named = account.options.subnets.get(region)
    if named:
        return _named_subnets(account.calls, region, named)
    only_default = [{"Name": "is-default", "Values": ["true"]}]
    try:
        vpcs = account.calls.call(region, "ec2", "describe_vpcs", Filters=only_default)["Vpcs"]
        if not vpcs:
            return Found(
                "failed",
                "no default VPC, and no subnets are named",
                f"`aws ec2 create-default-vpc --region {HERE}`, {SETTING_SUBNETS}.",
            )
        default = [
            {"Name": "vpc-id", "Values": [vpcs[0]["VpcId"]]},
            {"Name": "default-for-az", "Values": ["true"]},
        ]
        found = account.calls.call(region, "ec2", "describe_subnets", Filters=default)["Subnets"]
    except CloudwhaleError as error:
        return failed(error)
    if not found:
        return Found(
            "failed",
            "the default VPC has no default subnet",
            f"`aws ec2 create-default-subnet --region {HERE} --availability-zone {HERE}a`, "
            f"{SETTING_SUBNETS}.",
        )
    return Found("ok", "a default VPC with subnets")


def _named_subnets(calls: Calls, region: str, named: Sequence[str]) -> Found:
    try:
        answer = calls.call(region, "ec2", "describe_subnets", SubnetIds=list(named))
    except CloudwhaleError as error:
        return failed(error)
    found = answer["Subnets"]
    if len({one["VpcId"] for one in found}) > 1:
        return Found(
            "failed",
            f"the subnets {', '.join(named)} are of several VPCs",
            "Name subnets of one VPC in `subnets` of [clouds.aws].",
        )
    full = [one["SubnetId"] for one in found if not one["AvailableIpAddressCount"]]
    if full:
        return Found(
            "warning",
            f"no address is free in {', '.join(full)}",
            "Name others in `subnets` of [clouds.aws].",
        )
    return Found("ok", "subnets with free addresses")


def image(images: Images, region: str) -> Found:
    """Return which image machines boot from."""
    try:
        found = images.image(region)
    except CloudwhaleError as error:
        says = error.says.removeprefix(f"{region} has ")
        return Found("failed", says, error.remedy.replace(region, HERE))
    return Found("ok", f"there, with a root disk of {found.least_gib:g} GiB at least")


def quota_rows(
    found: Mapping[str, Mapping[tuple[Market, str], quotas.Limit]],
    wanted: Mapping[tuple[Market, str], float],
) -> Sequence[Found]:
    """Return what quotas of all regions come to; `wanted`: vCPUs of the smallest machine.

    A quota that holds no machine at all is a warning, as the others may do; when none holds one,
    nothing can be rented.
    """
    short: list[Found] = []
    is_open = False
    for key, least in sorted(wanted.items()):
        quota = quotas.QUOTAS.get(key)
        said = {region: some[key] for region, some in sorted(found.items()) if key in some}
        lacking = {
            region: limit.vcpus
            for region, limit in said.items()
            if limit.vcpus is not None and limit.vcpus < least
        }
        is_open = is_open or len(lacking) < len(said)
        if lacking and quota is not None:
            short.append(_short(quota, lacking, least))
    unread = sorted({limit.says for some in found.values() for limit in some.values()
                     if limit.says and limit.code})  # fmt: skip
    rows = [*short, *(_unread(says) for says in unread[:1])]
    if short and not is_open:
        rows = [Found("failed", one.says, one.remedy) for one in rows]
    if not short:
        says = "each holds at least one machine, as far as AWS tells"
        rows.insert(0, Found("ok", says))
    return rows


def _short(quota: quotas.Quota, lacking: Mapping[str, float | None], least: float) -> Found:
    first = next(iter(lacking))
    amounts = sorted({f"{vcpus:g}" for vcpus in lacking.values() if vcpus is not None})
    others = " Likewise in the others." if len(lacking) > 1 else ""
    return Found(
        "warning",
        f"{quota.name} ({quota.code}) holds {' or '.join(amounts)} vCPUs in {', '.join(lacking)}; "
        f"the smallest machine takes {least:g}",
        f"`{quotas.raise_command(quota, first, least)}`{others}",
    )


def _unread(says: str) -> Found:
    return Found(
        "warning",
        f"some quotas cannot be read, and are tried: {says}",
        "Allow servicequotas:GetServiceQuota and servicequotas:GetAWSDefaultServiceQuota.",
    )


def launches(account: Account, region: str, ami: str) -> Found:
    """Return whether we may launch there: EC2 is asked what it would say, and launches nothing.

    The call says all that a launch says that policies can look at: tags, and the role to pass.
    """
    try:
        account.calls.call(region, "ec2", "run_instances", **_dry(account, region, ami))
    except CloudwhaleError as error:
        code = code_of(error)
        if code == PERMITTED:
            return Found("ok", "machines may be launched")
        if code == "UnauthorizedOperation":
            return Found(
                "failed",
                f"machines may not be launched: {error.says}",
                f"Allow ec2:RunInstances, ec2:CreateFleet, ec2:CreateTags and {PASS_ROLE} on the "
                "role of `instance_profile`, as infra/aws/controller-policy.json does; `aws sts "
                "decode-authorization-message` reads an encoded reason.",
            )
        return failed(error)
    return failed(Denied("EC2 has answered a dry run with a machine", "Please report it."))


def _dry(account: Account, region: str, ami: str) -> Mapping[str, Any]:
    own = {tags.INSTALLATION: account.installation or NOBODY, tags.NODE: NOBODY}
    words: dict[str, Any] = {
        "DryRun": True, "MinCount": 1, "MaxCount": 1, "InstanceType": TYPE, "ImageId": ami,
        "TagSpecifications": tags.at_creation(own, ["instance", "volume", "network-interface"]),
    }  # fmt: skip
    subnets = account.options.subnets.get(region)
    if subnets:
        words["SubnetId"] = subnets[0]
    profile = account.options.instance_profile
    if profile:
        words["IamInstanceProfile"] = {"Arn" if profile.startswith("arn:") else "Name": profile}
    return words
