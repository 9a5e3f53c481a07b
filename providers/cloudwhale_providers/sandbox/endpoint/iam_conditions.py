"""Conditions of IAM policies: whether what a request says of itself is as a statement wants it.

IAM User Guide, "IAM JSON policy elements: Condition operators" and "Creating a condition with
multiple keys or values". Only the operators that are read here are known: another is an error, as
one that is passed over would allow too much.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

Context = Mapping[str, tuple[str, ...]]
"""What a request says of itself: values by key, in lower case, like `aws:resourcetag/x`."""
IF_EXISTS = "IfExists"
VARIABLE = re.compile(r"\$\{([^}]*)\}")
LITERAL = {"*": "*", "?": "?", "$": "$"}
"""`${*}` stands for the character itself."""


class Malformed(Exception):
    """A policy that is no policy, or says what is not known here."""


class Condition(NamedTuple):
    """One key of a statement's conditions: any of its values will do."""

    test: Callable[[str, str], bool]
    """Says whether a value of the request is like one of the statement."""
    negated: bool
    if_exists: bool
    every: str
    """`ForAllValues`, `ForAnyValue`, or empty: the key has one value."""
    key: str
    values: tuple[str, ...]

    def holds(self, context: Context) -> bool:
        """Say whether a request meets it."""
        found = context.get(self.key)
        wanted = [exact(value, context) for value in self.values]
        if self.every == "ForAllValues":
            return all(self._fits(one, wanted) for one in found or ())
        if self.every == "ForAnyValue":
            return any(self._fits(one, wanted) for one in found or ())
        if found is None:
            return self.negated or self.if_exists
        return all(self._fits(one, wanted) for one in found)

    def _fits(self, said: str, wanted: Sequence[str | None]) -> bool:
        is_like = any(value is not None and self.test(said, value) for value in wanted)
        return is_like != self.negated


class Absent(NamedTuple):
    """`Null`: whether a key is there at all."""

    key: str
    absent: bool

    def holds(self, context: Context) -> bool:
        """Say whether a request meets it."""
        return (self.key not in context) == self.absent


def conditions(said: Any) -> tuple[Condition | Absent, ...]:
    """Return the conditions of a statement, all of which must hold; raise Malformed."""
    if not isinstance(said, dict):
        raise Malformed("a Condition has operators")
    table = cast("dict[str, Any]", said)
    found: list[Condition | Absent] = []
    for operator, keys in table.items():
        if not isinstance(keys, dict):
            raise Malformed(f"{operator} has keys")
        words = cast("dict[str, Any]", keys)
        found += [_one(operator, key, texts(value)) for key, value in words.items()]
    return tuple(found)


def texts(value: Any) -> tuple[str, ...]:
    """Return what IAM lets one write as one text or as several; raise Malformed."""
    some = several(value)
    if not some or any(not isinstance(one, str) for one in some):
        raise Malformed(f"{value!r} is no text, nor a list of some")
    return tuple(str(one) for one in some)


def several(value: Any) -> list[Any]:
    """Return what IAM lets one write as one or as several."""
    return [*value] if isinstance(value, list) else [value]


def _one(operator: str, key: str, values: tuple[str, ...]) -> Condition | Absent:
    every, _, plain = operator.rpartition(":")
    if every not in ("", "ForAllValues", "ForAnyValue"):
        raise Malformed(f"the condition operator {operator} is not known here")
    if plain == "Null" and not every:
        if len(values) != 1 or values[0].lower() not in ("true", "false"):
            raise Malformed("Null is true or false")
        return Absent(key.lower(), values[0].lower() == "true")
    if_exists = plain.endswith(IF_EXISTS)
    test = TESTS.get(plain.removesuffix(IF_EXISTS))
    if test is None:
        raise Malformed(f"the condition operator {operator} is not known here")
    return Condition(test[0], test[1], if_exists, every, key.lower(), values)


def exact(pattern: str, context: Context) -> str | None:
    """Return a pattern with its variables filled in; None: the request lacks one of them.

    What a variable stands for holds no wildcard: IAM takes its characters as they are.
    """
    if "${" not in pattern:
        return pattern
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        name, _, otherwise = match[1].partition(",")
        if name.strip() in LITERAL:
            return _literal(LITERAL[name.strip()])
        found = context.get(name.strip().lower())
        if found is None or len(found) != 1:
            missing = missing or not otherwise
            return _literal(otherwise.strip().strip("'"))
        return _literal(found[0])

    filled = VARIABLE.sub(value, pattern)
    return None if missing else filled


STAR, MARK = "\ue000", "\ue001"
"""Stand for a `*` and a `?` that are no wildcards; nothing that is asked for holds them."""


def _literal(text: str) -> str:
    return text.replace("*", STAR).replace("?", MARK)


def plain(text: str) -> str:
    """Return a text whose stand-ins are what they stand for."""
    return text.replace(STAR, "*").replace(MARK, "?")


def source(pattern: str, one: str = ".") -> str:
    """Return a pattern as a regular expression; `one`: what a `?` is, and a `*` many of."""
    pieces = {"*": f"{one}*", "?": one}
    return "".join(pieces.get(letter) or re.escape(plain(letter)) for letter in pattern)


def arn_source(pattern: str) -> str:
    """Return the same for a name of AWS: only in the last of its six parts a star takes colons."""
    if pattern == "*":
        return ".*"
    *parts, last = pattern.split(":", 5)
    ends = source(last) if len(parts) == 5 else source(last, "[^:]")
    return ":".join([*(source(part, "[^:]") for part in parts), ends])


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(source(text), re.DOTALL)


@lru_cache(maxsize=4096)
def _arn_pattern(text: str) -> re.Pattern[str]:
    return re.compile(arn_source(text), re.DOTALL)


def like(said: str, pattern: str) -> bool:
    """Say whether a text is like a pattern: `*` is any characters, a slash too, `?` is one."""
    return _pattern(pattern).fullmatch(said) is not None


def arn_like(said: str, pattern: str) -> bool:
    """Say whether a name of AWS is like a pattern, each of its six parts by itself."""
    return _arn_pattern(pattern).fullmatch(said) is not None


def _equal(said: str, wanted: str) -> bool:
    return said == plain(wanted)


def _same_truth(said: str, wanted: str) -> bool:
    return said.lower() == wanted.lower()


TESTS: Mapping[str, tuple[Callable[[str, str], bool], bool]] = {
    "StringEquals": (_equal, False),
    "StringNotEquals": (_equal, True),
    "StringLike": (like, False),
    "StringNotLike": (like, True),
    "ArnEquals": (arn_like, False),
    "ArnLike": (arn_like, False),
    "ArnNotEquals": (arn_like, True),
    "ArnNotLike": (arn_like, True),
    "Bool": (_same_truth, False),
}
"""By operator: how values are compared, and whether none of them may be alike."""
