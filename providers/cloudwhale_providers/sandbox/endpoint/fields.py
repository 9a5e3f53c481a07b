"""Fields of requests and templates, which are there or not."""

from collections.abc import Mapping, Sequence
from typing import Any


def inner(words: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the fields of a field; none where it is not said."""
    found: Mapping[str, Any] | None = words.get(name)
    return {} if found is None else found


def each(words: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return the entries of a field; none where it is not said."""
    found: Sequence[Any] | None = words.get(name)
    return () if found is None else found
