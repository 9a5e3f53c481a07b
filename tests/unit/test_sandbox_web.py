"""The box's own server, on the socket that machines reach beside that of this host."""

import errno
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import pytest

from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.web import Server


class Rough(socket.socket):
    """Cannot accept at first: this process has too many files for a moment."""

    fails = 2

    def accept(self) -> tuple[socket.socket, Any]:
        if self.fails:
            self.fails -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


@pytest.fixture
def server() -> Iterator[Server]:
    def answered(asked: Asked) -> Answer:
        return Answer(body=asked.path.encode())

    made = Server(answered)
    thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.stop()
    thread.join()


def asked(listening: socket.socket) -> bytes:
    host, port = listening.getsockname()
    link = HTTPConnection(host, port, timeout=10)
    try:
        link.request("GET", "/here")
        return link.getresponse().read()
    finally:
        link.close()


def test_machines_reach_it_again_after_a_moment_without_files(server: Server) -> None:
    listening = Rough()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    server.also(listening)
    assert asked(listening) == b"/here"
    assert listening.fails == 0


def test_who_is_connected_when_it_stops_is_hung_up(server: Server) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    server.also(listening)
    with socket.create_connection(listening.getsockname(), timeout=10) as link:
        link.sendall(b"GET /here HTTP/1.1\r\n\r\n")
        assert link.recv(1024)
        server.stop()
        left = b"".join(iter(lambda: link.recv(1024), b""))
    assert b"HTTP/1.1" not in left
