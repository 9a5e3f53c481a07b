"""The simulated AWS of moto, in this process: it answers what the sandbox does not itself."""

import io
import threading
from typing import Any
from urllib.parse import unquote_to_bytes

from cloudwhale.spi.errors import Denied
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked

INSTALL = "pip install 'cloudwhale[sandbox]'"


class MotoCloud:
    """All of moto behind one function; its models are not made for threads, so one at a time.

    Loading it takes a second, and the first call of EC2 some more: it reads its catalogue.
    """

    def __init__(self) -> None:
        try:
            from moto.moto_server.werkzeug_app import (
                DomainDispatcherApplication,
                create_backend_app,
            )
        except ImportError as error:
            raise Denied("the sandbox needs moto and boto3", INSTALL) from error
        self._application: Any = DomainDispatcherApplication(create_backend_app)
        self.turn = threading.RLock()

    def answer(self, asked: Asked) -> Answer:
        """Return what moto answers."""
        begun: dict[str, Any] = {}

        def start(status: str, headers: list[tuple[str, str]], _error: Any = None) -> None:
            begun.update(status=int(status.split(" ", 1)[0]), headers=headers)

        with self.turn:
            pieces = self._application(_environ(asked), start)
            try:
                body = b"".join(pieces)
            finally:
                if hasattr(pieces, "close"):
                    pieces.close()
        kept = {name: value for name, value in begun["headers"] if name.lower() != "content-length"}
        return Answer(begun["status"], kept, body)


def _environ(asked: Asked) -> dict[str, Any]:
    """Return a request as WSGI has it (PEP 3333)."""
    path, _, query = asked.target.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": asked.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "RAW_URI": asked.target,
        "REQUEST_URI": asked.target,
        "QUERY_STRING": query,
        "CONTENT_TYPE": asked.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(asked.body)),
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": asked.headers.get("host", "").rpartition(":")[2] or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(asked.body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in asked.headers.items():
        if name not in ("content-type", "content-length"):
            environ["HTTP_" + name.upper().replace("-", "_")] = value
    return environ
