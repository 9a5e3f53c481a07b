"""One pull of an image in a thread of its own: whoever waits for it can stop to, at any time."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from cloudwhale.agent.containers.client import DockerTrouble, docker_client
from cloudwhale.clock import wait
from cloudwhale.model.units import Seconds
from cloudwhale.spi.clock import Clock

STALLED_S: Seconds = 600.0  # of a large layer, unpacking alone is silent for minutes
ASK_EVERY_S: Seconds = 0.3  # whether anybody still waits for it


class Stalled(DockerTrouble):
    """Docker has said nothing of a pull for so long that no more is expected of it."""

    def __init__(self) -> None:
        super().__init__("start-failed", f"nothing came of it for {STALLED_S:.0f} s")


class Unwanted(DockerTrouble):
    """Nobody waits for it any more."""

    def __init__(self) -> None:
        super().__init__("start-failed", "nobody waits for it any more")


class Pull:
    """Begun when made. Docker gives no time limit on a pull, and a read of it cannot be ended.

    One that nobody wants any more ends at the next word of Docker; until then it costs a thread.
    """

    def __init__(self, image: str, clock: Clock) -> None:
        self._image = image
        self._clock = clock
        self._said: deque[dict[str, Any]] = deque()
        self._rings = threading.Event()
        self._trouble: DockerTrouble | None = DockerTrouble("start-failed", "it broke off")
        self._is_over = False
        self._is_left = False
        threading.Thread(target=self._live, name="pull", daemon=True).start()

    def progress(self, wanted: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        """Yield what Docker says until it is done.

        Raise DockerTrouble when it fails, Stalled, or Unwanted.
        """
        heard_at = self._clock.steady()
        try:
            while True:
                wait(ASK_EVERY_S, self._rings)
                self._rings.clear()
                is_over = self._is_over  # asked first: then all that was said is there to read
                while self._said:
                    heard_at = self._clock.steady()
                    yield self._said.popleft()
                if is_over:
                    break
                if not wanted():
                    raise Unwanted
                if self._clock.steady() - heard_at >= STALLED_S:
                    raise Stalled
        finally:
            self._is_left = True
        if self._trouble is not None:
            raise self._trouble

    def _live(self) -> None:
        try:
            with docker_client() as client:
                for line in client.pull(self._image, stream=True, decode=True):
                    self._said.append(line)
                    self._rings.set()
                    if self._is_left:
                        break  # with its connection, Docker ends it
            self._trouble = None
        except DockerTrouble as trouble:
            self._trouble = trouble
        finally:
            self._is_over = True
            self._rings.set()
