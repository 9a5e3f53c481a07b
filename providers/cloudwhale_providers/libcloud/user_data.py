"""What a machine is told that a driver of libcloud launches: one text for each machine.

Such clouds have no tags, no roles and no metadata service that all of them share, so the text names
the machine's node and lease, and holds the keys to its mailbox: see first_words for the rest. The
environment there has besides: TOLD_NODE, TOLD_LEASE, TOLD_INSTALLATION, TOLD_GPUS as tags say them
elsewhere, and TOLD_AT, when the lease began to count.
"""

import re
from collections.abc import Mapping

from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import Denied
from cloudwhale.spi.provider import LaunchRequest
from cloudwhale_providers.first_words import Cloud, first_words

MOST_BYTES = 16 * 1024
"""Linode takes 16 KB and is the strictest (its API, `metadata.user_data`); OpenStack takes 64."""
_SAFE = re.compile(r"[\w.,:@/+=-]*", re.ASCII)
"""What a shell takes as one word, a format of `printf` as itself, and single quotes hold."""


def user_data(
    request: LaunchRequest, installation: str, now: Instant, environment: Mapping[str, str]
) -> str:
    """Return the text for one machine; `environment`: what it is given to open its mailbox with.

    Raise Denied when it is too long, or holds what a shell would take for something else.
    """
    for name, value in environment.items():
        if not _SAFE.fullmatch(value):
            raise Denied(f"what ${name} holds cannot be said to a machine", "Use another value.")
    offer, lease = request.offer, request.lease
    told = {
        "TOLD_NODE": request.node,
        "TOLD_INSTALLATION": installation,
        "TOLD_GPUS": str(0 if offer is None else len(offer.facts.devices)),
        "TOLD_AT": str(int(now)),
        "TOLD_LEASE": ""
        if lease is None
        else f"{lease.number}:{max(0, int(lease.away_until - now))}",
    }
    cloud = Cloud(
        name="the driver's cloud",
        package="cloudwhale_providers.libcloud",
        notices="",
        most_bytes=MOST_BYTES,
        environment=environment,
        told=told,
    )
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    return first_words(cloud, request.mailbox, region, request.bundle)
