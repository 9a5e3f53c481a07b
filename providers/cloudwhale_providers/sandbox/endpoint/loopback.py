"""What every server of the box is: it listens on loopback until it is closed."""

import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack

from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.web import Answering, Server


class Loopback:
    """A server that is opened once and closed once; safe for threads."""

    def __init__(self, port: int) -> None:
        """Take a port; 0: any that is free."""
        self._port = port
        self._closing = ExitStack()
        self._ended = threading.Event()
        """Set when it is being closed: whoever makes an answer wait stops waiting."""
        self._was_asked = False

    def _listen(self, name: str, answer: Answering, opened: ExitStack) -> None:
        """Answer from now on until `opened` is closed; raise OSError when the port is taken."""

        def asked(question: Asked) -> Answer | None:
            self._was_asked = True
            return answer(question)

        self._server = Server(asked, self._port)
        opened.callback(started(name, self._server.serve_forever).join)
        opened.callback(self._server.stop)

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def listen_also(self, listening: socket.socket) -> None:
        """Answer on another socket too, until this closes it."""
        self._server.also(listening)

    def close(self) -> None:
        """Stop listening; every connection is closed, every thread ends."""
        self._closing.close()

    def asked_lately(self) -> bool:
        """Say whether anybody has asked for anything since this was asked last."""
        was, self._was_asked = self._was_asked, False
        return was


def started(name: str, run: Callable[[], None]) -> threading.Thread:
    """Return a thread that runs something, and does not keep the process alive."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
