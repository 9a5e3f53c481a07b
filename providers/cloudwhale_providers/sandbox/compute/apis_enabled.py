"""Service Usage: which APIs the project has enabled."""

from collections.abc import Mapping

from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.permits import Permits
from cloudwhale_providers.sandbox.compute.places import PROJECT, PROJECT_NUMBER
from cloudwhale_providers.sandbox.compute.policies import must
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused
from cloudwhale_providers.sandbox.compute.wording import Words


class Enabled:
    """Answers the methods of services."""

    def __init__(self, permits: Permits, closed: set[str]) -> None:
        self._permits, self._closed = permits, closed

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        return {
            "serviceusage.services.get": self.get,
            "serviceusage.services.enable": self.enable,
            "serviceusage.operations.get": self.operation,
        }

    def get(self, call: Call) -> Words:
        """Return an API and whether it is enabled; raise Refused."""
        self._check(call, "serviceusage.services.get")
        return self._service(call)

    def enable(self, call: Call) -> Words:
        """Enable an API; the operation is done at once."""
        self._check(call, "serviceusage.services.enable")
        self._closed.discard(call.path["servicesId"])
        return {
            "name": "operations/acat.1", "done": True,
            "response": {
                "@type": "type.googleapis.com/google.api.serviceusage.v1.EnableServiceResponse",
                "service": self._service(call),
            },
        }  # fmt: skip

    def operation(self, call: Call) -> Words:
        """Return an operation."""
        return {"name": f"operations/{call.path['operationsId']}", "done": True}

    def _service(self, call: Call) -> Words:
        name = call.path["servicesId"]
        return {
            "name": f"projects/{PROJECT_NUMBER}/services/{name}",
            "parent": f"projects/{PROJECT_NUMBER}",
            "config": {"name": name, "title": name},
            "state": "DISABLED" if name in self._closed else "ENABLED",
        }  # fmt: skip

    def _check(self, call: Call, permission: str) -> None:
        kind, name = call.path["v1Id"], call.path["v1Id1"]
        if kind != "projects" or name not in (PROJECT, PROJECT_NUMBER):
            raise GoogleRefused("forbidden", "Permission denied to get service")
        must(self._permits, call, permission, f"projects/{PROJECT}")
