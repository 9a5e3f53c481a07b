"""Cloud Routers, and whether they translate addresses: what machines without addresses need."""

from collections.abc import Mapping

from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.lists import listed
from cloudwhale_providers.sandbox.compute.places import PROJECT
from cloudwhale_providers.sandbox.compute.wording import Words, link, number


class Routers:
    """Answers the methods of routers; there are none until somebody makes one."""

    def __init__(self) -> None:
        self._routers: dict[str, list[Words]] = {}

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        return {"compute.routers.list": self.list}

    def make(self, region: str, network: str) -> None:
        """Make one with Cloud NAT for all of a network's subnetworks in a region."""
        path = f"projects/{PROJECT}/regions/{region}"
        nat = {
            "name": "cloudwhale", "natIpAllocateOption": "AUTO_ONLY",
            "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
        }  # fmt: skip
        self._routers.setdefault(region, []).append({
            "kind": "compute#router", "id": number(region, network), "name": "cloudwhale",
            "network": link(f"projects/{PROJECT}/global/networks/{network}"), "nats": [nat],
            "region": link(path), "selfLink": link(f"{path}/routers/cloudwhale"),
        })  # fmt: skip

    def list(self, call: Call) -> Words:
        """Return those of a region."""
        return listed(call, "router", self._routers.get(call.path["region"], ()))
