"""JSON without the json package, whose import takes a third of what a shim may take to start."""

from __future__ import annotations

from _json import encode_basestring_ascii, make_scanner

TYPE_CHECKING = False  # so is `typing`: type checkers know the name
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Plain: TypeAlias = (
        str | int | float | bool | None | list["Plain"] | list[str] | dict[str, "Plain"]
    )


class _Rules:
    """What the scanner of CPython asks of a decoder."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}


def decoded(text: str) -> Any:
    """Return what JSON says that has no space before it; raise ValueError when it is none."""
    rules: Any = _Rules()
    value, _ = make_scanner(rules)(text, 0)
    return value


def encoded(value: Plain) -> str:
    """Return JSON of finite numbers, strings, booleans, None, lists and dicts of them."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, list):
        return "[" + ",".join(encoded(one) for one in value) + "]"
    pairs = (f"{encode_basestring_ascii(key)}:{encoded(one)}" for key, one in value.items())
    return "{" + ",".join(pairs) + "}"
