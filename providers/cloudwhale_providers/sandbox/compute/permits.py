"""Which permissions a method needs, and who has them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cloudwhale_providers.sandbox.compute.calls import Call, Caller
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused

MayAsk = Callable[[Caller, str, str], bool]
"""Says whether somebody has a permission on a resource, by its path."""
VERBS = {
    "insert": "create", "aggregatedList": "list", "wait": "get", "getFromFamily": "getFromFamily",
}  # fmt: skip
"""Where the permission is not called like the method."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "compute.instances.insert": (
        "compute.instances.create", "compute.disks.create", "compute.subnetworks.use",
    ),
}  # fmt: skip
"""Compute Engine docs, "IAM permissions": of methods that need more than one."""


def needs_of(call: Call) -> tuple[str, ...]:
    """Return the permissions that a call needs."""
    own = NEEDS.get(call.method.id)
    if own is None:
        service, resource, verb = call.method.id.rsplit(".", 2)
        return (f"{service}.{resource}.{VERBS.get(verb, verb)}",)
    return own + (_of_insert(call) if call.method.id == "compute.instances.insert" else ())


def _of_insert(call: Call) -> tuple[str, ...]:
    body, found = call.body, list[str]()
    if body.get("metadata"):
        found.append("compute.instances.setMetadata")
    if body.get("labels"):
        found.append("compute.instances.setLabels")
    if any(one.get("accessConfigs") for one in body.get("networkInterfaces") or ()):
        found.append("compute.subnetworks.useExternalIp")
    if body.get("serviceAccounts"):
        found += ["compute.instances.setServiceAccount", "iam.serviceAccounts.actAs"]
    disks: Sequence[Mapping[str, Any]] = [
        one.get("initializeParams") or {} for one in body.get("disks") or ()
    ]
    if any(one.get("labels") for one in disks):
        found.append("compute.disks.setLabels")
    return tuple(found)


def everything_of_users(caller: Caller, permission: str, resource: str) -> bool:
    """Say whether somebody may: the user may all, a machine nothing of Compute Engine."""
    return not caller.machine


def _nobody(caller: Caller, permission: str, resource: str) -> None:
    """Tell nobody."""


class Permits:
    """Holds callers to what they may ask for; `may_ask` can be another."""

    def __init__(self, may_ask: MayAsk = everything_of_users) -> None:
        self.may_ask = may_ask
        self.on_needed: Callable[[Caller, str, str], object] = _nobody
        """Called with what a call needs, allowed or not; not with what somebody only asks about."""

    def has(self, caller: Caller, permission: str, resource: str) -> bool:
        """Say whether somebody may do what he is about to do."""
        self.on_needed(caller, permission, resource)
        return self.may_ask(caller, permission, resource)

    def check(self, call: Call) -> None:
        """Raise Refused for the first permission that is missing."""
        resource = call.method.path.format_map(call.path)
        for permission in needs_of(call):
            if not self.has(call.caller, permission, resource):
                says = f"Required '{permission}' permission for '{resource}'"
                raise GoogleRefused("forbidden", says)
