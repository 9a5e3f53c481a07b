"""The metadata service of each machine in the box: a token first, then what it is told.

Who listens is the same for machines of every cloud; how Compute Engine's are answered stands in
`metadata_gce`, how EC2's are here: IMDSv2 as the EC2 User Guide has it ("Access instance
metadata"): a token by PUT, 401 without one, 404 for what there is none of, like the word that a
spot machine goes.
"""

import contextlib
import re
import secrets
import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote

from cloudwhale.model.units import Instant, Seconds

TOKEN_PATH = "/latest/api/token"
TOKEN, TTL = "X-aws-ec2-metadata-token", "X-aws-ec2-metadata-token-ttl-seconds"
VERSION = re.compile(r"latest|1\.0|20\d\d-\d\d-\d\d")
"""Of the answers' form, which has not changed for what is told here."""
TTL_MOST: Seconds = 21_600  # six hours, says the User Guide
ANSWERS_WITHIN_S: Seconds = 5.0

Documents = Callable[[], Mapping[str, str]]
"""What a machine is told now: text by path below `/latest/`."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a service now."""

    delay_s: Seconds = 0.0
    code: int | None = None
    """Of every answer; None: as ever."""


FINE = Trouble()


def _fine() -> Trouble:
    return FINE


@dataclass(slots=True)
class Asker:
    """A connection of a machine to its metadata service, and what holds for its one question."""

    link: socket.socket
    address: Any
    trouble: Trouble
    wait: Callable[[Seconds], bool]
    """Wait so long, by the clock of the box; False: the machine or the service is gone."""


Talk = Callable[[Asker], None]
"""Answers one question; may raise OSError, when whoever asked has gone."""


@dataclass(slots=True)
class _Machine:
    listening: socket.socket
    talk: Talk
    trouble: Callable[[], Trouble]
    is_gone: bool = False


class MetadataService:
    """One thread listens for all machines; each has a port of its own on loopback."""

    def __init__(
        self,
        now: Callable[[], Instant],
        real: Callable[[Seconds], Seconds] = lambda for_s: for_s,
    ) -> None:
        """Take a clock; `real` says how long a time of that clock takes outside."""
        self._now, self._real = now, real
        self._ended = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._machines: dict[str, _Machine] = {}
        self._lock = threading.Lock()
        self._wake, self._waker = socket.socketpair()
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self._is_closed = False
        self._thread = threading.Thread(target=self._listen, name="metadata", daemon=True)
        self._thread.start()

    def add(
        self,
        machine: str,
        documents: Documents,
        listening: socket.socket | None = None,
        trouble: Callable[[], Trouble] = _fine,
    ) -> str:
        """Serve a machine's metadata as EC2 does; return the URL that its processes are given.

        `listening`: where, which is closed with the machine; None: on loopback. `trouble`: what is
        wrong with the service whenever it is asked.
        """
        return self.serve(machine, ec2_talk(documents, self._now), listening, trouble)

    def serve(
        self,
        machine: str,
        talk: Talk,
        listening: socket.socket | None = None,
        trouble: Callable[[], Trouble] = _fine,
    ) -> str:
        """Let a machine's questions be answered; see `add`."""
        listening = listening or socket.create_server(("127.0.0.1", 0))
        one = _Machine(listening, talk, trouble)
        with self._lock:
            self._machines[machine] = one
            self._selector.register(listening, selectors.EVENT_READ, one)
        self._waker.send(b"x")
        address, port = listening.getsockname()[:2]
        return f"http://{address}:{port}"

    def remove(self, machine: str) -> None:
        """Serve a machine no more; one that is unknown is fine."""
        with self._lock:
            one = self._machines.pop(machine, None)
            if one is not None:
                one.is_gone = True
                self._selector.unregister(one.listening)
                one.listening.close()

    def close(self) -> None:
        """End all of them."""
        for machine in list(self._machines):
            self.remove(machine)
        self._is_closed = True
        self._ended.set()
        self._waker.send(b"x")
        self._thread.join()
        self._selector.close()
        self._wake.close()
        self._waker.close()

    def _listen(self) -> None:
        while not self._is_closed:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._wake.recv(1024)
                else:
                    self._answer(key.data)

    def _answer(self, one: _Machine) -> None:
        """Accept who asks; a thread answers, so that nobody who is slow holds up another."""
        try:
            link, address = one.listening.accept()
        except OSError:
            return  # the machine has just been removed
        link.settimeout(ANSWERS_WITHIN_S)
        talk = threading.Thread(
            target=self._talk, args=(link, address, one), name="metadata-answer", daemon=True
        )
        talk.start()

    def _talk(self, link: socket.socket, address: Any, one: _Machine) -> None:
        def wait(for_s: Seconds) -> bool:
            return not self._ended.wait(self._real(for_s)) and not one.is_gone

        with link:
            trouble = one.trouble()
            wait(trouble.delay_s)
            with contextlib.suppress(OSError):  # whoever asked has gone
                one.talk(Asker(link, address, trouble, wait))


