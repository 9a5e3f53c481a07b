"""Which files of a folder git would not track, by the .gitignore files above and inside it.

Written out rather than taken from a library: those match lists of files, where a rule for a folder
also speaks for what lies in it. Git walks, and asks every rule about each entry alone; with
`data/**` and `!data/**/` the two differ.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.spi.errors import SpecError

FILE_NAME = ".gitignore"

_POSIX = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z",
    "space": r"\s", "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "blank": r" \t",
}  # fmt: skip
# One piece of a pattern: stars between slashes, stars, `?`, a class, a letter with its backslash.
_PIECE = re.compile(
    r"(?P<inner>(?:(?<=/)|^)\*\*+/)|(?P<rest>(?:(?<=/)|^)\*\*+$)|(?P<star>\*+)|(?P<any>\?)"
    r"|\[(?P<not>[!^]?)(?P<class>\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*)\]|\\(?P<quoted>.)|(?P<plain>[^\\\[])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a .gitignore file."""

    pattern: re.Pattern[str]
    ignores: bool
    """False for a line that begins with `!`."""
    folders_only: bool
    of_path: bool
    """Whether it speaks of the path from its file on, not of a name at any depth."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """The rules that hold in one folder; those of deeper files go before."""

    rules: tuple[tuple[str, tuple[Rule, ...]], ...] = ()
    """For each .gitignore file its absolute folder and its lines, last first; outermost first."""

    def names(self, path: str, *, is_folder: bool) -> bool:
        """Say whether a path is ignored; what lies in an ignored folder is not asked about."""
        name = os.path.basename(path)
        for folder, rules in reversed(self.rules):
            below = path.removeprefix(folder).lstrip("/")
            for rule in rules:
                if rule.folders_only and not is_folder:
                    continue
                if rule.pattern.fullmatch(below if rule.of_path else name):
                    return rule.ignores
        return False

    def inside(self, folder: str) -> "Ignored":
        """Return the rules that hold in a folder below."""
        found = tuple(_rules(folder))[::-1]
        return Ignored((*self.rules, (folder, found))) if found else self


def rules_above(folder: Path) -> Ignored:
    """Return the rules that hold in a folder because of the repository around it.

    None do when the repository ignores the folder as a whole: somebody wants it sent all the same.
    """
    line = (folder, *folder.parents)
    top = next((n for n, step in enumerate(line) if os.path.exists(step / ".git")), 0)
    ignored = Ignored()
    for step in reversed(line[:top]):
        ignored = ignored.inside(str(step.parent))
        if ignored.names(str(step), is_folder=True):
            return Ignored()
    return ignored


def _rules(folder: str) -> Iterator[Rule]:
    path = os.path.join(folder, FILE_NAME)
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except (FileNotFoundError, IsADirectoryError):
        return
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}", "Make it readable.") from error
    for line in lines:
        rule = _rule(line)
        if rule is not None:
            yield rule


def _rule(line: str) -> Rule | None:
    """Return what a line says; None for a remark, an empty line and one that git passes over."""
    text = re.sub(r"(?<!\\) +$", "", line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    of_path = "/" in text
    text = text.removeprefix("/")
    pattern = _pattern(text) if text else None
    if pattern is None:
        return None
    return Rule(pattern, not negated, folders_only, of_path)


def _pattern(text: str) -> re.Pattern[str] | None:
    """Return a pattern of git's as an expression; None when its brackets or quotes never end."""
    made, at = "", 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            return None
        made += _expression(piece)
        at = piece.end()
    try:
        return re.compile(made, re.DOTALL)
    except re.error:
        return None  # a range that runs backwards matches nothing


def _expression(piece: re.Match[str]) -> str:
    match piece.lastgroup:
        case "inner":
            return "(?:.*/)?"
        case "rest":
            return ".+"
        case "star":
            return "[^/]*"
        case "any":
            return "[^/]"
        case "class":
            return f"(?!/)[{'^' if piece['not'] else ''}{_members(piece['class'])}]"
        case _:
            return re.escape(piece["quoted"] or piece["plain"])


def _members(text: str) -> str:
    """Return what stands between brackets, as expressions want it."""
    named = re.sub(r"\[:([a-z]+):\]", lambda found: f"\0{found[1]}\0", text)
    quoted = re.sub(r"\\(.)|([\[\]&|~^])", lambda found: re.escape(found[1] or found[2]), named)
    return re.sub("\0([a-z]+)\0", lambda found: _POSIX.get(found[1], ""), quoted)
