"""The simulated AWS of moto, in this process: it answers what the sandbox does not itself."""

import datetime as real_datetime
import io
import os
import threading
import types
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote_to_bytes

from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import Denied
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.refused import Refused, written

INSTALL = "pip install 'cloudwhale[sandbox]'"
NEEDED = ("moto", "boto3", "flask", "flask_cors")
NO_IMAGES = "MOTO_EC2_LOAD_DEFAULT_AMIS"
"""Without this moto makes some hundred images, with a volume and a snapshot each, per region."""


def check_installed() -> None:
    """Raise Denied, with what mends it, when the extra `sandbox` is not installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise Denied(f"the sandbox needs {', '.join(missing)}", f"Run: {INSTALL}")


class MotoCloud:
    """All of moto behind one function; its models are not made for threads, so one at a time.

    Loading it takes a second, and the first call of EC2 another: it reads its catalogue.
    """

    def __init__(self) -> None:
        from moto.moto_api import _internal
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        internal: Any = _internal
        internal.moto_api_backend.reset()
        self._turn = threading.Lock()
        self._application: Any = DomainDispatcherApplication(create_backend_app)

    def answer(self, asked: Asked) -> Answer:
        """Return what moto answers; what it does not know is refused in the service's own way."""
        begun: dict[str, Any] = {}

        def start(status: str, headers: list[tuple[str, str]], _error: Any = None) -> None:
            begun.update(status=int(status.split(" ", 1)[0]), headers=headers)

        with self._turn:
            try:
                pieces = self._application(_environ(asked), start)
            except RuntimeError:  # the kind that it raises for verbs that it lacks
                return _unknown(asked)
            try:
                body = b"".join(pieces)
            finally:
                pieces.close()
        if begun["status"] >= 500:  # an HTML page, which no SDK can read
            return _unknown(asked)
        kept = {name: value for name, value in begun["headers"] if name != "Content-Length"}
        return Answer(begun["status"], kept, body)


@contextmanager
def moto_time(now: Callable[[], Instant]) -> Generator[None]:
    """Let moto take its times from the sandbox's clock, and make no images of its own."""
    from moto.core import utils

    class Time(real_datetime.datetime):
        """What moto asks for the time."""

        @classmethod
        def now(cls, tz: real_datetime.tzinfo | None = None) -> Any:
            """Return the sandbox's time."""
            return real_datetime.datetime.fromtimestamp(now(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            """Return the sandbox's time without a zone."""
            return cls.now(real_datetime.UTC).replace(tzinfo=None)

    place: Any = types.ModuleType("datetime")
    place.__dict__.update(real_datetime.__dict__)
    place.datetime = Time
    before = os.environ.get(NO_IMAGES)
    asked: Any = utils
    asked.datetime = place
    os.environ[NO_IMAGES] = "false"
    try:
        yield
    finally:
        asked.datetime = real_datetime
        if before is None:
            os.environ.pop(NO_IMAGES, None)
        else:
            os.environ[NO_IMAGES] = before


def _unknown(asked: Asked) -> Answer:
    what = asked.action or f"{asked.method} {asked.path}"
    refused = Refused("InvalidAction", f"The sandbox does not know {what}")
    return written(asked.signed[2], refused)


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
