"""What our machines are called: the one mark that every driver keeps.

`cw-INSTALLATION-LAUNCH-NODE`: not all clouds have tags, and not all drivers list them. Small
letters, digits and hyphens stand in every cloud's names; others are written as `z` and their bytes.
"""

import hashlib
import re
from typing import NamedTuple

from cloudwhale.spi.errors import Denied

MOST = 63  # a label of a host name: RFC 1035
_NAME = re.compile(r"cw-([a-z0-9]{1,12})-([0-9a-f]{8})-([a-z0-9-]+)")
_SHORT = re.compile(r"[a-z0-9]{1,12}")
_ESCAPED = re.compile(r"z([0-9a-f]{2})")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxy0123456789-")


class Named(NamedTuple):
    """What a machine's name says."""

    installation: str
    """As `short` writes it."""
    launch: str
    """Of the id that it was asked for under, the beginning of a digest."""
    node: str


def short(installation: str) -> str:
    """Return an installation as names have it: itself where it is short, else by its digest."""
    if _SHORT.fullmatch(installation):
        return installation
    return hashlib.sha256(installation.encode()).hexdigest()[:12]


def name_of(installation: str, request_id: str, node: str) -> str:
    """Return what the machine of a launch is called, always the same; raise Denied if too long."""
    launch = hashlib.sha256(request_id.encode()).hexdigest()[:8]
    name = f"cw-{short(installation)}-{launch}-{_escaped(node)}"
    if len(name) > MOST:
        raise Denied(f"the machine of {node} would be called {name}: that is longer than {MOST}")
    return name


def said_by(name: str) -> Named | None:
    """Return what a name says; None: it is none of cloudwhale's."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    pieces = _ESCAPED.sub(lambda one: f"%{one[1]}", found[3])
    if "z" in pieces:
        return None  # it was cut off, or somebody else's
    return Named(found[1], found[2], _unescaped(found[3]))


def _escaped(node: str) -> str:
    plain = [one if one in _PLAIN else "".join(f"z{b:02x}" for b in one.encode()) for one in node]
    if plain and plain[-1] == "-":  # names do not end with it
        plain[-1] = "z2d"
    return "".join(plain)


def _unescaped(text: str) -> str:
    found = bytearray()
    for piece in re.findall(r"z[0-9a-f]{2}|.", text):
        found += bytes.fromhex(piece[1:]) if piece[0] == "z" else piece.encode()
    return found.decode(errors="replace")
