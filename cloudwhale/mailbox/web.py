"""One document of a web server: looked at and read in pieces where the server gives pieces.

Who is really spoken to is looked at when the connection stands, so neither a redirect nor a name
that changes its mind leads to an address that only this machine can reach.
"""

import http.client
import ipaddress
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cache
from typing import Any

from cloudwhale.mailbox.kinds import every_kind
from cloudwhale.mailbox.lost import Gone, Replaced
from cloudwhale.spi.errors import Denied, StoreUnusable

SILENT_S = 60.0
"""A server that says nothing for so long is taken as gone."""
READ_BYTES = 1 << 20
AGENT = "cloudwhale"
NEAR_BITS = 32  # a cloud has other services of the machine itself beside that of credentials
WHOLE = re.compile(r"bytes (?:[0-9]+-[0-9]+|\*)/([0-9]+)")


class Document:
    """What a web server has at one address."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.shown = _shown(url)
        self.size_bytes: int | None = None
        """None: the server does not say."""
        self.tag = ""
        """Differs when its content does; empty: the server gives none."""
        self.has_pieces = False
        """Whether the server gives a part of it when it is asked to."""

    def look(self) -> None:
        """Ask what it is, by its first byte: who may read may not always ask for the head.

        Raise Gone, Denied, StoreUnusable.
        """
        try:
            answer = _ask(self.url, {"Range": "bytes=0-0"})
        except urllib.error.HTTPError as error:
            with error:
                if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                    raise _refused(self.url, error) from error
                self._note(error.headers)
                self.size_bytes = 0  # of nothing there is no first byte
            return
        with answer:
            self._note(answer.headers)
            self.has_pieces = answer.status == http.client.PARTIAL_CONTENT
            length = answer.headers.get("Content-Length", "")
            if self.has_pieces:
                whole = WHOLE.fullmatch(answer.headers.get("Content-Range", ""))
                self.size_bytes, self.has_pieces = (int(whole[1]), True) if whole else (None, False)
            elif length.isdecimal():
                self.size_bytes = int(length)

    def _note(self, headers: Any) -> None:
        self.tag = headers.get("ETag") or headers.get("Last-Modified") or ""

    def read(self, first: int, end: int | None) -> Iterator[bytes]:
        """Yield its bytes from `first` to `end`; raise Gone, Denied, Replaced, StoreUnusable.

        Without pieces `first` is 0, and `end` is the whole of it or None.
        """
        asked: dict[str, str] = {}
        if self.has_pieces and end is not None:
            asked["Range"] = f"bytes={first}-{end - 1}"
        try:
            answer = _ask(self.url, asked)
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(self.url, error) from error
        with answer:
            self._compare(answer, "Range" in asked)
            left = None if end is None else end - first
            while left is None or left > 0:
                try:
                    chunk = answer.read(READ_BYTES if left is None else min(left, READ_BYTES))
                except (OSError, http.client.HTTPException) as error:
                    raise _broken(self.url, error) from error
                if not chunk:
                    break
                left = None if left is None else left - len(chunk)
                yield chunk
        if left:
            raise StoreUnusable(f"{self.shown} broke off {left} bytes before its end")

    def _compare(self, answer: Any, in_piece: bool) -> None:
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        if tag != self.tag or (in_piece and answer.status != http.client.PARTIAL_CONTENT):
            raise Replaced(f"{self.shown} has changed while it was fetched")


def _shown(url: str) -> str:
    """Return a URL as others may see it: what stands behind `?` may be a signature."""
    return url.partition("?")[0]


def refuse_near(address: str, url: str) -> None:
    """Raise Denied for an address that only this machine can reach: credentials lie there."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if found.is_link_local or any(found in one for one in _near()):
        raise Denied(
            f"{_shown(url)} is an address of the machine itself, which jobs may not read",
            "Correct `inputs` of the job.",
        )


@cache
def _near() -> tuple[ipaddress.IPv6Network, ...]:
    """Return the networks in which machines get their credentials over IPv6."""
    found = (ipaddress.ip_address(one) for kind in every_kind() for one in kind.credentials_at)
    return tuple(
        ipaddress.IPv6Network((int(one), NEAR_BITS), strict=False)
        for one in found
        if one.version == 6
    )


# -- connections that look at whom they reach -------------------------------------------------


class _Plain(http.client.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _look_at_peer(self.sock, self.host)


class _Secure(http.client.HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _look_at_peer(self.sock, self.host)


def _look_at_peer(connection: socket.socket, host: str) -> None:
    try:
        refuse_near(str(connection.getpeername()[0]), f"http://{host}")
    except Denied:
        connection.close()
        raise


class _OverPlain(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Plain, req)


class _OverSecure(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Secure, req)


def _ask(url: str, headers: dict[str, str]) -> Any:
    """Return an answer, redirects followed; raise HTTPError, Denied, StoreUnusable."""
    opener = urllib.request.OpenerDirector()
    for one in (
        urllib.request.ProxyHandler(), _OverPlain(), _OverSecure(),
        urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(), urllib.request.UnknownHandler(),
    ):  # fmt: skip
        opener.add_handler(one)
    request = urllib.request.Request(url, headers={"User-Agent": AGENT, **headers})
    try:
        return opener.open(request, timeout=SILENT_S)
    except urllib.error.HTTPError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _broken(url, error) from error


def _refused(url: str, error: urllib.error.HTTPError) -> Exception:
    if error.code in (http.client.NOT_FOUND, http.client.GONE):
        return Gone(url)
    if error.code in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        return Denied(
            f"{_shown(url)} may not be read from this machine: the server answers {error.code}"
        )
    return StoreUnusable(f"{_shown(url)} cannot be fetched: the server answers {error.code}")


def _broken(url: str, error: Exception) -> StoreUnusable:
    says = str(getattr(error, "reason", error) or error) or type(error).__name__
    return StoreUnusable(f"{_shown(url)} cannot be fetched: {says.splitlines()[0]}")
