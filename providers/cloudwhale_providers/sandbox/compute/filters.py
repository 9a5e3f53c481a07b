"""Filters of lists: `labels.a=b`, `name eq x.*`, `(status!=RUNNING) OR (...)`.

Compute Engine API, "filter" of list methods. Expressions beside each other are all held to.
"""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from cloudwhale_providers.sandbox.compute.refused import GoogleRefused
from cloudwhale_providers.sandbox.compute.wording import Words, read_at

Fits = Callable[[Words], bool]
TOKENS = re.compile(
    r"\s*(?:(?P<bracket>[()])|(?P<sign>!=|<=|>=|[=<>:])|\"(?P<quoted>[^\"]*)\""
    r"|'(?P<single>[^']*)'|(?P<word>[^\s()=<>!:\"']+))"
)
TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda has, said: has == said,
    "!=": lambda has, said: has != said,
    "eq": lambda has, said: re.fullmatch(said, has) is not None,
    "ne": lambda has, said: re.fullmatch(said, has) is None,
    "<": lambda has, said: _order(has) < _order(said),
    ">": lambda has, said: _order(has) > _order(said),
    "<=": lambda has, said: _order(has) <= _order(said),
    ">=": lambda has, said: _order(has) >= _order(said),
    ":": lambda has, said: fnmatchcase(has, said) if "*" in said else said in has,
}
ABSENT = frozenset({"!=", "ne"})
"""Comparisons that hold for what a resource does not have."""


def wanted(text: str) -> Fits:
    """Return what a filter lets pass, all when it is empty; raise Refused."""
    if not text.strip():
        return lambda one: True
    reader = _Reader(text)
    found = reader.either()
    if reader.peek() is not None:
        raise reader.wrong()
    return found


class _Reader:
    """Reads one filter, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._read()

    def _read(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        at, text = 0, self._text.rstrip()
        while at < len(text):
            match = TOKENS.match(text, at)
            if match is None:
                raise self.wrong()
            kind = str(match.lastgroup)
            found.append(("word" if kind in ("quoted", "single") else kind, match[kind]))
            at = match.end()
        return found[::-1]

    def wrong(self) -> GoogleRefused:
        """Return how a filter is refused."""
        says = f"Invalid value for field 'filter': '{self._text}'. Invalid list filter expression."
        return GoogleRefused("invalid", says)

    def peek(self) -> str | None:
        """Return what comes next; None: nothing."""
        return self._tokens[-1][1] if self._tokens else None

    def _take(self, *kinds: str) -> str:
        if not self._tokens or self._tokens[-1][0] not in kinds:
            raise self.wrong()
        return self._tokens.pop()[1]

    def either(self) -> Fits:
        """Read expressions with OR between them."""
        found = [self._both()]
        while self.peek() == "OR":
            self._tokens.pop()
            found.append(self._both())
        return lambda one: any(fits(one) for fits in found)

    def _both(self) -> Fits:
        found = [self._one()]
        while self.peek() not in (None, "OR", ")"):
            if self.peek() == "AND":
                self._tokens.pop()
            found.append(self._one())
        return lambda one: all(fits(one) for fits in found)

    def _one(self) -> Fits:
        if self.peek() == "(":
            self._tokens.pop()
            found = self.either()
            if self.peek() != ")":
                raise self.wrong()
            self._tokens.pop()
            return found
        field, sign = self._take("word"), self._take("sign", "word")
        said = self._take("word")
        if sign not in TESTS:
            raise self.wrong()
        return lambda one: _holds(one, field, sign, said)


def _holds(one: Words, field: str, sign: str, said: str) -> bool:
    has = _value(one, field.split("."))
    if has is None:
        return sign in ABSENT
    return TESTS[sign](_plain(has), said)


def _value(one: Any, path: list[str]) -> Any:
    for number, name in enumerate(path):
        if isinstance(one, list):
            return next((_value(inner, path[number:]) for inner in one), None)  # pyright: ignore
        if not isinstance(one, dict) or name not in one:
            return None
        one = one[name]  # pyright: ignore[reportUnknownVariableType]
    return one  # pyright: ignore[reportUnknownVariableType]


def _plain(has: Any) -> str:
    return str(has).lower() if isinstance(has, bool) else str(has)


def _order(text: str) -> float:
    at = read_at(text)
    if at is not None:
        return at
    try:
        return float(text)
    except ValueError:
        return float("nan")
