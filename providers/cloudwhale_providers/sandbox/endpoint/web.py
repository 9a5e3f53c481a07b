"""HTTP/1.1 on loopback: a thread for each connection, which is kept open."""

import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked

Answering = Callable[[Asked], Answer | None]
"""None: the connection is closed without an answer."""
AGAIN_S = 0.1  # of real time: until another is accepted where one could not be


class Server(ThreadingHTTPServer):
    """Listens on a free port; asks one function for every answer."""

    daemon_threads = True
    request_queue_size = 128  # a hundred agents may come at once

    def __init__(self, answering: Answering, port: int = 0) -> None:
        self.answering = answering
        self._open: set[socket.socket] = set()
        self._turn = threading.Lock()
        self._talks: list[threading.Thread] = []
        self._others: list[socket.socket] = []
        self._accepting: list[threading.Thread] = []
        self._stops = threading.Event()
        super().__init__(("127.0.0.1", port), Connection)

    def note(self, connection: socket.socket, is_open: bool) -> None:
        """Remember who is connected, so that closing ends them all."""
        with self._turn:
            (self._open.add if is_open else self._open.discard)(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a client a thread of its own, which is waited for at the end."""
        self.note(request, True)  # before the thread runs: `hang_up` must not miss it
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), daemon=True
        )
        with self._turn:  # whoever accepts on another socket comes here, too
            self._talks = [one for one in self._talks if one.is_alive()]
            self._talks.append(thread)
            thread.start()

    def also(self, listening: socket.socket) -> None:
        """Listen on another socket too, until this stops."""
        self._others.append(listening)
        thread = threading.Thread(target=self._accept, args=(listening,), daemon=True)
        self._accepting.append(thread)
        thread.start()

    def _accept(self, listening: socket.socket) -> None:
        while not self._stops.is_set():
            try:
                request, address = listening.accept()
            except OSError:  # it is closed, or there are too many files for a moment
                self._stops.wait(AGAIN_S)
                continue
            self.process_request(request, address)

    def hang_up(self) -> None:
        """Close every connection; their threads end."""
        with self._turn:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Serve no more; all threads of clients have ended when this returns."""
        self._stops.set()
        self.shutdown()
        for listening in self._others:
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)  # whoever accepts there wakes up
            listening.close()
        for thread in self._accepting:
            thread.join()  # nobody comes after those that are hung up
        self.hang_up()
        self.server_close()
        for thread in self._talks:
            thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Let a client that went away go; everything else is shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Connection(BaseHTTPRequestHandler):
    """Answers one client for as long as it stays."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one piece
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]: it is made by that one

    def finish(self) -> None:
        """End."""
        self.server.note(self.connection, False)
        with contextlib.suppress(ConnectionError):
            super().finish()

    def log_message(self, format: str, *words: object) -> None:
        """Say nothing: clients see their answers."""

    def handle_expect_100(self) -> bool:
        """Let a client send its body now: it waits a second for that."""
        is_fine = super().handle_expect_100()
        self.wfile.flush()
        return is_fine

    def _one(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, self._body(headers))
        answer = self.server.answering(asked)
        if answer is None:
            self.close_connection = True
            return
        stretch = answer.stretch
        size = len(answer.body) if stretch is None else stretch.size
        length = size if answer.length is None else answer.length
        lines = [f"HTTP/1.1 {answer.status} {self.responses.get(answer.status, ('-',))[0]}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        if answer.status not in (204, 304):
            lines.append(f"Content-Length: {length}")
        self.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if stretch is None and self.command != "HEAD":
            self.wfile.write(answer.body)
        self.wfile.flush()
        if stretch is not None:
            stretch.send(self.connection)

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(iter(self._chunk, b""))
        length = int(headers.get("content-length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:  # its sender has died: half a body is none
            raise ConnectionAbortedError
        return body

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0] or b"-1", 16)
        chunk = self.rfile.read(max(0, size))
        if len(chunk) != size:
            raise ConnectionAbortedError
        self.rfile.readline()
        return chunk

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_PATCH = _one
