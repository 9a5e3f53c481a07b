"""How Compute Engine speaks to its machines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cloudwhale_providers.sandbox.dialects import Now
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.metadata import Talk
from cloudwhale_providers.sandbox.metadata_gce import gce_talk
from cloudwhale_providers.sandbox.told_gce import Known, tree_of

if TYPE_CHECKING:
    from cloudwhale_providers.sandbox.hypervisor import Guest


HARDWARE: Mapping[str, str] = {
    "sys_vendor": "Google",
    "product_name": "Google Compute Engine",
    "product_serial": "GoogleCloud-C10D00000000000000000000000A1E00",
    "product_uuid": "c10d0000-0000-4000-8000-00000000a1e0",
}
"""What cloud-init knows a machine of Compute Engine by: its docs, "Google Compute Engine"."""
ADDRESS = "169.254.169.254"


@dataclass(frozen=True, slots=True)
class Gce:
    """For one machine; see Dialect."""

    newest: Callable[[], Instance]
    """The machine as its cloud lists it now."""
    known: Callable[[], Known]
    """What is told of it beside that; its address is the one that it has here."""
    notices: str = "gcp"

    @property
    def files(self) -> Mapping[str, str]:
        """See Dialect."""
        told = {f"etc/cloudwhale-machine/{name}": f"{text}\n" for name, text in HARDWARE.items()}
        return {**told, "etc/cloud/cloud.cfg.d/90-cloud.cfg": "datasource_list: [GCE]\n"}

    @property
    def names(self) -> Mapping[str, str]:
        """See Dialect."""
        return {"metadata.google.internal": ADDRESS}

    def environment(self, url: str) -> Mapping[str, str]:
        """See Dialect."""
        host = urlsplit(url).netloc
        return {"GCE_METADATA_HOST": host, "GCE_METADATA_IP": host, "GCE_METADATA_ROOT": host}

    def talk(self, guest: "Guest", address: str, now: Now) -> Talk:
        """See Dialect."""

        def tree() -> Mapping[str, Any]:
            return tree_of(self.newest(), self.known(), now(), address)

        return gce_talk(tree)
