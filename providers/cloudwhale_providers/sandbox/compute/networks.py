"""Networks and subnetworks: the default one, with a subnetwork in each region, or none."""

from collections.abc import Mapping, Sequence
from typing import Any

from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.catalogue import MADE, catalogue
from cloudwhale_providers.sandbox.compute.lists import aggregated, listed
from cloudwhale_providers.sandbox.compute.places import NETWORK, PROJECT
from cloudwhale_providers.sandbox.compute.refused import invalid, not_found
from cloudwhale_providers.sandbox.compute.wording import (
    Words,
    fingerprint,
    last,
    link,
    number,
    path_of,
    region_of,
)

FIELD = "resource.networkInterfaces[0]"


class Networks:
    """Answers the methods of networks and subnetworks."""

    def __init__(self, has_default: bool) -> None:
        self._names: Sequence[str] = (NETWORK,) if has_default else ()

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        return {
            "compute.networks.get": self.get,
            "compute.networks.list": self.list,
            "compute.subnetworks.get": self.get_subnetwork,
            "compute.subnetworks.list": self.list_subnetworks,
            "compute.subnetworks.aggregatedList": self.aggregate,
            "compute.routers.list": lambda call: listed(call, "router", ()),  # so there is no NAT
        }

    def get(self, call: Call) -> Words:
        """Return a network; raise Refused."""
        name = call.path["network"]
        if name not in self._names:
            raise not_found(f"projects/{PROJECT}/global/networks/{name}")
        return network_words(name)

    def list(self, call: Call) -> Words:
        """Return the networks."""
        return listed(call, "network", map(network_words, self._names))

    def get_subnetwork(self, call: Call) -> Words:
        """Return a subnetwork; raise Refused."""
        return self._subnetwork(call.path["region"], call.path["subnetwork"])

    def list_subnetworks(self, call: Call) -> Words:
        """Return the subnetworks of a region."""
        return listed(call, "subnetwork", self._of(call.path["region"]))

    def aggregate(self, call: Call) -> Words:
        """Return all subnetworks."""
        found = {f"regions/{one}": self._of(one) for one in catalogue().regions}
        return aggregated(call, "subnetwork", "subnetworks", found)

    def subnetwork_of(self, interface: Mapping[str, Any], zone: str) -> str:
        """Return the path of the subnetwork that an interface is in; raise Refused."""
        region, said = region_of(zone), str(interface.get("subnetwork") or "")
        if said:
            parts = path_of(said).split("/")
            where = parts[parts.index("regions") + 1] if "regions" in parts else region
            if where != region:
                says = f"The subnetwork is not in region '{region}'."
                raise invalid(f"{FIELD}.subnetwork", said, says)
            return str(self._subnetwork(region, last(said))["selfLink"]).removeprefix(link(""))
        name = last(str(interface.get("network") or f"global/networks/{NETWORK}"))
        if name not in self._names:
            raise not_found(f"projects/{PROJECT}/global/networks/{name}")
        return f"projects/{PROJECT}/regions/{region}/subnetworks/{name}"

    def _of(self, region: str) -> Sequence[Words]:
        return [subnetwork_words(name, region) for name in self._names]

    def _subnetwork(self, region: str, name: str) -> Words:
        if name not in self._names or region not in catalogue().regions:
            raise not_found(f"projects/{PROJECT}/regions/{region}/subnetworks/{name}")
        return subnetwork_words(name, region)


def network_words(name: str) -> Words:
    """Return a network of automatic mode as it is listed."""
    path = f"projects/{PROJECT}/global/networks/{name}"
    parts = [f"projects/{PROJECT}/regions/{one}/subnetworks/{name}" for one in catalogue().regions]
    return {
        "kind": "compute#network", "id": number(path), "name": name, "creationTimestamp": MADE,
        "autoCreateSubnetworks": True, "mtu": 1460, "subnetworks": [link(one) for one in parts],
        "routingConfig": {"routingMode": "REGIONAL"}, "selfLink": link(path),
    }  # fmt: skip


def subnetwork_words(name: str, region: str) -> Words:
    """Return a subnetwork as it is listed."""
    path = f"projects/{PROJECT}/regions/{region}/subnetworks/{name}"
    return {
        "kind": "compute#subnetwork", "id": number(path), "name": name, "creationTimestamp": MADE,
        "network": link(f"projects/{PROJECT}/global/networks/{name}"),
        "region": link(f"projects/{PROJECT}/regions/{region}"), "purpose": "PRIVATE",
        "ipCidrRange": f"10.{128 + catalogue().regions.index(region)}.0.0/20",
        "gatewayAddress": f"10.{128 + catalogue().regions.index(region)}.0.1",
        "privateIpGoogleAccess": False, "stackType": "IPV4_ONLY", "fingerprint": fingerprint({}),
        "selfLink": link(path),
    }  # fmt: skip
