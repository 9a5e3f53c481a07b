"""What all parts of this provider work with: whose project it is, and how it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import Denied
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.asking import Calls, Everywhere, everywhere
from cloudwhale_providers.gcp.settings import GcpSettings


@dataclass(frozen=True, slots=True)
class Account:
    """A project of GCP, and one installation of cloudwhale in it."""

    calls: Calls
    installation: str
    """Its machines carry it as a label; those of others are never touched."""
    options: GcpSettings
    clock: Clock

    @property
    def project(self) -> str:
        """Return the project's id; raise Denied where neither settings nor credentials say."""
        found = self.options.project or self.calls.project()
        if not found:
            raise Denied(
                "nobody says which project of GCP is meant",
                "Set `project` in [clouds.gcp]; `gcloud projects list` lists yours.",
            )
        return found

    @property
    def own(self) -> str:
        """Return the filter of lists that keeps what is ours."""
        return f"labels.{names.INSTALLATION}={names.label(self.installation)}"

    def compute(self, method: str, **words: Any) -> Mapping[str, Any]:
        """Ask Compute Engine about the project; raise Denied, TryAnother or Unreachable."""
        return self.calls.call("compute", method, project=self.project, **words)

    def everywhere(self, method: str, **words: Any) -> Everywhere:
        """Return a list over all zones or regions; raise Denied or Unreachable."""
        return everywhere(self.calls, method, project=self.project, **words)
