"""Which files of a folder git would not track, by the .gitignore files above and inside it."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pathspec

from cloudwhale.spi.errors import SpecError

FILE_NAME = ".gitignore"


@dataclass(frozen=True, slots=True)
class Ignored:
    """The rules that hold in one folder; those of deeper files go before."""

    top: str
    """Absolute folder that names are relative to."""
    rules: tuple[tuple[str, pathspec.GitIgnoreSpec], ...] = ()
    """Folder of each .gitignore file, relative to the top, outermost first."""

    def names(self, path: str, *, is_folder: bool) -> bool:
        """Say whether a path is ignored; what lies in an ignored folder is not asked about."""
        name = path.removeprefix(self.top.rstrip("/") + "/") + ("/" if is_folder else "")
        for base, rules in reversed(self.rules):
            verdict = rules.check_file(name[len(base) :]).include
            if verdict is not None:
                return verdict
        return False

    def inside(self, folder: str) -> "Ignored":
        """Return the rules that hold in a folder below."""
        found = _rules(folder)
        if found is None:
            return self
        relative = folder.removeprefix(self.top).strip("/")
        base = f"{relative}/" if relative else ""
        return Ignored(self.top, (*self.rules, (base, found)))


def rules_above(folder: Path) -> Ignored:
    """Return the rules that hold in a folder because of the repository around it.

    They do not hold when the repository ignores the folder as a whole: then somebody wants it sent
    all the same.
    """
    top = next(
        (above for above in (folder, *folder.parents) if os.path.exists(above / ".git")), folder
    )
    ignored = Ignored(str(top))
    for step in reversed([above for above in (folder, *folder.parents) if above != top]):
        if not step.is_relative_to(top):
            continue
        ignored = ignored.inside(str(step.parent))
        if ignored.names(str(step), is_folder=True):
            return Ignored(str(folder))
    return ignored


def _rules(folder: str) -> pathspec.GitIgnoreSpec | None:
    try:
        with open(os.path.join(folder, FILE_NAME), errors="surrogateescape") as file:
            return _compiled(file.read().splitlines())
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise SpecError(
            f"{folder}/{FILE_NAME} cannot be read: {error.strerror}", "Make it readable."
        ) from error


def _compiled(lines: Iterable[str]) -> pathspec.GitIgnoreSpec:
    lines = list(lines)
    try:
        return pathspec.GitIgnoreSpec.from_lines(lines)
    except ValueError:
        # One line cannot be understood: git passes over it, and so do we.
        return pathspec.GitIgnoreSpec.from_lines(line for line in lines if _is_sound(line))


def _is_sound(line: str) -> bool:
    try:
        pathspec.GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
