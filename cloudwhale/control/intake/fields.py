"""The pieces that tables of keys are written with: how a node of the file becomes a value."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from cloudwhale.control.intake.tree import Items, Node, Scalar, Section
from cloudwhale.control.intake.unfit import Unfit, shown
from cloudwhale.model.units import Instant
from cloudwhale.model.value import Value


@dataclass(frozen=True, slots=True)
class Reading:
    """What parsers may know besides the value itself."""

    folder: Path
    """Of the job file; absolute."""
    now: Instant
    counts_from: Instant | None = None
    """From when lengths of time count; None: from now."""
    notes: list[str] = field(default_factory=list[str])
    """Sentences for the user: what was assumed."""
    workdirs: dict[str, str] = field(default_factory=dict[str, str])
    """Absolute folders by the text that named them: each is looked at once."""


T = TypeVar("T")
Model = TypeVar("Model", bound=Value)
Take: TypeAlias = Callable[[Node, Reading], T]
Fields: TypeAlias = dict[str, object]
Table: TypeAlias = Mapping[str, Take[Fields]]
"""For each key that may stand in a section, what it means."""

_HOMES = {
    **dict.fromkeys(("gpu", "cpu", "memory", "disk", "shm", "disk_io", "network"), "resources"),
    **dict.fromkeys(("count", "model", "share", "models"), "resources.gpu"),
    **dict.fromkeys(("every", "signal", "grace", "keep", "path"), "checkpoint"),
    **dict.fromkeys(("backoff", "max", "on"), "retry"),
    **dict.fromkeys(("labels", "not"), "where"),
    **dict.fromkeys(
        ("window", "zone", "days", "unfinished", "defaults"), "a file with `jobs: [...]`"
    ),
    "webhook": "notify",
}
"""Where a key belongs that is often written elsewhere."""


def read(node: Node, table: Table, reading: Reading) -> Fields:
    """Return what a section's keys mean; raise Unfit for the first that is unknown or wrong."""
    if not isinstance(node, Section):
        raise Unfit("keys with values are wanted here", f"Known keys: {', '.join(table)}.", node)
    fields: Fields = {}
    for name, entry in node.entries.items():
        take = table.get(name)
        if take is None:
            raise unknown(entry.key, table)
        if not _is_absent(name, entry.value):
            try:
                fields |= take(entry.value, reading)
            except Unfit as wrong:
                raise wrong.at(entry.value).under(name) from wrong.__cause__
    return fields


def unknown(key: Scalar, table: Mapping[str, object]) -> Unfit:
    """Return what to say of a key that a section does not have."""
    close = difflib.get_close_matches(key.text, table, 1)
    if close:
        remedy = f"Did you mean `{close[0]}`?"
    elif key.text in _HOMES:
        home = _HOMES[key.text]
        remedy = f"It belongs {'into' if home.startswith('a file') else 'under'} {_quoted(home)}."
    else:
        remedy = f"Remove it; known here: {', '.join(table)}."
    return Unfit(f"unknown key {shown(key.text)}", remedy, key)


def _quoted(home: str) -> str:
    return home if " " in home else f"`{home}`"


def _is_absent(name: str, node: Node) -> bool:
    """Say whether a value is a null that somebody wrote: it takes a default back."""
    if not (isinstance(node, Scalar) and node.is_null):
        return False
    if node.text:
        return True
    # Nothing after the colon is more often a slip than a wish.
    raise Unfit("it has no value", "Write one, or remove the line.", node).under(name)


# -- what a table's entry is made of ---------------------------------------------------------


def into(name: str, take: Take[T]) -> Take[Fields]:
    """Return an entry that fills one field."""

    def filled(node: Node, reading: Reading) -> Fields:
        return {name: take(node, reading)}

    return filled


def one(parse: Callable[[str], T]) -> Take[T]:
    """Return a taker of a single value."""

    def single(node: Node, reading: Reading) -> T:
        return _parsed(node, parse)

    return single


def many(parse: Callable[[str], T]) -> Take[tuple[T, ...]]:
    """Return a taker of a list; a single value is a list of one; twice the same is once."""

    def several(node: Node, reading: Reading) -> tuple[T, ...]:
        items = node.items if isinstance(node, Items) else (node,)
        return tuple(dict.fromkeys(_parsed(item, parse) for item in items))

    return several


def pairs(name: Callable[[str], str], value: Callable[[str], T]) -> Take[dict[str, T]]:
    """Return a taker of free keys with values of one kind."""

    def paired(node: Node, reading: Reading) -> dict[str, T]:
        if not isinstance(node, Section):
            raise Unfit("keys with values are wanted here", "Write {key: value}.", node)
        found: dict[str, T] = {}
        for key, entry in node.entries.items():
            found[_parsed(entry.key, name)] = _parsed_under(key, entry.value, value)
        return found

    return paired


def part(model: type[Model], table: Table) -> Take[Model]:
    """Return a taker of a section that becomes one value."""

    def whole(node: Node, reading: Reading) -> Model:
        return model.model_validate(read(node, table, reading))

    return whole


def _parsed(node: Node, parse: Callable[[str], T]) -> T:
    if not isinstance(node, Scalar):
        kind = "a list" if isinstance(node, Items) else "a section"
        raise Unfit(f"a single value is wanted here, not {kind}", "Write one value.", node)
    if node.is_null:
        raise Unfit("it has no value", "Write one, or remove it; an empty text is ''.", node)
    try:
        return parse(node.text)
    except Unfit as wrong:
        raise wrong.at(node) from wrong.__cause__


def _parsed_under(key: str, node: Node, parse: Callable[[str], T]) -> T:
    try:
        return _parsed(node, parse)
    except Unfit as wrong:
        raise wrong.under(key) from wrong.__cause__
