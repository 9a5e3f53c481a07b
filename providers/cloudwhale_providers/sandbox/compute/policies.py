"""IAM policies of the box's things: read, and replaced as a whole; who is slower is refused."""

from collections.abc import Mapping, Sequence
from typing import Any

from cloudwhale_providers.sandbox.compute.calls import Call
from cloudwhale_providers.sandbox.compute.permits import Permits
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused, invalid
from cloudwhale_providers.sandbox.compute.wording import Words, fingerprint

WITH_CONDITIONS = 3
"""Version of a policy that has conditions (IAM docs, "Policy versions")."""


class Policies:
    """The policies of things of one kind, by path."""

    def __init__(self) -> None:
        self._bindings: dict[str, list[Words]] = {}

    def get(self, path: str, version: int) -> Words:
        """Return a policy; conditions are not told to who does not ask for version 3."""
        bindings = self._bindings.get(path, [])
        told = bindings if version >= WITH_CONDITIONS else [_bare(one) for one in bindings]
        own = WITH_CONDITIONS if any("condition" in one for one in told) else 1
        return {"bindings": told, "etag": self._etag(path), "version": own}

    def set(self, path: str, policy: Mapping[str, Any]) -> Words:
        """Replace a policy; raise Refused."""
        if policy.get("etag") not in (None, "", self._etag(path)):
            says = "There were concurrent policy changes. Please retry the whole read-modify-write."
            raise GoogleRefused("aborted", says, 409)
        bindings: Sequence[Words] = policy.get("bindings") or []
        has_conditions = any(one.get("condition") for one in bindings)
        if has_conditions and int(policy.get("version") or 1) < WITH_CONDITIONS:
            says = "Conditions need version 3 of a policy."
            raise invalid("policy.version", policy.get("version"), says)
        self._bindings[path] = [dict(one) for one in bindings if one.get("members")]
        return self.get(path, WITH_CONDITIONS)

    def forget(self, path: str) -> None:
        """Forget the policy of what is gone."""
        self._bindings.pop(path, None)

    def _etag(self, path: str) -> str:
        return fingerprint({"bindings": self._bindings.get(path, [])})


def _bare(binding: Words) -> Words:
    if "condition" not in binding:
        return binding
    return {"role": f"{binding['role']}_withcond_0", "members": binding["members"]}


def must(permits: Permits, call: Call, permission: str, resource: str) -> None:
    """Raise Refused for who may not."""
    if not permits.has(call.caller, permission, resource):
        says = f"Permission '{permission}' denied on resource '{resource}' (or it may not exist)."
        raise GoogleRefused("forbidden", says)


def held(permits: Permits, call: Call, asked: Sequence[str], resource: str) -> Words:
    """Return which of some permissions who asks has."""
    found = [one for one in asked if permits.may_ask(call.caller, one, resource)]
    return {"permissions": found} if found else {}
