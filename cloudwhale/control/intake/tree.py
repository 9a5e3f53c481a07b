"""YAML text as a tree that remembers where everything stood, within limits that stop bombs.

Built from libyaml's events rather than its composer, which recurses without bound and lets one
alias stand for a billion nodes. Tags are not resolved: the parser of each key reads the text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from cloudwhale.control.intake.unfit import Spot, Unfit

DEPTH_MOST = 32  # the deepest job file of the documentation has 5 levels
ALIASED_MOST = 100_000  # 1,000 jobs that each name a block of 100 values

NULLS = frozenset({"", "~", "null", "Null", "NULL"})

# What YAML 1.1 calls printable; libyaml refuses the rest too, without saying where it stands.
_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NUMBER_LIKE = re.compile(r"[-+]?[0-9][0-9_.,:eExX+-]*|[-+]?\.[0-9]+|[-+]?\.(inf|nan)", re.I)
_PLAIN_TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "seq", "map")
) | {"!"}


@dataclass(frozen=True, slots=True)
class Scalar(Spot):
    """A single value, as text."""

    text: str
    plain: bool = True
    """Whether it was written without quotes."""

    @property
    def is_null(self) -> bool:
        """Say whether it says "no value"."""
        return self.plain and self.text in NULLS


@dataclass(frozen=True, slots=True)
class Items(Spot):
    """A list."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value."""

    key: Scalar
    value: "Node"


@dataclass(frozen=True, slots=True)
class Section(Spot):
    """Keys with values, in the order of the file."""

    entries: dict[str, Entry]


Node: TypeAlias = Scalar | Items | Section


def parse(text: str) -> Node:
    """Return the one document of a text; raise Unfit with the place of the first thing wrong."""
    strange = _UNPRINTABLE.search(text)
    if strange:
        raise Unfit(
            f"the character U+{ord(strange[0]):04X} cannot stand in YAML",
            "Remove it, or write it as an escape in double quotes.",
            spot_of(text, strange.start()),
        )
    builder = _Builder()
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise _malformed(text, error) from error
    if builder.root is None:
        raise Unfit(
            "the file is empty", "Describe a job: at least `name` and `command`.", Spot(1, 1)
        )
    return builder.root


def spot_of(text: str, offset: int) -> Spot:
    """Return line and column of an offset."""
    line = text.count("\n", 0, offset) + 1
    return Spot(line, offset - (text.rfind("\n", 0, offset) + 1) + 1)


def _events(text: str) -> Iterator[yaml.Event]:
    # The C parser where PyYAML was built with it, as its wheels are; the other is 20 times slower.
    parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        while parser.check_event():
            yield parser.get_event()
    finally:
        parser.dispose()


def _malformed(text: str, error: yaml.MarkedYAMLError) -> Unfit:
    mark, lines = error.problem_mark, text.splitlines()
    if error.context_mark and (mark is None or (mark.line, mark.column) >= _end(lines)):
        mark = error.context_mark  # what never ends is shown where it begins
    if mark is None:
        return Unfit(f"this is not YAML: {error.problem}", "Mend the file.", Spot(1, 1))
    spot = Spot(mark.line + 1, mark.column + 1)
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: mark.column + 1]:
        return Unfit("a tab cannot indent YAML", "Indent with blanks.", spot)
    doing = f", {error.context}" if error.context else ""
    return Unfit(
        f"this is not YAML: {error.problem}{doing}",
        "Look at the indentation, colons, brackets and quotes here and on the line before.",
        spot,
    )


def _end(lines: Sequence[str]) -> tuple[int, int]:
    return (len(lines) - 1, len(lines[-1])) if lines else (0, 0)


@dataclass(slots=True)
class _Open:
    """A list or section whose end was not seen yet."""

    spot: Spot
    anchor: str | None
    keys: dict[str, Entry] | None
    """None for a list."""
    items: list[Node] = field(default_factory=list["Node"])
    key: Scalar | None = None
    size: int = 1

    def put(self, node: Node, size: int) -> None:
        self.size += size
        if self.keys is None:
            self.items.append(node)
        elif self.key is None:
            self.key = _key(node, self.keys)
        else:
            self.keys[self.key.text] = Entry(self.key, node)
            self.key = None

    def closed(self) -> Node:
        line, column = self.spot.line, self.spot.column
        if self.keys is None:
            return Items(line, column, tuple(self.items))
        return Section(line, column, self.keys)


class _Builder:
    """Takes libyaml's events, one by one, and gives the tree's root."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        """None while the anchored list or section is still open."""
        self._aliased = 0
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._begin(event, isinstance(event, yaml.MappingStartEvent))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                last = self._open.pop()
                self._put(last.closed(), last.size, last.anchor)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.DocumentStartEvent():
                self._document(event)
            case _:
                pass

    def _document(self, event: yaml.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            raise Unfit(
                "a second document begins here",
                "Put several jobs into one document: `jobs: [...]`.",
                _spot(event),
            )

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        spot = _spot(event)
        _check_tag(event.tag, spot)
        # `style` is None or "" for values without quotes, depending on the parser.
        plain = not event.style and event.tag is None
        self._put(Scalar(spot.line, spot.column, event.value, plain), 1, event.anchor)

    def _begin(self, event: yaml.CollectionStartEvent, mapping: bool) -> None:
        spot = _spot(event)
        _check_tag(event.tag, spot)
        if len(self._open) >= DEPTH_MOST:
            raise Unfit(
                f"lists and sections are nested more than {DEPTH_MOST} deep",
                "A job file needs no more than 5 levels.",
                spot,
            )
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append(_Open(spot, event.anchor, {} if mapping else None))

    def _alias(self, event: yaml.AliasEvent) -> None:
        spot, name = _spot(event), event.anchor
        if name not in self._anchors:
            raise Unfit(f"*{name} names nothing", f"Write &{name} before it.", spot)
        found = self._anchors[name]
        if found is None:
            raise Unfit(f"*{name} stands inside what it names", "Write the values out.", spot)
        node, size = found
        self._aliased += size
        if self._aliased > ALIASED_MOST:
            raise Unfit(
                f"the aliases of this file stand for more than {ALIASED_MOST:,} values",
                "Write the values out, or put what jobs share under `defaults`.",
                spot,
            )
        self._put(node, size, None)

    def _put(self, node: Node, size: int, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = (node, size)
        if self._open:
            self._open[-1].put(node, size)
        else:
            self.root = node


def _spot(event: yaml.Event) -> Spot:
    mark = event.start_mark
    return Spot(mark.line + 1, mark.column + 1) if mark else Spot(1, 1)


def _check_tag(tag: str | None, spot: Spot) -> None:
    if tag is not None and tag not in _PLAIN_TAGS:
        raise Unfit(f"the tag {tag} is not understood", "Remove it.", spot)


def _key(node: Node, before: dict[str, Entry]) -> Scalar:
    """Return a node as a key of a section that has other keys already."""
    if not isinstance(node, Scalar):
        raise Unfit("a key must be a word", "Write `key: value`.", node)
    if node.plain and (node.is_null or _NUMBER_LIKE.fullmatch(node.text)):
        raise Unfit(
            f"the key {node.text or 'null'!r} is not a word",
            "Put it in quotes if it is meant.",
            node,
        )
    if node.plain and node.text == "<<":
        raise Unfit(
            "merging with << is not supported", "Put what jobs share under `defaults`.", node
        )
    if node.text in before:
        first = before[node.text].key
        raise Unfit(
            f"the key {node.text!r} stands here a second time",
            f"Remove one of them; the first is on line {first.line}.",
            node,
        )
    return node
