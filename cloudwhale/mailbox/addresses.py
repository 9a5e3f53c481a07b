"""The addresses of what jobs read: which ones can be, and what a job finds one under."""

from pathlib import PurePosixPath
from urllib.parse import unquote, urldefrag, urlsplit

from cloudwhale.mailbox.sums import said_in

WEB = ("http", "https")
BUCKETS = ("s3", "gs")


def name_of(url: str) -> str:
    """Return what a job finds an input under: the last part of its URL."""
    parts = urlsplit(url)
    return unquote(PurePosixPath(parts.path.rstrip("/")).name) or parts.netloc


def folder_of(url: str) -> str:
    """Return the path that a `file://` URL names on its host; empty for other URLs."""
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" else ""


def fault_of(url: str) -> str:
    """Say why nothing can be read at a URL, whoever asks; empty: perhaps something can."""
    plain, fragment = urldefrag(url)
    parts = urlsplit(plain)
    if parts.scheme in (*BUCKETS, *WEB) and not parts.hostname:
        return "it names no bucket" if parts.scheme in BUCKETS else "it names no server"
    if parts.scheme == "file" and parts.netloc:
        return f"{parts.netloc} would be a host; a file's address has three slashes"
    if parts.username or parts.password:
        return "it holds a name or a password, which would be seen in plans and logs"
    try:
        is_said = not fragment or said_in(fragment) is not None
    except ValueError as error:
        return str(error)
    if not is_said:
        return "behind `#` only `sha256=` or `md5=` can stand; a `#` in a name is written %23"
    return "" if name_of(plain) else "it has no last part to find it under"
