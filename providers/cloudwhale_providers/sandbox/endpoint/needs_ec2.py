"""What a request of EC2 needs to be allowed, thing by thing.

Service Authorization Reference, "Actions, resources, and condition keys for Amazon EC2"; EC2 User
Guide, "Grant permission to tag Amazon EC2 resources during creation": who tags what is made needs
`ec2:CreateTags` too, with the verb as `ec2:CreateAction`. A fleet is held to what its launches
would need one by one, whoever EC2 asks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale_providers.sandbox.endpoint.fields import each, inner
from cloudwhale_providers.sandbox.endpoint.iam_policies import Need
from cloudwhale_providers.sandbox.endpoint.needs import (
    EC2,
    carries,
    passed,
    spot_role,
    tagged,
    with_context,
)
from cloudwhale_providers.sandbox.names import ACCOUNT

Words = Mapping[str, Any]
Tags = Mapping[str, str]

KINDS: Mapping[str, str] = {
    "ami": "image", "eipalloc": "elastic-ip", "eni": "network-interface", "fleet": "fleet",
    "i": "instance", "lt": "launch-template", "sg": "security-group", "sir":
    "spot-instances-request", "snap": "snapshot", "subnet": "subnet", "vol": "volume", "vpc": "vpc",
}  # fmt: skip
"""What a thing is, by how its id begins."""
NOBODYS = frozenset({"image", "snapshot"})
"""Things whose names hold no account."""
NAMED: Mapping[str, tuple[str, ...]] = {
    "DeleteFleets": ("FleetIds",),
    "DeleteLaunchTemplate": ("LaunchTemplateId",),
    "DeleteNetworkInterface": ("NetworkInterfaceId",),
    "DeleteSecurityGroup": ("GroupId",),
    "DeleteSnapshot": ("SnapshotId",),
    "DeleteVolume": ("VolumeId",),
    "ReleaseAddress": ("AllocationId",),
    "TerminateInstances": ("InstanceIds",),
    "AuthorizeSecurityGroupEgress": ("GroupId",),
    "AuthorizeSecurityGroupIngress": ("GroupId",),
    "RevokeSecurityGroupEgress": ("GroupId",),
    "RevokeSecurityGroupIngress": ("GroupId",),
}
"""Fields that name the things that a verb changes."""
MADE: Mapping[str, str] = {
    "CreateLaunchTemplate": "launch-template",
    "CreateSecurityGroup": "security-group",
    "CreateVolume": "volume",
    "CreateSnapshot": "snapshot",
    "CreateNetworkInterface": "network-interface",
    "AllocateAddress": "elastic-ip",
}
"""What a verb makes."""
LAUNCHED = ("instance", "volume", "network-interface")


@dataclass(frozen=True, slots=True)
class Things:
    """What is there in a region."""

    region: str
    tags: Callable[[str], Tags]
    """Returns the tags of a thing; none for what is not there."""
    template: Callable[[Words], tuple[str, Words]]
    """Returns id and content of the launch template that is named; raises Refused."""
    role: Callable[[Words], str]
    """Returns the role of an instance profile; empty: it has none."""
    address: Callable[[str], str]
    """Returns the address of an association; empty: there is none."""
    has_spot_role: Callable[[], bool]

    def arn(self, kind: str, name: str = "*") -> str:
        """Return what IAM calls a thing."""
        return f"arn:aws:ec2:{self.region}:{'' if kind in NOBODYS else ACCOUNT}:{kind}/{name}"

    def named(self, action: str, name: str) -> Need:
        """Return the need of an action on a thing that is there."""
        kind = KINDS.get(name.rsplit("-", 1)[0] if not name.startswith("fleet") else "fleet", "")
        return self.need(action, self.arn(kind or "unknown", name), carries(self.tags(name)))

    def need(self, action: str, arn: str, context: Mapping[str, tuple[str, ...]]) -> Need:
        """Return a need of EC2."""
        return Need(f"ec2:{action}", arn, {"ec2:region": (self.region,), **context})


def needs(action: str, words: Words, things: Things) -> Sequence[Need]:
    """Return what a request needs; raise Refused where it names a template that is not there."""
    if action in NAMED:
        named = [name for field in NAMED[action] for name in _texts(words, field)]
        # What is named in another way is of nobody whom we know: only who may do all may do that.
        found = [things.named(action, name) for name in named]
        return found or [things.need(action, "*", {})]
    if action in MADE:
        return list(_making(action, MADE[action], words, things))
    find = VERBS.get(action)
    return [things.need(action, "*", {})] if find is None else list(find(words, things))


def _texts(words: Words, field: str) -> Sequence[str]:
    said = words.get(field)
    if said is None:
        return ()
    return (said,) if isinstance(said, str) else [str(one) for one in said]


def _specified(words: Words, kind: str) -> Sequence[Mapping[str, str]]:
    """Return the tags that a request gives to what it makes of a kind."""
    return [
        tag
        for one in each(words, "TagSpecifications")
        if one.get("ResourceType") == kind
        for tag in each(one, "Tags")
    ]


def _tagging(action: str, arn: str, own: Sequence[Mapping[str, str]], things: Things) -> list[Need]:
    if not own:
        return []
    return [things.need("CreateTags", arn, {**tagged(own), "ec2:createaction": (action,)})]


def _making(action: str, kind: str, words: Words, things: Things) -> Iterator[Need]:
    own, arn = _specified(words, kind), things.arn(kind)
    yield things.need(action, arn, tagged(own))
    yield from _tagging(action, arn, own, things)
    for field in ("VpcId", "SubnetId", "VolumeId", "SnapshotId"):
        if words.get(field):
            yield things.named(action, str(words[field]))


def _tag(words: Words, things: Things) -> Iterator[Need]:
    own = tagged(each(words, "Tags"))
    for name in _texts(words, "Resources"):
        yield with_context(things.named("CreateTags", name), own)


def _disassociate(words: Words, things: Things) -> Iterator[Need]:
    name = things.address(str(words.get("AssociationId", "")))
    if name:
        yield things.named("DisassociateAddress", name)
    else:
        yield things.need("DisassociateAddress", things.arn("elastic-ip"), {})


# -- launching -------------------------------------------------------------------------------


def _run(words: Words, things: Things) -> Iterator[Need]:
    named, data = words.get("LaunchTemplate"), dict(words)
    if named:
        template, content = things.template(named)
        data = {**content, **words}
        yield things.named("RunInstances", template)
    yield from _launch("RunInstances", data, words, things)
    market = inner(data, "InstanceMarketOptions").get("MarketType")
    if market == "spot":
        yield things.need("RunInstances", things.arn("spot-instances-request"), {})
    yield from _roles(data, market == "spot", things)


def _fleet(words: Words, things: Things) -> Iterator[Need]:
    own = _specified(words, "fleet")
    yield things.need("CreateFleet", things.arn("fleet"), tagged(own))
    yield from _tagging("CreateFleet", things.arn("fleet"), own, things)
    target = inner(words, "TargetCapacitySpecification")
    is_spot = target.get("DefaultTargetCapacityType") == "spot"
    for config in each(words, "LaunchTemplateConfigs"):
        template, content = things.template(inner(config, "LaunchTemplateSpecification"))
        for action in ("CreateFleet", "RunInstances"):
            yield things.named(action, template)
            for over in each(config, "Overrides") or ({},):
                yield from _launch(action, {**content, **over}, words, things)
        yield from _roles(content, is_spot, things)


def _launch(action: str, data: Words, words: Words, things: Things) -> Iterator[Need]:
    """Yield what a launch makes and what it stands on."""
    for kind in LAUNCHED:
        own = [*_specified(data, kind), *_specified(words, kind)]
        arn, more = things.arn(kind), {}
        if kind == "instance":
            more = {"ec2:instancetype": (str(data.get("InstanceType", "")),)}
        yield things.need(action, arn, {**tagged(own), **more})
        yield from _tagging(action, arn, own, things)
    groups = [*_texts(data, "SecurityGroupIds"), *_inner_groups(data)]
    image, subnet = data.get("ImageId"), data.get("SubnetId")
    for kind, names in (
        ("image", (image,) if image else ()),
        ("subnet", (subnet,) if subnet else ()),
        ("security-group", groups),
    ):
        if names:
            yield from (things.named(action, str(name)) for name in names)
        else:
            yield things.need(action, things.arn(kind), {})


def _inner_groups(data: Words) -> list[str]:
    return [name for one in each(data, "NetworkInterfaces") for name in _texts(one, "Groups")]


def _roles(data: Words, is_spot: bool, things: Things) -> Iterator[Need]:
    profile = inner(data, "IamInstanceProfile")
    role = things.role(profile) if profile else ""
    if role:
        yield passed(role, EC2)
    if is_spot and not things.has_spot_role():
        yield spot_role()


VERBS: Mapping[str, Callable[[Words, Things], Iterator[Need]]] = {
    "CreateFleet": _fleet,
    "CreateTags": _tag,
    "DisassociateAddress": _disassociate,
    "RunInstances": _run,
}
