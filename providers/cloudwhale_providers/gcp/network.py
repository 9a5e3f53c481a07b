"""The network that machines stand in: the one of the settings, with or without an address."""

from typing import Any

from cloudwhale_providers.gcp.account import Account


def interface(account: Account, region: str) -> dict[str, Any]:
    """Return the network interface of a machine.

    Nothing comes in from outside: machines ask, nobody asks them. An address of their own is for
    what they fetch; without one Cloud NAT carries it.
    """
    options = account.options
    found: dict[str, Any] = {"network": network(account)}
    if options.subnetwork:
        found = {"subnetwork": subnetwork(account, region)}
    if options.external_address:
        found["accessConfigs"] = [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}]
    return found


def network(account: Account) -> str:
    """Return the path of the network; one of another project is named by its whole path."""
    said = account.options.network
    if "/" in said:
        return said[said.find("projects/") :] if "projects/" in said else said
    return f"projects/{account.project}/global/networks/{said}"


def subnetwork(account: Account, region: str) -> str:
    """Return the path of the subnetwork in a region."""
    said = account.options.subnetwork
    if "/" in said:
        return said[said.find("projects/") :] if "projects/" in said else said
    return f"projects/{account.project}/regions/{region}/subnetworks/{said}"
