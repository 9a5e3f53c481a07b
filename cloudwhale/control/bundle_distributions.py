"""The distributions that an agent imports: which they are, what of them travels, where it runs."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from cloudwhale.spi.errors import SettingsError

NEEDED = (
    "pydantic", "obstore", "pynacl", "inotify-simple", "psutil", "nvidia-ml-py", "docker",
)  # fmt: skip
"""What an agent imports by name, in any of its branches; what these need comes with them.

A test reads all that an agent may import, and compares. Of the controller's packages it needs
neither database nor numpy.
"""

NEWEST_GLIBC = (2, 35)
"""Machines have this one or a newer: Debian 12 has 2.36, Ubuntu 24.04 has 2.39."""

LEGACY = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
"""Older names of platform tags, PEP 600."""

Content: TypeAlias = Callable[[], bytes]
"""Reads a file when its turn in the archive comes: all of them at once are tens of megabytes."""

Files: TypeAlias = Mapping[str, Content]
"""By path, relative to where it is put."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_GLIBC = re.compile(r"manylinux_([0-9]+)_([0-9]+)_x86_64")
_KEPT_INFO = re.compile(
    r"METADATA|entry_points\.txt|.*(LICEN[CS]E|COPYING|NOTICE).*", re.IGNORECASE
)
_TESTS = frozenset({"test", "tests"})


@dataclass(frozen=True, slots=True)
class Source:
    """A distribution as it lies somewhere: installed here, or in a wheel."""

    name: str
    version: str
    tags: tuple[str, ...]
    """`cp312-abi3-manylinux_2_17_x86_64` and the like: where it runs, PEP 425."""
    files: Callable[[], Files]
    """What of it travels, by its path in `site-packages`."""

    def runs_on(self, python: str) -> bool:
        """Say whether machines with this Python, like `3.12`, can use it."""
        return any(_runs(tag, python) for tag in self.tags)

    @property
    def pin(self) -> str:
        """Return it as pip is asked for it."""
        return f"{self.name}=={self.version}" if self.version else self.name


LINUX_ONLY = frozenset({"inotify-simple"})
"""Not installed elsewhere; a controller may run elsewhere, and its machines never do."""


def installed(system: str = sys.platform) -> Sequence[Source]:
    """Return all that an agent needs, as it is installed here; raise SettingsError for a gap.

    What is for Linux alone is fetched by another system in the newest version.
    """
    foreign = LINUX_ONLY if system != "linux" else frozenset[str]()
    here = [_installed(name) for name in closure([one for one in NEEDED if one not in foreign])]
    return sorted([*here, *map(_unknown, foreign)], key=lambda one: one.name)


def closure(roots: Sequence[str] = NEEDED) -> set[str]:
    """Return the names of distributions and of what they need, as far as they are here."""
    found: set[str] = set()
    ahead: list[str] = [*roots]
    while ahead:
        name = normal(ahead.pop())
        if name in found:
            continue
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError as error:
            if name in roots:
                raise SettingsError(
                    f"{name}, which an agent needs, is not installed here", "Install it by pip."
                ) from error
            continue  # for another system, or another Python
        found.add(name)
        for requirement in requires:
            wanted = _NAME.match(requirement)
            if wanted and "extra ==" not in requirement:
                ahead.append(wanted[0])
    return found


def normal(name: str) -> str:
    """Return a distribution's name as it is compared, PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def belongs(path: PurePosixPath) -> bool:
    """Say whether a file is part of what is imported, and not of how it was installed."""
    return ".." not in path.parts and "__pycache__" not in path.parts and path.suffix != ".pyc"


def travels(path: PurePosixPath) -> bool:
    """Say whether a machine needs a file: neither tests, nor stubs, nor how it was installed.

    So the same version gives the same files, whether from a wheel or from what was installed.
    """
    if not belongs(path) or path.is_absolute() or path.suffix == ".pyi":
        return False
    if path.parts[0].endswith(".dist-info"):
        return _KEPT_INFO.fullmatch(path.name) is not None
    return _TESTS.isdisjoint(path.parts[:-1])


def tags_in(wheel_text: str) -> tuple[str, ...]:
    """Return the tags that a distribution's WHEEL file says."""
    said = HeaderParser().parsestr(wheel_text).get_all("Tag") or []
    return tuple(str(tag) for tag in said)


def _installed(name: str) -> Source:
    found = metadata.distribution(name)
    return Source(
        name, found.version, tags_in(found.read_text("WHEEL") or ""), lambda: _files_of(found)
    )


def _unknown(name: str) -> Source:
    return Source(name, "", (), dict[str, Content])


def _files_of(found: metadata.Distribution) -> Files:
    return dict(_travelling(found))


def _travelling(found: metadata.Distribution) -> Iterator[tuple[str, Content]]:
    for entry in found.files or ():
        path, source = PurePosixPath(str(entry)), Path(str(found.locate_file(entry)))
        if travels(path) and source.is_file():
            yield str(path), source.read_bytes


def _runs(tag: str, python: str) -> bool:
    spoken, abi, platform = tag.split("-", 2)
    if platform != "any" and not _is_there(platform):
        return False
    minor = int(python.split(".")[1])
    if abi == "abi3":
        return spoken.startswith("cp3") and int(spoken[3:] or 0) <= minor
    if abi == "none":
        return spoken in ("py3", f"py3{minor}", f"cp3{minor}")
    return spoken == abi == f"cp3{minor}"


def _is_there(platform: str) -> bool:
    """Say whether machines are of a platform; one built for this host alone may be too new."""
    legacy = LEGACY.get(platform.removesuffix("_x86_64"))
    if legacy is not None and platform.endswith("_x86_64"):
        return True
    found = _GLIBC.fullmatch(platform)
    return found is not None and (int(found[1]), int(found[2])) <= NEWEST_GLIBC
