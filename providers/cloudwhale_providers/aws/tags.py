"""The tags that our things carry at AWS: whose they are, and what a machine is to know of itself.

A machine reads its own from the metadata service, where keys hold letters, digits and `+-=.,_:@`
only (EC2 User Guide, work-with-tags-in-IMDS).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale.spi.provider import LaunchRequest

INSTALLATION = "cloudwhale:installation"
NODE = "cloudwhale:node"
LAUNCH = "cloudwhale:launch"
"""The id that a launch was asked for under."""
PROJECT = "cloudwhale:project"
LEASE = "cloudwhale:lease"
"""`NUMBER:SECONDS` from launch on until the machine ends by itself."""
GPUS = "cloudwhale:gpus"
"""How many GPUs it was rented with; 0: none, and its first boot looks for none."""
ROLE = "cloudwhale:role"
"""Id of its role, where it has one: its folders in the mailbox lie behind that and its own id."""
STOP_AT = "cloudwhale:stop-at"
"""When the cloud ends it, in seconds since 1970."""
NAME = "Name"
MOST_CHARACTERS = 256  # of a tag's value


def of_machine(
    installation: str, request: LaunchRequest, now: Instant, role: str = ""
) -> dict[str, str]:
    """Return the tags of a machine, its disk and its interface; `role`: the id of its role."""
    tags = {
        NAME: f"cloudwhale {request.node}",
        INSTALLATION: installation,
        NODE: request.node,
        LAUNCH: request.request_id,
        PROJECT: request.project,
        GPUS: str(len(request.offer.facts.devices) if request.offer is not None else 0),
        ROLE: role,
    }
    if request.lease is not None:
        seconds = max(0, int(request.lease.away_until - now))
        tags[LEASE] = f"{request.lease.number}:{seconds}"
    if request.stop_at is not None:
        tags[STOP_AT] = str(int(request.stop_at))
    return tags


def door(tags: Mapping[str, str], machine: str) -> str:
    """Return who a machine is to the mailbox's bucket, by its tags; empty: it is not told of any.

    As `aws:userid` has it; the machine itself reads the same tag.
    """
    role = tags.get(ROLE, "")
    return f"{role}:{machine}" if role else ""


def listed(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Return tags as AWS wants them, without empty ones."""
    return [{"Key": key, "Value": value[:MOST_CHARACTERS]} for key, value in tags.items() if value]


def at_creation(tags: Mapping[str, str], kinds: Sequence[str]) -> list[dict[str, Any]]:
    """Return tags for things of several kinds that one call makes."""
    return [{"ResourceType": kind, "Tags": listed(tags)} for kind in kinds]
