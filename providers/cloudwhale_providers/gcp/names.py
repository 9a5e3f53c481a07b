"""What our things are called at GCP, and what they carry: labels to be found by, metadata to know.

Labels hold lower-case letters, digits, `_` and `-`, 63 at most (Compute Engine docs, "Organize
resources using labels"), so a word that has others is spelled otherwise there. What must be read
back as it was stands in the metadata of the machine, which reads it from its metadata service.
"""

import hashlib
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale.spi.provider import LaunchRequest

INSTALLATION = "cloudwhale-installation"
NODE = "cloudwhale-node"
REQUEST = "cloudwhale-request"
"""The id that a launch was asked for under."""
PROJECT = "cloudwhale-project"
"""Project of its first job: a label, for the bill."""
LEASE = "cloudwhale-lease"
"""`NUMBER:SECONDS` from launch on until the machine ends by itself."""
GPUS = "cloudwhale-gpus"
"""How many GPUs it was rented with; 0: none, and its first boot looks for none."""
REGION = "cloudwhale-region"
STOP_AT = "cloudwhale-stop-at"
"""When the cloud ends it, in seconds since 1970."""
LAUNCHED_AT = "cloudwhale-launched-at"
"""When its lease began to count, in seconds since 1970: the metadata server does not say."""
NOTICE_S = "cloudwhale-notice-s"
"""Seconds of notice that were granted with it (`preemptionNoticeDuration`); left out: the usual 30.

Its agent counts on it, so an insert that is repeated without the one leaves out the other.
"""
USER_DATA = "user-data"
"""What cloud-init runs at the first boot; the same for all machines of one agent."""
LABELS = (INSTALLATION, NODE, REQUEST, PROJECT)
"""Labels of machines and disks; the first says whose a thing is."""

NAME = re.compile(r"cw-[0-9a-f]{24}")
"""What our machines are called."""
SPACE = uuid.UUID("5f6f1e0e-0f4c-5d0a-9d8c-7a1f4d3b2c61")
"""Under which launches have their UUIDs; drawn once."""
MOST_CHARACTERS = 63  # of a label
_LABEL = re.compile(r"[a-z0-9_-]{1,63}")


def machine_name(installation: str, request_id: str) -> str:
    """Return what the machine of a launch is called: the same for the same id.

    Names are a zone's, and two installations of one project count their rentals alike.
    """
    digest = hashlib.sha256(f"{installation} {request_id}".encode()).hexdigest()
    return f"cw-{digest[:24]}"


def token(installation: str, request_id: str, attempt: str = "") -> str:
    """Return the requestId of a call: a UUID, the same for the same launch and attempt.

    GCP ignores a second call with the same one, whatever the words of either.
    """
    return str(uuid.uuid5(SPACE, f"{installation} {request_id} {attempt}".strip()))


def label(word: str) -> str:
    """Return a word as the value of a label, with some digits where it is spelled otherwise."""
    if not word or _LABEL.fullmatch(word):
        return word
    digest = hashlib.sha256(word.encode()).hexdigest()[:8]
    spelled = re.sub("[^a-z0-9_-]", "-", word.lower())
    return f"{spelled[: MOST_CHARACTERS - 9]}-{digest}"


def labels_of(installation: str, request: LaunchRequest) -> dict[str, str]:
    """Return the labels of a machine and its disks, without empty ones."""
    found = {
        INSTALLATION: installation,
        NODE: request.node,
        REQUEST: request.request_id,
        PROJECT: request.project,
    }
    return {key: label(value) for key, value in found.items() if value}


def attributes_of(installation: str, request: LaunchRequest, now: Instant) -> dict[str, str]:
    """Return what a machine is to know of itself, as attributes of its metadata."""
    offer = request.offer
    found = {
        INSTALLATION: installation,
        NODE: request.node,
        REQUEST: request.request_id,
        REGION: "" if offer is None else offer.region,
        GPUS: str(0 if offer is None else len(offer.facts.devices)),
    }
    if request.lease is not None:
        seconds = max(0, int(request.lease.away_until - now))
        found[LEASE] = f"{request.lease.number}:{seconds}"
        found[LAUNCHED_AT] = str(int(now))
    if request.stop_at is not None:
        found[STOP_AT] = str(int(request.stop_at))
    return {key: value for key, value in found.items() if value}


def as_items(attributes: Mapping[str, str]) -> list[dict[str, str]]:
    """Return attributes as Compute Engine wants them."""
    return [{"key": key, "value": value} for key, value in attributes.items()]


def attributes(thing: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes that a description of a machine carries."""
    metadata: Mapping[str, Any] = thing.get("metadata") or {}
    items: Sequence[Mapping[str, Any]] = metadata.get("items") or ()
    return {str(one["key"]): str(one.get("value", "")) for one in items}


def labels(thing: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels that a description carries."""
    found: Mapping[str, Any] = thing.get("labels") or {}
    return {str(key): str(value) for key, value in found.items()}


def last(url: Any) -> str:
    """Return the name that a URL of a thing ends with, `…/zones/us-central1-a`."""
    return str(url or "").rpartition("/")[2]


def region_of(zone: str) -> str:
    """Return the region of a zone: `us-central1` of `us-central1-a`."""
    return zone.rpartition("-")[0]


def instant(text: Any) -> Instant | None:
    """Return a time that Google writes, `2026-11-30T10:00:00.123-08:00`; None for what is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None
