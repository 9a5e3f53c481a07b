"""What a request needs to be allowed: actions, things and what it says of itself, as IAM sees it.

Service Authorization Reference, "Actions, resources, and condition keys" of each service.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from cloudwhale_providers.sandbox.endpoint import schedules
from cloudwhale_providers.sandbox.endpoint.fields import each, inner
from cloudwhale_providers.sandbox.endpoint.iam_conditions import Context
from cloudwhale_providers.sandbox.endpoint.iam_policies import Need
from cloudwhale_providers.sandbox.endpoint.messages import Asked
from cloudwhale_providers.sandbox.names import ACCOUNT

SPOT = "spot.amazonaws.com"
SCHEDULER, EC2 = "scheduler.amazonaws.com", "ec2.amazonaws.com"
OPEN_TO_ALL = frozenset({"sts:GetCallerIdentity"})
"""STS API Reference: no permission is needed."""
EVERYTHING = "*"


def tagged(pairs: Iterable[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return what a request says of the tags that it gives."""
    tags = {str(tag["Key"]): str(tag.get("Value", "")) for tag in pairs}
    if not tags:
        return {}
    found = {f"aws:requesttag/{key.lower()}": (value,) for key, value in tags.items()}
    return found | {"aws:tagkeys": tuple(tags)}


def carries(tags: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return what a thing's own tags say of it."""
    return {f"aws:resourcetag/{key.lower()}": (value,) for key, value in tags.items()}


def passed(role: str, service: str) -> Need:
    """Return the need of whoever gives a role to a service."""
    return Need("iam:PassRole", role, {"iam:passedtoservice": (service,)})


def spot_role() -> Need:
    """Return the need of whoever launches the first spot machine of an account."""
    return linked_role(SPOT)


def linked_role(service: str) -> Need:
    """Return the need of whoever makes the role that a service acts under."""
    arn = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{service}/*"
    return Need("iam:CreateServiceLinkedRole", arn, {"iam:awsservicename": (service,)})


def of_others(service: str, asked: Asked, region: str) -> Sequence[Need]:
    """Return what a request of any service but EC2 and S3 needs."""
    action = f"{service}:{schedules.action_of(asked) if service == 'scheduler' else asked.action}"
    if action in OPEN_TO_ALL:
        return ()
    find = FINDERS.get(service)
    return (Need(action, EVERYTHING),) if find is None else find(action, asked, region)


# -- EventBridge Scheduler -------------------------------------------------------------------


def _of_schedules(action: str, asked: Asked, region: str) -> Sequence[Need]:
    kind, _, name = asked.target.partition("?")[0].lstrip("/").partition("/")
    words: dict[str, Any] = json.loads(asked.body) if asked.body else {}
    ours = f"arn:aws:scheduler:{region}:{ACCOUNT}"
    if kind == "schedule-groups" and name:
        group = f"{ours}:schedule-group/{unquote(name)}"
        own = tagged(each(words, "Tags"))
        along = (Need("scheduler:TagResource", group, own),) if own else ()
        return (Need(action, group, own), *along)
    if kind == "schedules" and name:
        group = words.get("GroupName") or asked.query.get("groupName") or schedules.DEFAULT
        role = inner(words, "Target").get("RoleArn")
        along = (passed(str(role), SCHEDULER),) if role else ()
        return (Need(action, f"{ours}:schedule/{group}/{unquote(name)}"), *along)
    return (Need(action, EVERYTHING),)


# -- IAM, SSM, Service Quotas ----------------------------------------------------------------

NAMED: tuple[tuple[str, str], ...] = (
    ("InstanceProfileName", "instance-profile"), ("RoleName", "role"), ("UserName", "user"),
)  # fmt: skip
"""By which field a request of IAM names a thing; the first that is said holds."""
PASSES = frozenset({"iam:AddRoleToInstanceProfile"})
LINKED = "AWSServiceRoleFor"


def _of_iam(action: str, asked: Asked, region: str) -> Sequence[Need]:
    form = asked.form
    if action == "iam:CreateServiceLinkedRole":
        return (linked_role(form.get("AWSServiceName", "")),)
    field, kind = next((one for one in NAMED if form.get(one[0])), ("", ""))
    if not field:
        return (Need(action, EVERYTHING),)
    own = tagged(_members(form))
    need = Need(action, f"arn:aws:iam::{ACCOUNT}:{kind}/{_path(kind, form[field])}", own)
    if action not in PASSES:
        return (need,)
    return (need, passed(f"arn:aws:iam::{ACCOUNT}:role/{form.get('RoleName', '')}", EC2))


def _path(kind: str, name: str) -> str:
    """Return a name with its path: roles of services lie in one of the service's own."""
    if kind == "role" and name == f"{LINKED}EC2Spot":
        return f"aws-service-role/{SPOT}/{name}"
    return name


def _members(form: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the tags of a form in the `query` protocol: `Tags.member.1.Key`."""
    found: dict[str, dict[str, str]] = {}
    for name, value in form.items():
        words = name.split(".")
        if len(words) == 4 and words[:2] == ["Tags", "member"]:
            found.setdefault(words[2], {})[words[3]] = value
    return list(found.values())


def _of_ssm(action: str, asked: Asked, region: str) -> Sequence[Need]:
    words: dict[str, Any] = json.loads(asked.body or b"{}")
    names = each(words, "Names") or [one for one in (words.get("Name"), words.get("Path")) if one]
    return [
        Need(action, f"arn:aws:ssm:{region}:{_owner(str(name))}:parameter/{str(name).lstrip('/')}")
        for name in names
    ] or [Need(action, EVERYTHING)]


def _owner(name: str) -> str:
    """Return whose a parameter is: the public ones are no account's."""
    return "" if name.startswith("/aws/service/") else ACCOUNT


def _of_quotas(action: str, asked: Asked, region: str) -> Sequence[Need]:
    words: dict[str, Any] = json.loads(asked.body or b"{}")
    code = words.get("QuotaCode")
    if not code or "Default" in action:
        return (Need(action, EVERYTHING),)
    arn = f"arn:aws:servicequotas:{region}:{ACCOUNT}:{words.get('ServiceCode', '')}/{code}"
    return (Need(action, arn),)


FINDERS: Mapping[str, Callable[[str, Asked, str], Sequence[Need]]] = {
    "scheduler": _of_schedules,
    "iam": _of_iam,
    "ssm": _of_ssm,
    "servicequotas": _of_quotas,
}


def with_context(need: Need, more: Context) -> Need:
    """Return the same need with more said of it."""
    return Need(need.action, need.resource, {**more, **need.context})
