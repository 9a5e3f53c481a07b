"""A small web server on loopback: documents by path, and the ways in which servers fail."""

import gzip
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass
class Page:
    """What is answered to one address."""

    body: bytes = b""
    status: int = 200
    packed: bool = False
    breaks_off: bool = False
    """Less comes than the header says."""
    stalls: bool = False
    """Less comes than the header says, and the connection stays open until the server ends."""
    ranges: bool = False
    """Whether a part of it is given to who asks for one."""
    unsized: bool = False
    """It has no length; the end of the connection is its end."""
    breaks_after: int = 0
    """Each answer breaks off after so many bytes; 0: none does."""
    slow_s: float = 0.0
    """How long a part of it is waited for."""


@dataclass
class Web:
    """What is served, and what was asked for."""

    pages: dict[str, Page] = field(default_factory=dict[str, Page])
    """By path; with `?pageToken=…` where the request has one."""
    asked: list[str] = field(default_factory=list[str])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    headers_of: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Headers that an answer has besides, by path."""
    sent_bytes: int = 0
    """Of all bodies together."""
    turn: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""
    ended: threading.Event = field(default_factory=threading.Event)

    def sent(self, count: int) -> None:
        """Count bytes of a body; from any thread."""
        with self.turn:
            self.sent_bytes += count

    def serve(self, path: str, body: str | bytes, **fields: bool | int | float) -> None:
        """Serve a document from now on."""
        text = body.encode() if isinstance(body, str) else body
        self.pages[path] = Page(text, **fields)  # type: ignore[arg-type]


def span_of(header: str, size: int) -> tuple[int, int]:
    """Return the first byte that is asked for, and the one behind the last."""
    wanted = re.fullmatch(r"bytes=([0-9]+)-([0-9]*)", header)
    if wanted is None:
        return 0, size
    return int(wanted[1]), min(size, int(wanted[2]) + 1) if wanted[2] else size


def _ranged(
    clerk: BaseHTTPRequestHandler, page: Page, body: bytes, headers: Mapping[str, str]
) -> int:
    """Answer with the part that is asked for; return how much of it was sent."""
    first, end = span_of(clerk.headers.get("Range", ""), len(body))
    is_part = "Range" in clerk.headers
    is_nowhere = is_part and first >= len(body)
    clerk.send_response(416 if is_nowhere else 206 if is_part else 200)
    told = "*" if is_nowhere else f"{first}-{end - 1}"
    if is_part:
        clerk.send_header("Content-Range", f"bytes {told}/{len(body)}")
    for header, value in headers.items():
        clerk.send_header(header, value)
    clerk.send_header("Content-Length", "0" if is_nowhere else str(end - first))
    clerk.end_headers()
    given = b"" if is_nowhere else body[first:end][: page.breaks_after or None]
    try:
        clerk.wfile.write(given)
    except ConnectionError:
        return 0  # whoever asked was killed
    return len(given)


@contextmanager
def serving() -> Iterator[Web]:
    """Serve until the block ends."""
    web = Web()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            token = parse_qs(parts.query).get("pageToken")
            name = f"{parts.path}?pageToken={token[0]}" if token else parts.path
            web.asked.append(self.path)
            web.headers.append(dict(self.headers.items()))
            page = web.pages.get(name, Page(status=404))
            body = gzip.compress(page.body, mtime=0) if page.packed else page.body
            if page.ranges and page.status == 200:
                web.ended.wait(page.slow_s)
                web.sent(_ranged(self, page, body, web.headers_of.get(name, {})))
                return None
            self._whole(page, body, web.headers_of.get(name, {}))
            return None

        def _whole(self, page: Page, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(page.status)
            if page.packed:
                self.send_header("Content-Encoding", "gzip")
            for header, value in headers.items():
                self.send_header(header, value)
            if not page.unsized:
                self.send_header(
                    "Content-Length", str(len(body) + 100 * (page.breaks_off or page.stalls))
                )
            self.end_headers()
            self.wfile.write(body)
            web.sent(len(body))
            if page.stalls:
                web.ended.wait()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    web.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield web
    finally:
        web.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
