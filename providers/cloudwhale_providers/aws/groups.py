"""Security groups of an installation: one that nobody gets into, one whose members may talk."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from cloudwhale.spi.errors import CloudwhaleError, Denied
from cloudwhale_providers.aws import tags
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import Calls, code_of

DUPLICATE = "InvalidGroup.Duplicate"
ADMITTED = "InvalidPermission.Duplicate"
"""The rule is there already."""
ALL_PROTOCOLS = "-1"


class Group(NamedTuple):
    """A security group as it is to be."""

    name: str
    says: str
    """Its description; EC2 takes letters, digits, spaces and some signs."""
    admits_itself: bool = False
    """Whether its members reach each other, by every protocol; nobody else ever does."""


def alone(account: Account) -> Group:
    """Return the group of every machine: without any rule for what comes in."""
    return Group(account.ours, "Machines of cloudwhale: nobody connects to them")


def among_themselves(account: Account) -> Group:
    """Return the group of machines of gangs: it admits what comes from its own members."""
    return Group(account.gangs, "Gangs of cloudwhale: they connect to each other alone", True)


def had(account: Account, region: str, vpc: str, group: Group) -> str:
    """Return the id of a group, made when it is missing; raise Denied when it was opened."""
    found = _known(account.calls, region, vpc, group)
    if found is None:
        found = {"GroupId": _made(account, region, vpc, group)}
    name = str(found["GroupId"])
    if group.admits_itself and not found.get("IpPermissions"):
        _admit(account.calls, region, name)
    return name


def _made(account: Account, region: str, vpc: str, group: Group) -> str:
    own = {tags.INSTALLATION: account.installation, tags.NAME: group.name}
    try:
        made = account.calls.call(
            region, "ec2", "create_security_group", GroupName=group.name, VpcId=vpc,
            Description=group.says, TagSpecifications=tags.at_creation(own, ["security-group"]),
        )  # fmt: skip
    except CloudwhaleError as error:
        known = _known(account.calls, region, vpc, group) if code_of(error) == DUPLICATE else None
        if known is None:
            raise
        return str(known["GroupId"])
    return str(made["GroupId"])


def _admit(calls: Calls, region: str, name: str) -> None:
    """Let members of a group reach each other; that they may already is fine."""
    rule = {"IpProtocol": ALL_PROTOCOLS, "UserIdGroupPairs": [{"GroupId": name}]}
    try:
        calls.call(
            region, "ec2", "authorize_security_group_ingress", GroupId=name, IpPermissions=[rule]
        )
    except CloudwhaleError as error:
        if code_of(error) != ADMITTED:
            raise


def _known(calls: Calls, region: str, vpc: str, group: Group) -> Mapping[str, Any] | None:
    filters = [
        {"Name": "group-name", "Values": [group.name]},
        {"Name": "vpc-id", "Values": [vpc]},
    ]
    found = calls.call(region, "ec2", "describe_security_groups", Filters=filters)["SecurityGroups"]
    if not found:
        return None
    rules = found[0].get("IpPermissions") or ()
    name = found[0]["GroupId"]
    if any(not (group.admits_itself and _is_within(rule, name)) for rule in rules):
        raise Denied(
            f"somebody has opened the security group {group.name} in {region} to connections",
            f"Remove its inbound rules: `aws ec2 revoke-security-group-ingress --region {region} "
            f"--group-id {name} …`.",
        )
    return dict(found[0])


def _is_within(rule: Mapping[str, Any], name: str) -> bool:
    """Say whether a rule admits members of one group alone."""
    others = [rule.get(key) for key in ("IpRanges", "Ipv6Ranges", "PrefixListIds")]
    pairs = [pair.get("GroupId") for pair in rule.get("UserIdGroupPairs") or ()]
    return not any(others) and bool(pairs) and set(pairs) == {name}
