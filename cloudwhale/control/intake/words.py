"""One small parser per kind of word: text in, the same text out, or Unfit with the remedy."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from cloudwhale.control.intake.unfit import Unfit, shown
from cloudwhale.control.notifying.addresses import url_fault
from cloudwhale.mailbox.addresses import fault_of, folder_of

_FOLDER_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9_-])?")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_IMAGE = re.compile(
    r"(?:(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:\d+/))(?::\d+)?/)?"
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::\w[\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
"""Registry, path in small letters, tag, digest; nothing that a shell or Docker could take apart."""
IMAGE_MOST = 500
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


def text(value: str) -> str:
    """Return any text that a process can be given."""
    if _UNSTORABLE.search(value):
        raise Unfit(f"{shown(value)} holds a zero byte or half a character", "Remove it.")
    return value


def some_text(value: str) -> str:
    """Return text that says something."""
    if not value.strip():
        raise Unfit("it is empty", "Write something, or leave the key out.")
    return text(value)


def folder_name(value: str) -> str:
    """Return a name that can be a folder on any machine."""
    if not _FOLDER_NAME.fullmatch(value):
        raise Unfit(
            f"{shown(value)} cannot be a name",
            "Use up to 63 letters, digits, `.`, `_` and `-`; begin with a letter or digit.",
        )
    return value


def env_name(value: str) -> str:
    """Return a name for the environment that is not one of ours."""
    if not _ENV_NAME.fullmatch(value):
        raise Unfit(
            f"{shown(value)} cannot be the name of a variable",
            "Use letters, digits and `_`; begin with a letter or `_`.",
        )
    if value.startswith("CLOUDWHALE_"):
        raise Unfit(f"{value} is one of cloudwhale's own", "Choose another name.")
    return value


def image(value: str) -> str:
    """Return a container image's name."""
    if len(value) > IMAGE_MOST or not _IMAGE.fullmatch(value):
        raise Unfit(
            f"{shown(value)} cannot be a container image",
            "Write it like registry/name:tag; the name has small letters only.",
        )
    return value


def choice(words: Sequence[str]) -> Callable[[str], str]:
    """Return a parser for one of some words."""

    def chosen(value: str) -> str:
        if value not in words:
            raise Unfit(f"{shown(value)} is not known here", f"Choose from {', '.join(words)}.")
        return value

    return chosen


def url(schemes: Sequence[str]) -> Callable[[str], str]:
    """Return a parser for an address with one of some schemes."""

    def address(value: str) -> str:
        try:
            parts = urlsplit(value)
        except ValueError:
            parts = urlsplit("")
        whole_one = parts.scheme in schemes and (parts.netloc or parts.path.startswith("/"))
        if not whole_one or re.search(r"\s", value) or _UNSTORABLE.search(value):
            raise Unfit(
                f"{shown(value)} is not an address",
                f"Write it like {schemes[0]}://…; possible: {', '.join(schemes)}.",
            )
        return value

    return address


def webhook(value: str) -> str:
    """Parse an address that is told of what happens."""
    url(("https", "http"))(value)
    fault = url_fault(value)
    if fault:
        raise Unfit(f"{shown(value)}: {fault}", "Write it like https://example.org/hook.")
    return value


def source(schemes: Sequence[str]) -> Callable[[str], str]:
    """Return a parser for an address that a job reads; a folder of this host must be there."""
    address = url(schemes)

    def read(value: str) -> str:
        address(value)
        fault = fault_of(value)
        if fault:
            raise Unfit(f"{shown(value)} cannot be read: {fault}", "Correct the address.")
        folder = folder_of(value)
        if folder and not os.path.exists(folder):
            raise Unfit(f"{shown(value)} does not exist on this host", "Make it, or correct it.")
        return value

    return read


def inside(value: str) -> str:
    """Return a path below the working directory, without `./` and a last `/`."""
    path = PurePosixPath(some_text(value))
    if path.is_absolute() or ".." in path.parts or path.parts[:1] == ("~",):
        raise Unfit(
            f"{shown(value)} lies outside the working directory",
            "Write a path relative to `workdir`, without `..`.",
        )
    if not path.parts:
        raise Unfit(f"{shown(value)} is the working directory itself", "Name a folder inside it.")
    return str(path)


def absolute(value: str) -> str:
    """Return an absolute path without `..`."""
    path = PurePosixPath(some_text(value))
    if not path.is_absolute() or ".." in path.parts:
        raise Unfit(f"{shown(value)} is not an absolute path", "Begin with `/`, without `..`.")
    return str(path)


def mount_point(value: str) -> str:
    """Return where a mount appears in the job: an absolute path, perhaps with `:ro` or `:rw`."""
    path, colon, mode = value.partition(":")
    if colon and mode not in ("ro", "rw"):
        raise Unfit(f"{shown(value)} is not a mount point", "Write it like /data or /data:ro.")
    return f"{absolute(path)}{colon}{mode}"
