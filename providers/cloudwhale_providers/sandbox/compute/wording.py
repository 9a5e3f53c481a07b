"""How Compute Engine writes names, links, numbers and times."""

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from cloudwhale.model.units import Instant

Words = dict[str, Any]
"""A resource as JSON has it."""
ROOT = "https://www.googleapis.com/compute/v1/"
PACIFIC = timezone(timedelta(hours=-8))
"""Times come with an offset: whoever reads them has to heed it."""


def link(path: str) -> str:
    """Return what names a resource everywhere; `path` begins with `projects/`."""
    return ROOT + path


def path_of(url: str) -> str:
    """Return `projects/...` or `zones/...` of whatever a request names a resource by."""
    for mark in ("projects/", "zones/", "regions/", "global/"):
        _, found, rest = f"/{url}".partition(f"/{mark}")
        if found:
            return mark + rest
    return url


def last(url: str) -> str:
    """Return the name at the end of a link."""
    return url.rpartition("/")[2]


def region_of(zone: str) -> str:
    """Return the region of a zone."""
    return zone.rpartition("-")[0]


def number(*words: object) -> str:
    """Return the same digits for the same words: what resources are numbered by."""
    digest = hashlib.sha256(" ".join(map(str, words)).encode()).digest()
    return str(int.from_bytes(digest[:8], "big") >> 1 | 1 << 60)


def fingerprint(told: Mapping[str, Any]) -> str:
    """Return what changes with a content."""
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()
    return base64.urlsafe_b64encode(digest[:6]).decode()


def written_at(at: Instant) -> str:
    """Return a time in RFC 3339 with milliseconds, as Compute Engine has it."""
    return datetime.fromtimestamp(at, UTC).astimezone(PACIFIC).isoformat(timespec="milliseconds")


def listed_at(at: Instant) -> Instant:
    """Return a time as whoever reads a list knows it: bills are counted from such."""
    found = read_at(written_at(at))
    return at if found is None else found


def read_at(text: str) -> Instant | None:
    """Return a time that was written in RFC 3339; None: it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found.timestamp()
