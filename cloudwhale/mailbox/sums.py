"""What a store says of an object's bytes, and whether what came is that.

A tag of 32 hexadecimal digits is the MD5 of an object that was written in one piece; with `-N` it
is the MD5 of the MD5s of its N parts (S3 API Reference, "Object", ETag; GCS XML API, "ETag"). Where
a store encrypts with keys of its own or of a key service, a tag looks the same and is no MD5.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cloudwhale.spi.errors import CloudwhaleError

MIB = 1 << 20
PIECE_BYTES = 16 * MIB
"""What is fetched by one request where nothing asks for another length."""
PARTS_MOST_BYTES = 128 * MIB
USUAL_PARTS = (8, 16, 5, 64, 32, 10, 100, 50, 12, 15, 20, 24, 25, 128)
"""MiB of a part as clients write them, the most usual first; then as millions of bytes."""
TAG = re.compile(r"([0-9a-f]{32})(?:-([0-9]+))?")
SAID = re.compile(r"(sha256|md5)=([0-9A-Fa-f]+)")
LENGTHS = {"sha256": 64, "md5": 32}

Way = Literal["sha256", "md5", "parts"]


class Damaged(CloudwhaleError):
    """What came has another checksum than the job file says it must have."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A checksum that an object should have."""

    way: Way
    hexadecimal: str
    part_bytes: int = 0
    """Of `parts`: the length of each but the last."""
    is_sure: bool = False
    """Whether the job file says so; what a tag says may be no checksum at all."""


def sum_of_tag(tag: str, size_bytes: int | None) -> Sum | None:
    """Return the checksum that a store's tag most likely is; None: it is none that can be told."""
    found = TAG.fullmatch(tag.strip('"'))
    if found is None or size_bytes is None:
        return None
    if found[2] is None:
        return Sum("md5", found[1])
    part_bytes = _part_bytes(size_bytes, int(found[2]))
    return Sum("parts", found[1], part_bytes) if part_bytes else None


def _part_bytes(size_bytes: int, parts: int) -> int:
    """Return the most usual length of parts that gives so many; 0: none does.

    It may be another one: what does not match such a sum is not damaged for that alone.
    """
    if parts == 1:
        return size_bytes if size_bytes <= PARTS_MOST_BYTES else 0
    lengths = (unit * count for unit in (MIB, 1_000_000) for count in USUAL_PARTS)
    return next((one for one in lengths if -(-size_bytes // one) == parts), 0)


def said_in(fragment: str) -> Sum | None:
    """Return the checksum that a URL's fragment says, `sha256=…` or `md5=…`; None: it says none.

    Raise ValueError for one of a wrong length.
    """
    found = SAID.fullmatch(fragment)
    if found is None:
        return None
    way: Way = "sha256" if found[1] == "sha256" else "md5"
    if len(found[2]) != LENGTHS[way]:
        raise ValueError(f"a {way} has {LENGTHS[way]} hexadecimal digits, not {len(found[2])}")
    return Sum(way, found[2].lower(), is_sure=True)


def piece_bytes(wanted: Sum | None) -> int:
    """Return how long the pieces of an object are: as its parts were, where those are told."""
    return wanted.part_bytes if wanted is not None and wanted.part_bytes else PIECE_BYTES


def of_parts(digests: Sequence[bytes]) -> str:
    """Return the MD5 of the MD5s of parts."""
    return hashlib.md5(b"".join(digests), usedforsecurity=False).hexdigest()