class Question(BaseHTTPRequestHandler):
    """One question and its answer; the connection ends with it."""

    protocol_version = "HTTP/1.1"
    server: Any

    def __init__(self, asker: Asker, desk: Any) -> None:
        self.asker = asker
        super().__init__(asker.link, asker.address, desk)

    def handle(self) -> None:
        """Answer once."""
        self.close_connection = True
        self.handle_one_request()
        self.close_connection = True

    def is_in_trouble(self) -> bool:
        """Answer with what is wrong; False: nothing is."""
        code = self.asker.trouble.code
        if code is not None:
            self.say(code, "an error that the weather asked for")
        return code is not None

    def say(self, code: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        """Send an answer."""
        body, told = text.encode(), {"Content-Type": "text/plain", **(headers or {})}
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        for name, value in told.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: agents ask every few seconds."""


# -- EC2's -----------------------------------------------------------------------------------


def ec2_talk(documents: Documents, now: Callable[[], Instant]) -> Talk:
    """Return who answers a machine of EC2; tokens are its own."""
    desk = _Desk(documents, {}, now)

    def talk(asker: Asker) -> None:
        _Ec2Question(asker, desk)

    return talk


@dataclass(frozen=True, slots=True)
class _Desk:
    """What an answer is made from."""

    documents: Documents
    tokens: dict[str, Instant]
    now: Callable[[], Instant]

    def new_token(self, ttl_s: Seconds) -> str:
        token = secrets.token_urlsafe(32)
        self.tokens[token] = self.now() + ttl_s
        return token

    def holds(self, token: str | None) -> bool:
        return token is not None and self.tokens.get(token, 0.0) > self.now()

    def document(self, path: str) -> str | None:
        """Return the text at a path, or the names below it; None when there is nothing."""
        documents = self.documents()
        found = documents.get(path)
        if found is not None:
            return found
        folder = path if path.endswith("/") else f"{path}/"
        below = [key.removeprefix(folder) for key in documents if key.startswith(folder)]
        names = {name if not rest else f"{name}/" for name, _, rest in map(_split, below)}
        return "\n".join(sorted(names)) or None


def _split(path: str) -> tuple[str, str, str]:
    return path.partition("/")


class _Ec2Question(Question):
    """See IMDSv2."""

    def do_PUT(self) -> None:
        """Give a token."""
        if self.is_in_trouble():
            return
        ttl_s = self._ttl()
        if self.path != TOKEN_PATH:
            self.say(404, "Not Found")
        elif ttl_s is None or "X-Forwarded-For" in self.headers:
            self.say(400, "Bad Request")
        else:
            self.say(200, self.server.new_token(ttl_s), {TTL: str(ttl_s)})

    def do_GET(self) -> None:
        """Give a document to who shows a token."""
        if self.is_in_trouble():
            return
        if not self.server.holds(self.headers.get(TOKEN)):
            self.say(401, "Unauthorized")
            return
        asked = unquote(self.path.partition("?")[0])
        version, _, path = asked.lstrip("/").partition("/")
        found = self.server.document(path) if VERSION.fullmatch(version) else None
        if found is None:
            self.say(404, "Not Found")
        else:
            self.say(200, found)

    def _ttl(self) -> int | None:
        headers: Message = self.headers
        said = headers.get(TTL, "")
        return int(said) if said.isdecimal() and 1 <= int(said) <= TTL_MOST else None
