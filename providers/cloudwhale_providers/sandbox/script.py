"""Reads a YAML file by hand, so that all that is wrong in it is said with its line and column."""

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import SpecError

_DURATION = re.compile(
    r"(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|sec|seconds?|min|m|minutes?|h|hours?|d|days?)?"
)
_UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
MOST_S: Seconds = 366 * 86_400.0
"""A year: nothing in a script is later or longer."""
MOST_SHOWN = 40

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spot:
    """A value of the file, and where it stands."""

    file: str
    key: str
    """What it is the value of, `interrupt`."""
    node: Any

    def wrong(self, says: str, remedy: str) -> SpecError:
        """Return the error for it: file, line, column, value, what to write instead."""
        mark = self.node.start_mark
        return SpecError(
            f"{self.key}: {self._shown} {says}",
            remedy,
            file=self.file,
            line=mark.line + 1,
            column=mark.column + 1,
        )

    @property
    def _shown(self) -> str:
        if not self.is_plain:
            return "this list" if isinstance(self.node, yaml.SequenceNode) else "this table"
        text = str(self.node.value)
        return repr(text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}...")

    @property
    def is_plain(self) -> bool:
        """Say whether it is one word or number."""
        return isinstance(self.node, yaml.ScalarNode)

    @property
    def text(self) -> str:
        """Return a word or number as it is written; raise SpecError for a list or a table."""
        if not self.is_plain:
            raise self.wrong("is no single value", "Write one word or number.")
        return str(self.node.value).strip()

    def fields(self, known: Sequence[str]) -> dict[str, "Spot"]:
        """Return the values of a table by key; raise SpecError for others than those known."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong("is no table", f"Write `key: value` with {_listed(known)}.")
        found: dict[str, Spot] = {}
        for key, value in self.node.value:
            name = Spot(self.file, self.key, key)
            if name.text not in known:
                close = difflib.get_close_matches(name.text, known, 1)
                hint = f"Did you mean {close[0]}? " if close else ""
                raise name.wrong("is no key that is known here", f"{hint}Known: {_listed(known)}.")
            if name.text in found:
                raise name.wrong("stands here twice", "Remove one of them.")
            found[name.text] = Spot(self.file, name.text, value)
        return found

    def each(self, read: Callable[["Spot"], T]) -> tuple[T, ...]:
        """Return what is read of every part of a list; one that is alone needs no list."""
        if isinstance(self.node, yaml.SequenceNode):
            return tuple(read(Spot(self.file, self.key, node)) for node in self.node.value)
        return (read(self),)

    def number(self, least: float, most: float, wanted: str) -> float:
        """Return a number between two others, ends included."""
        try:
            found = float(self.text)
        except ValueError:
            found = math.nan
        if not least <= found <= most:
            raise self.wrong("is not possible", f"Write {wanted}.")
        return found

    def whole(self, least: int, most: int, wanted: str) -> int:
        """Return a whole number between two others, ends included."""
        found = self.number(least, most, wanted)
        if found != int(found):
            raise self.wrong("is no whole number", f"Write {wanted}.")
        return int(found)

    def seconds(self) -> Seconds:
        """Return a length of time: `20s`, `1.5h`, or a number of seconds."""
        match = _DURATION.fullmatch(self.text.lower())
        if match is None:
            raise self.wrong("is no length of time", "Write it like 20s, 10m or 2h.")
        found = float(match[1]) * _unit(match[2] or "s")
        if found > MOST_S:
            raise self.wrong("is more than a year", "Write a shorter time.")
        return found

    def ahead(self) -> Seconds:
        """Return how far something is ahead: `+5m`, or `-5m` for what is behind."""
        sign, text = self.text[:1], self.text[1:].strip().lower()
        match = _DURATION.fullmatch(text)
        if sign not in ("+", "-") or match is None:
            raise self.wrong("does not say how far it is off", "Write it like +5m or -90s.")
        found = float(match[1]) * _unit(match[2] or "s")
        if found > MOST_S:
            raise self.wrong("is more than a year", "Write a shorter time.")
        return found if sign == "+" else -found

    def truth(self, words: Mapping[str, bool]) -> bool:
        """Return what one of some words means."""
        found = words.get(self.text.lower())
        if found is None:
            raise self.wrong("is not possible", f"Write {_listed(list(words))}.")
        return found


def _unit(word: str) -> float:
    return _UNITS["ms" if word == "ms" else word[0]]


def root(file: str, body: bytes) -> Spot | None:
    """Return the whole of a file; None when it is empty. Raise SpecError for what is no YAML."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        line = body[: error.start].count(b"\n") + 1
        raise SpecError("this is not UTF-8", "Save it as UTF-8.", file=file, line=line) from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = {} if mark is None else {"line": mark.line + 1, "column": mark.column + 1}
        raise SpecError(
            f"this is not YAML: {error.problem}", "Mend the line.", file=file, **where
        ) from error
    except yaml.YAMLError as error:
        raise SpecError(f"this is not YAML: {error}", "Mend the file.", file=file) from error
    return None if node is None else Spot(file, "script", node)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)
