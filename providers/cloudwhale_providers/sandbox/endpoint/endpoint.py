"""A cloud's API over HTTP on loopback: EC2, S3, SSM, IAM, STS, schedules and quotas."""

import threading
from collections.abc import Callable

from cloudwhale.spi.clock import Clock
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.moto_cloud import MotoCloud
from cloudwhale_providers.sandbox.endpoint.weather_values import Weather
from cloudwhale_providers.sandbox.endpoint.web import Server

ACCESS_KEY = "AKIDCLOUDWHALESANDBOX"
SECRET_KEY = "not-a-secret"
"""Credentials of the box; they open nothing anywhere else."""

Told = Callable[[Instance], None]


class Endpoint:
    """A cloud of one's own; there is one at a time in a process."""

    def __init__(self, clock: Clock, weather: Weather | None = None, *, port: int = 0) -> None:
        self._clock = clock
        self._weather = weather or Weather()
        self._port = port
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self.stirred = threading.Event()
        """Set when `step` has something to do; whoever steps clears it."""

    def start(self) -> str:
        """Load the cloud, listen, and return the URL; raise Denied without the extra `sandbox`."""
        self._moto = MotoCloud()
        self._server = Server(self._answer, self._port)
        self._thread = threading.Thread(target=self._server.serve_forever, name="sandbox-endpoint")
        self._thread.start()
        return self.url

    @property
    def url(self) -> str:
        """Return where it listens; it must have been started."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop listening; every connection is closed, every thread ends."""
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()
        self._server = self._thread = None

    def _answer(self, asked: Asked) -> Answer | None:
        return self._moto.answer(asked)
