"""Google's APIs about a project beside Compute Engine: who may what, which are enabled, buckets.

As much of Resource Manager, IAM, Service Usage and of Cloud Storage's buckets as a doctor looks at
and mends; every request and answer is held against their own descriptions.
"""

from collections.abc import Iterator, Mapping

from cloudwhale_providers.sandbox.compute.apis_buckets import Buckets
from cloudwhale_providers.sandbox.compute.apis_enabled import Enabled
from cloudwhale_providers.sandbox.compute.apis_people import People
from cloudwhale_providers.sandbox.compute.apis_project import Project
from cloudwhale_providers.sandbox.compute.apis_routers import Routers
from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.discovery import Api, api
from cloudwhale_providers.sandbox.compute.services import Services, disabled
from cloudwhale_providers.sandbox.compute.wording import Words

APIS: Mapping[str, str] = {
    "cloudresourcemanager": "v3", "iam": "v1", "serviceusage": "v1", "storage": "v1",
}  # fmt: skip
ALWAYS = ("serviceusage",)
"""Who asks which are enabled is answered in any case."""


class ProjectApis:
    """What a project has beside its machines."""

    def __init__(self, services: Services) -> None:
        self.project = Project(services.permits)
        self.people = People(services.permits)
        self.enabled = Enabled(services.permits, services.closed_apis)
        self.buckets = Buckets(services.permits)
        self.routers = Routers()
        services.add(self.routers.methods())
        self._closed = services.closed_apis

    def described(self) -> Iterator[tuple[Api, Mapping[str, Does]]]:
        """Yield each API with what answers its methods; raise Denied without Google's library."""
        methods = self.methods()
        for name, version in APIS.items():
            yield (
                api(name, version),
                {key: do for key, do in methods.items() if key.startswith(f"{name}.")},
            )

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        found: dict[str, Does] = {}
        for one in (self.project, self.people, self.enabled, self.buckets):
            found |= one.methods()
        return {name: self._open(name.partition(".")[0], do) for name, do in found.items()}

    def _open(self, name: str, do: Does) -> Does:
        def answer(call: Call) -> Words:
            service = f"{name}.googleapis.com"
            if name not in ALWAYS and service in self._closed:
                raise disabled(service)
            return do(call)

        return answer
