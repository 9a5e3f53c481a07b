"""A small metadata server of Compute Engine for tests: text by path, and waits for a change.

As "Query VM metadata" of its docs has it: the header `Metadata-Flavor` must be shown, an answer has
an ETag, and `wait_for_change` with the newest ETag is answered when the text changes, or with what
it was after `timeout_sec`.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

ROOT = "/computeMetadata/v1/"


class Metadata(ThreadingHTTPServer):
    """What one machine is told; `says` changes it."""

    daemon_threads = True

    def __init__(self) -> None:
        self.turn = threading.Condition()
        self.documents: dict[str, str] = {}
        self.fails = 0
        """So many questions more are answered with 503."""
        self.asked: list[str] = []
        """Paths with their queries, as they came."""
        super().__init__(("127.0.0.1", 0), _Clerk)

    @property
    def host(self) -> str:
        """What GCE_METADATA_HOST is to say."""
        return f"127.0.0.1:{self.server_address[1]}"

    def says(self, path: str, text: str | None) -> None:
        """Say that from now on; None: nothing any more."""
        with self.turn:
            self.documents.pop(path, None)
            if text is not None:
                self.documents[path] = text
            self.turn.notify_all()

    def waited(self, path: str, etag: str, for_s: float) -> str | None:
        """Return what is said once its ETag is another, or after some seconds."""
        with self.turn:
            self.turn.wait_for(lambda: etag_of(self.documents.get(path)) != etag, for_s)
            return self.documents.get(path)


class _Clerk(BaseHTTPRequestHandler):
    server: Metadata

    def log_message(self, format: str, *words: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path, query = parts.path.removeprefix(ROOT), parse_qs(parts.query)
        self.server.asked.append(self.path.removeprefix(ROOT))
        if self.server.fails > 0:
            self.server.fails -= 1
            return self._answer(503, "Service Unavailable")
        if self.headers.get("Metadata-Flavor") != "Google":
            return self._answer(403, "Missing Metadata-Flavor:Google header")
        waits = query.get("wait_for_change") == ["true"]
        for_s = float(query.get("timeout_sec", ["0"])[0]) if waits else 0.0
        text = self.server.waited(path, query.get("last_etag", [""])[0], for_s)
        return self._answer(404, "Not Found") if text is None else self._answer(200, text)

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("ETag", etag_of(text))
        self.end_headers()
        self.wfile.write(body)


def etag_of(text: str | None) -> str:
    """Return the ETag of a text; the empty one of none."""
    return "" if text is None else sha256(text.encode()).hexdigest()[:16]


@contextmanager
def metadata() -> Iterator[Metadata]:
    """Serve on loopback meanwhile."""
    server = Metadata()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
