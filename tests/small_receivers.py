"""Small receivers of notices on loopback, of webhooks and of mail, and how they fail."""

import socket
import socketserver
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Hook:
    """What a receiver of webhooks answers, and what it was sent."""

    port: int = 0
    scheme: str = "http"
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict[str, str])
    hangs: bool = False
    """It takes the request and never answers."""
    drips: bool = False
    """It sends an answer without end, byte by byte."""
    got: list[tuple[str, dict[str, str], bytes]] = field(
        default_factory=list[tuple[str, dict[str, str], bytes]]
    )
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Return where it is."""
        return f"{self.scheme}://127.0.0.1:{self.port}/hook"


@contextmanager
def a_hook(tls: ssl.SSLContext | None = None) -> Generator[Hook]:
    """Receive webhooks on loopback, with a certificate over https."""
    hook = Hook()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            hook.got.append((self.path, headers, body))
            if hook.hangs:
                hook.ended.wait(60)
                return
            if hook.drips:
                self.wfile.write(b"HTTP/1.1 2")
                while not hook.ended.wait(0.02):
                    self.wfile.write(b"0")
                return
            self.send_response(hook.status)
            for name, value in hook.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Whoever hung up is no error here."""

    server = Server(("127.0.0.1", 0), Receiver)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        hook.scheme = "https"
    with _serving(server, hook.ended) as port:
        hook.port = port
        yield hook


@dataclass
class MailBox:
    """What a server of mail answers, and what it has taken."""

    port: int = 0
    to_rcpt: str = "250 ok"
    to_data: str = "250 taken"
    hangs: bool = False
    """It takes the connection and never greets."""
    mails: list[Message] = field(default_factory=list[Message])
    login: list[str] = field(default_factory=list[str])
    tls: ssl.SSLContext | None = None
    """It offers STARTTLS with it, and takes no mail and no password before."""
    is_implicit: bool = False
    """It speaks TLS from the first byte on instead."""
    was_secure: list[bool] = field(default_factory=list[bool])
    """Of each mail: whether it came encrypted."""
    ended: threading.Event = field(default_factory=threading.Event)


class _MailReceiver(socketserver.StreamRequestHandler):
    box: MailBox

    def handle(self) -> None:
        """Answer one connection."""
        if self.box.hangs:
            self.box.ended.wait(60)
            return
        self._is_secure = False
        if self.box.is_implicit:
            self._encrypt()
        self._say("220 small")
        while line := self.rfile.readline().strip().decode():
            word = line.upper().partition(" ")[0]
            if word == "QUIT":
                return
            self._answer(word, line)

    def _answer(self, word: str, line: str) -> None:
        match word:
            case "DATA":
                self._say("354 go on")
                self.box.mails.append(message_from_bytes(self._data()))
                self.box.was_secure.append(self._is_secure)
                self._say(self.box.to_data)
            case "EHLO":
                offers = self.box.tls is not None and not self._is_secure
                self._say(f"250-small\r\n{'250-STARTTLS' if offers else '250-8BITMIME'}")
                self._say("250 AUTH PLAIN")
            case "STARTTLS":
                self._say("220 go on")
                self._encrypt()
            case "AUTH":
                self.box.login.append(line.partition(" ")[2])
                self._say("235 welcome")
            case _:
                self._say(self.box.to_rcpt if word == "RCPT" else "250 ok")

    def finish(self) -> None:
        """Close what was made of the connection, too."""
        super().finish()
        self.connection.close()

    def _encrypt(self) -> None:
        """Go on encrypted; a client that does not trust us hangs up."""
        assert self.box.tls is not None
        self.rfile.close()
        self.wfile.close()
        self.connection = self.box.tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)
        self._is_secure = True

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    def _data(self) -> bytes:
        lines: list[bytes] = []
        while (line := self.rfile.readline()).strip() != b".":
            lines.append(line)
        return b"".join(lines)


class _MailServer(socketserver.ThreadingTCPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever did not trust us is no error here."""


@contextmanager
def a_mail_box() -> Generator[MailBox]:
    """Receive mail on loopback, as RFC 5321 says, without TLS."""
    box = MailBox()
    receiver = type("Receiver", (_MailReceiver,), {"box": box})
    with _serving(_MailServer(("127.0.0.1", 0), receiver), box.ended) as port:
        box.port = port
        yield box


@contextmanager
def a_closed_port() -> Generator[int]:
    """Keep a port on which nobody listens: whoever connects is refused."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield int(kept.getsockname()[1])


@contextmanager
def _serving(server: socketserver.TCPServer, ended: threading.Event) -> Generator[int]:
    server.daemon_threads = True  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
