"""Resource Manager: the project, and who may what in it."""

from collections.abc import Mapping
from typing import Any

from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.permits import Permits
from cloudwhale_providers.sandbox.compute.places import PROJECT, PROJECT_NUMBER
from cloudwhale_providers.sandbox.compute.policies import Policies, held, must
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused
from cloudwhale_providers.sandbox.compute.wording import Words

NAMES = (PROJECT, PROJECT_NUMBER)


class Project:
    """Answers the methods of projects."""

    def __init__(self, permits: Permits) -> None:
        self._permits = permits
        self.policies = Policies()

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        begin = "cloudresourcemanager.projects."
        return {
            f"{begin}get": self.get,
            f"{begin}getIamPolicy": self.get_policy,
            f"{begin}setIamPolicy": self.set_policy,
            f"{begin}testIamPermissions": self.test,
        }

    def get(self, call: Call) -> Words:
        """Return the project; raise Refused."""
        path = self._path(call, "resourcemanager.projects.get")
        return {
            "name": f"projects/{PROJECT_NUMBER}", "projectId": PROJECT, "state": "ACTIVE",
            "displayName": PROJECT, "etag": "W/1", "parent": "organizations/1", "labels": {},
            "createTime": "2026-01-01T00:00:00Z", "updateTime": "2026-01-01T00:00:00Z",
        } if path else {}  # fmt: skip

    def get_policy(self, call: Call) -> Words:
        """Return its policy."""
        path = self._path(call, "resourcemanager.projects.getIamPolicy")
        options: Mapping[str, Any] = call.body.get("options") or {}
        return self.policies.get(path, int(options.get("requestedPolicyVersion") or 1))

    def set_policy(self, call: Call) -> Words:
        """Replace it; raise Refused."""
        path = self._path(call, "resourcemanager.projects.setIamPolicy")
        return self.policies.set(path, call.body.get("policy") or {})

    def test(self, call: Call) -> Words:
        """Return which of some permissions who asks has."""
        path = self._path(call, "")
        return held(self._permits, call, call.body.get("permissions") or (), path)

    def _path(self, call: Call, permission: str) -> str:
        name, path = call.path["projectsId"], f"projects/{PROJECT}"
        if name not in NAMES:  # nobody is told which projects there are
            says = "The caller does not have permission"
            raise GoogleRefused("forbidden", says)
        if permission:
            must(self._permits, call, permission, path)
        return path
