"""Serves `/metrics` beside a controller, never in its way."""

import logging
import socket
import threading
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, NamedTuple

from cloudwhale.clock import pause
from cloudwhale.control.exposition import Exposition
from cloudwhale.model.units import Seconds

TRY_AGAIN_S: Seconds = 5.0  # a port in use may be that of a controller which is about to go
HANGS_S: Seconds = 10.0  # Prometheus itself gives up a scrape then
LOOK_EVERY_S: Seconds = 0.25  # whether it is to end
AT_ONCE = 16  # of more scrapers than this the oldest hang

log = logging.getLogger("cloudwhale.metrics")


class Address(NamedTuple):
    """Where `/metrics` is served."""

    host: str
    """A name, or an address without brackets."""
    port: int
    """0: any that is free."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class _Server(ThreadingMixIn, TCPServer):
    """Answers each scraper in a thread of its own; who hangs gives way to who comes."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False  # who hangs is not waited for
    request_queue_size = AT_ONCE

    def __init__(self, address: Address, exposition: Exposition) -> None:
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._lock = threading.Lock()
        self._under_way: dict[socket.socket, None] = {}
        """Oldest first."""
        super().__init__((address.host, address.port), partial(_Scrape, exposition))

    def get_request(self) -> tuple[Any, Any]:
        """Take the next connection; one that cannot be is not tried again at once, for ever."""
        try:
            return super().get_request()
        except OSError:
            pause(LOOK_EVERY_S)  # this process has no file left
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a thread; hang up on the oldest when too many are under way."""
        with self._lock:
            self._under_way[request] = None
            oldest = next(iter(self._under_way))
            is_full = len(self._under_way) > AT_ONCE
            if is_full:
                del self._under_way[oldest]
        if is_full:
            _hang_up(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that was answered, or is not answered any more."""
        with self._lock:
            self._under_way.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing of a scraper that goes away in the middle; anything else is a bug of ours."""
        log.debug("a scraper was not answered", exc_info=True)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
    except OSError:
        pass  # it has gone by itself


class _Scrape(BaseHTTPRequestHandler):
    """Answers one request, `GET /metrics` or `HEAD /metrics`."""

    timeout = HANGS_S
    server_version, sys_version = "cloudwhale", ""

    def __init__(self, exposition: Exposition, *connection: Any) -> None:
        self._exposition = exposition
        super().__init__(*connection)

    def do_GET(self) -> None:
        """Answer with all metrics."""
        if self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND, b"Metrics are at /metrics.\n", "text/plain")
            return
        text, content_type = self._exposition.text(self.headers.get("Accept", ""))
        self._answer(HTTPStatus.OK, text, content_type)

    do_HEAD = do_GET

    def _answer(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log no requests: there is one every few seconds, for ever."""


class Scraped:
    """`/metrics` in a thread; a port that is in use is tried again, and stops nothing."""

    def __init__(self, address: Address, exposition: Exposition) -> None:
        self._address, self._exposition = address, exposition
        self._stop = threading.Event()
        self.serving: Address | None = None
        """Where it is served; None: not yet."""
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve no more; scrapers that hang are left alone."""
        self._stop.set()
        self._thread.join()

    def _serve(self) -> None:
        said = ""
        while not self._stop.is_set():
            try:
                server = _Server(self._address, self._exposition)
            except OSError as error:
                says = f"metrics are not served at {self._address}: {error.strerror or error}"
                if says != said:
                    log.warning("%s; tried again every %.0f s", says, TRY_AGAIN_S)
                said = says
                pause(TRY_AGAIN_S, self._stop)
                continue
            self._serve_with(server)
            return

    def _serve_with(self, server: _Server) -> None:
        with server:
            self.serving = Address(self._address.host, server.server_address[1])
            log.info("metrics are served at http://%s/metrics", self.serving)
            server.timeout = LOOK_EVERY_S
            while not self._stop.is_set():
                server.handle_request()
