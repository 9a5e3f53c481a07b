"""What a machine of Compute Engine is told by its metadata service, as a tree."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cloudwhale.model.units import Instant, Seconds
from cloudwhale_providers.sandbox.compute.places import MACHINE_ACCOUNT, PROJECT, PROJECT_NUMBER
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.told import LOOPBACK

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token of a machine's service account."""

    token: str
    left_s: Seconds
    """For how long it lives."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is told of a machine beside what its cloud lists."""

    attributes: Mapping[str, str]
    """As its launch gave them, and as they were changed."""
    account: str = MACHINE_ACCOUNT
    """E-mail of its service account; empty: it has none."""
    bearer: Callable[[], Bearer | None] = lambda: None
    """Draws a token of that account; None: it gets none."""


def tree_of(
    one: Instance, known: Known, now: Instant, address: str = LOOPBACK
) -> Mapping[str, Any]:
    """Return all that a machine is told now."""
    machine: dict[str, Any] = {
        "attributes": dict(known.attributes),
        "cpu-platform": "Intel Cascade Lake",
        "description": "",
        "disks": {"0": {"device-name": "persistent-disk-0", "index": 0, "mode": "READ_WRITE",
                        "type": "PERSISTENT-BALANCED"}},
        "hostname": f"{_name(one)}.{one.zone}.c.{PROJECT}.internal",
        "id": int(one.id),
        "image": one.image,
        "machine-type": f"projects/{PROJECT_NUMBER}/machineTypes/{one.type}",
        "maintenance-event": _maintenance(one, now),
        "name": _name(one),
        "network-interfaces": {"0": {"ip": address, "network":
                                     f"projects/{PROJECT_NUMBER}/networks/default", "mtu": 1460}},
        "preempted": "TRUE" if is_noticed(one, now) else "FALSE",
        "scheduling": {
            "automatic-restart": "FALSE",
            "on-host-maintenance": "TERMINATE",
            "preemptible": "TRUE" if one.market == "spot" else "FALSE",
        },
        "service-accounts": _accounts(known),
        "tags": "[]",
        "zone": f"projects/{PROJECT_NUMBER}/zones/{one.zone}",
    }  # fmt: skip
    project: Mapping[str, Any] = {
        "attributes": {},
        "numeric-project-id": int(PROJECT_NUMBER),
        "project-id": PROJECT,
    }
    return {"instance": machine, "project": project}


def _name(one: Instance) -> str:
    return one.name or one.id


def is_noticed(one: Instance, now: Instant) -> bool:
    """Say whether its preemption is announced."""
    return one.noticed_at is not None and now >= one.noticed_at


def _maintenance(one: Instance, now: Instant) -> str:
    is_near = one.maintained_at is not None and one.ended_at is None
    return "TERMINATE_ON_HOST_MAINTENANCE" if is_near else "NONE"


def _accounts(known: Known) -> Mapping[str, Any]:
    if not known.account:
        return {}
    found: dict[str, Any] = {"aliases": ("default",), "email": known.account, "scopes": SCOPES}
    bearer = known.bearer()
    if bearer is not None:
        found["token"] = json.dumps({
            "access_token": bearer.token, "expires_in": int(bearer.left_s), "token_type": "Bearer",
        })  # fmt: skip
    return {"default": found, known.account: found}
