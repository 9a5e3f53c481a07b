"""From an instance of the cloud to a machine of the hypervisor: what it is, and what it is told."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.endpoint import Endpoint, Instance
from cloudwhale_providers.sandbox.fittings import Fittings, fittings, shape_of
from cloudwhale_providers.sandbox.hypervisor import Guest
from cloudwhale_providers.sandbox.told import Identity, Keys

MARK = "# cloudwhale: "
"""So begins the line of a machine's user data that says in JSON which mailbox its agent has."""


def guest(instance: Instance, endpoint: Endpoint, now: Callable[[], Instant]) -> Guest:
    """Return a machine of EC2 that is to run; raise ValueError for a type that nobody knows."""
    who = identity(instance, instance.tags if instance.metadata_tags else {})

    def notices() -> Mapping[str, str]:
        newest = endpoint.instance(instance.id)
        return {} if newest is None else told_of(newest, now())

    def keys() -> Keys | None:
        found = endpoint.credentials_of(instance.id)
        if found is None:
            return None
        role = instance.profile.rpartition("/")[2]
        return Keys(role, found.access_key, found.secret_key, found.token, found.expires_at, now())

    return Guest(
        who=who,
        launched_at=instance.launched_at,
        mailbox=mailbox_of(instance.user_data),
        fittings=fittings_of(instance),
        notices=notices,
        keys=keys,
    )


def block(user_data: str) -> Mapping[str, Any]:
    """Return what a machine's agent needs; raise ValueError when its user data does not say."""
    for line in user_data.splitlines():
        if line.startswith(MARK + "{"):
            told: Any = json.loads(line.removeprefix(MARK))
            if "mailbox" not in told:
                raise ValueError("its user data names no mailbox")
            return dict(told)
    raise ValueError(f"its user data has no line that begins with {MARK}{{")


def identity(one: Instance, tags: Mapping[str, str]) -> Identity:
    """Return what an instance is, which may read some tags of itself."""
    return Identity(
        one.id, one.type, one.zone, one.region, one.market, tags, one.user_data, one.image,
        one.profile, one.launched_at,
    )  # fmt: skip


def fittings_of(one: Instance) -> Fittings:
    """Return what jobs can have of an instance; raise ValueError for a type that nobody knows."""
    shape = shape_of(one.type)
    if shape is None:
        raise ValueError(f"{one.type} is no machine type that ships with the prices")
    return fittings(shape, one.region)


def mailbox_of(user_data: str) -> str:
    """Return what an agent joins; empty: only who runs the user data can know."""
    try:
        return str(block(user_data)["mailbox"])
    except ValueError:
        return ""


def told_of(instance: Instance, now: Instant) -> dict[str, str]:
    """Return what its metadata service says of its going: EC2 User Guide, spot interruptions
    and scheduled events."""
    found: dict[str, str] = {}
    if instance.rebalance_at is not None and now >= instance.rebalance_at:
        found["events/recommendations/rebalance"] = json.dumps(
            {"noticeTime": _iso(instance.rebalance_at)}
        )
    noticed = instance.noticed_at is not None and now >= instance.noticed_at
    if noticed and instance.goes_at is not None:
        goes = _iso(instance.goes_at)
        found["spot/instance-action"] = json.dumps({"action": "terminate", "time": goes})
        found["spot/termination-time"] = goes
    if instance.maintained_at is not None:
        event = {
            "NotBefore": _http(instance.maintained_at), "NotAfter": _http(instance.maintained_at),
            "Code": instance.maintenance, "Description": "the weather asked for it",
            "EventId": f"instance-event-{instance.id.removeprefix('i-')}", "State": "active",
        }  # fmt: skip
        found["events/maintenance/scheduled"] = json.dumps([event])
    return found


def _http(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%d %b %Y %H:%M:%S GMT")


def _iso(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
