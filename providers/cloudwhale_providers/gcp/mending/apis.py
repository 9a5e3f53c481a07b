"""The APIs that a project must have enabled."""

from collections.abc import Sequence
from dataclasses import dataclass

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.gcp.asking import Calls
from cloudwhale_providers.gcp.checks_project import APIS
from cloudwhale_providers.wants import Want


@dataclass(frozen=True, slots=True)
class ApiWants:
    """What is wanted of Service Usage."""

    calls: Calls
    project: str

    def wants(self) -> Sequence[Want]:
        """Return a want for each."""
        return tuple(map(self._want, APIS))

    def is_readable(self) -> bool:
        """Say whether the project's things can be looked at: the APIs that tell are enabled."""
        try:
            return not any(self._lacks(name) for name in APIS)
        except CloudwhaleError:
            return True  # they may be; what is wrong is said by their own rows

    def _want(self, name: str) -> Want:
        return Want(
            f"API {name}", f"{name} is enabled", f"enable {name} in {self.project}",
            lambda: self._lacks(name), lambda: self._enable(name),
        )  # fmt: skip

    def _path(self, name: str) -> str:
        return f"projects/{self.project}/services/{name}"

    def _lacks(self, name: str) -> bool:
        answer = self.calls.call("serviceusage", "services.get", name=self._path(name))
        return answer.get("state") != "ENABLED"

    def _enable(self, name: str) -> None:
        self.calls.call("serviceusage", "services.enable", name=self._path(name), body={})
