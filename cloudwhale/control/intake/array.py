"""Arrays: one job written once, queued for every combination of some values."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping

from cloudwhale.control.intake import words
from cloudwhale.control.intake.fields import Reading, many
from cloudwhale.control.intake.tree import Items, Node, Scalar, Section
from cloudwhale.control.intake.unfit import Unfit, shown

MEMBERS_MOST = 10_000  # what a store and a planning round are measured with

_WHOLE_RANGE = re.compile(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})")

Axes = dict[str, tuple[str, ...]]


def axes(node: Node, reading: Reading) -> Axes:
    """Return the values of each variable: `{lr: [1e-4, 3e-4], seed: 0..4}`; both ends belong."""
    if not isinstance(node, Section) or not node.entries:
        raise Unfit(
            "an array names variables with their values",
            "Write {seed: 0..4, lr: [0.1, 0.2]}.",
            node,
        )
    found: Axes = {}
    for name, entry in node.entries.items():
        try:
            words.env_name(name)
            found[name] = _values(entry.value, reading)
        except Unfit as wrong:
            raise wrong.at(entry.key).under(name) from wrong.__cause__
    members = math.prod(len(values) for values in found.values())
    if members > MEMBERS_MOST:
        raise Unfit(
            f"the array has {members:,} members, more than {MEMBERS_MOST:,}",
            "Split it over several files.",
            node,
        )
    return found


def members(axes: Axes) -> Iterator[Mapping[str, str]]:
    """Return each member's values; the last variable changes fastest."""
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _values(node: Node, reading: Reading) -> tuple[str, ...]:
    if isinstance(node, Scalar) and ".." in node.text:
        return _range(node.text)
    values = many(words.text)(node, reading)
    if not values:
        raise Unfit("it has no values", "Write at least one.", node)
    if isinstance(node, Items) and len(values) < len(node.items):
        raise Unfit("a value stands here twice", "Remove one; members must differ.", node)
    return values


def _range(text: str) -> tuple[str, ...]:
    found = _WHOLE_RANGE.fullmatch(text.strip())
    if found is None:
        raise Unfit(f"{shown(text)} is not a range of whole numbers", "Write it like 0..4.")
    first, last = int(found[1]), int(found[2])
    if first > last:
        raise Unfit(f"the range {shown(text)} ends before it begins", f"Write {last}..{first}?")
    if last - first >= MEMBERS_MOST:
        raise Unfit(
            f"{shown(text)} has more than {MEMBERS_MOST:,} values", "Split it over several files."
        )
    return tuple(str(value) for value in range(first, last + 1))
