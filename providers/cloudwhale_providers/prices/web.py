"""Documents from the web, with bounds: how long, how large, and what is said when there is none."""

import http.client
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.prices import Told

SILENCE_S: Seconds = 30.0
"""Who sends nothing for so long is given up."""
CHUNK_BYTES = 2**18
LINE_MOST_BYTES = 2**22
AGENT = "cloudwhale (price list)"


def lines(url: str, most_bytes: int, told: Told) -> Iterator[str]:
    """Yield the lines of a large text as they come; raise Unreachable or Denied."""
    rest = b""
    for chunk in _chunks(url, most_bytes, told, {}):
        whole, newline, tail = (rest + chunk).rpartition(b"\n")
        if newline:
            yield from io.StringIO(whole.decode("utf-8", errors="replace") + "\n", newline="")
        rest = tail
        if len(rest) > LINE_MOST_BYTES:
            raise Unreachable(f"{site(url)} is no text of lines")
    if rest:
        yield rest.decode("utf-8", errors="replace")


def text(url: str, most_bytes: int, told: Told, headers: Mapping[str, str] | None = None) -> str:
    """Return a text that is kept in memory; raise Unreachable or Denied."""
    return b"".join(_chunks(url, most_bytes, told, headers or {})).decode("utf-8", errors="replace")


def document(
    url: str, most_bytes: int, told: Told, headers: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """Return a JSON object; raise Unreachable, for what is none too, or Denied."""
    try:
        found: object = json.loads(text(url, most_bytes, told, headers))
    except (ValueError, RecursionError) as error:
        raise Unreachable(f"{site(url)} sent what is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Unreachable(f"{site(url)} sent JSON that is no object")
    return found  # pyright: ignore[reportUnknownVariableType]


def site(url: str) -> str:
    """Return who is asked for what, without what could be secret in it."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}"


def _chunks(url: str, most_bytes: int, told: Told, headers: Mapping[str, str]) -> Iterator[bytes]:
    """Yield a document's bytes, unpacked where they were packed."""
    request = Request(
        url, headers={"User-Agent": AGENT, "Accept-Encoding": "gzip", **headers}
    )  # fmt: skip
    read = 0
    try:
        with urlopen(request, timeout=SILENCE_S) as answer:
            packed = answer.headers.get("Content-Encoding", "").lower() == "gzip"
            unpack = zlib.decompressobj(31) if packed else None
            due = answer.length  # None: until the server closes
            # What has come is taken at once: a whole chunk of a trickle would take hours.
            while raw := answer.read1(CHUNK_BYTES if due is None else min(CHUNK_BYTES, due)):
                due = None if due is None else due - len(raw)
                part = raw
                while True:
                    # A small packed document can be a huge one: it is unpacked bit by bit.
                    chunk = unpack.decompress(part, CHUNK_BYTES) if unpack else part
                    read += len(chunk)
                    if read > most_bytes:
                        raise Unreachable(
                            f"{site(url)} is larger than {most_bytes // 2**20} MiB, and not read"
                        )
                    yield chunk
                    part = unpack.unconsumed_tail if unpack else b""
                    if not part:
                        break
                told(f"{site(url)}: {read // 2**20} MiB")
            # A read that ends too soon is no error to the library; what is still due says so.
            if due or (unpack is not None and not unpack.eof):
                raise Unreachable(f"{site(url)} broke off after {read:,} bytes")
    except HTTPError as error:
        raise _refused(url, error) from error
    except (URLError, OSError, http.client.HTTPException, zlib.error) as error:
        reason = getattr(error, "reason", None) or error
        raise Unreachable(f"{site(url)} does not answer: {reason}") from error


def _refused(url: str, error: HTTPError) -> Denied | Unreachable:
    error.close()
    if error.code in (401, 403):
        return Denied(f"{site(url)} refuses us: {error.code} {error.reason}")
    return Unreachable(f"{site(url)} answers {error.code} {error.reason}")
