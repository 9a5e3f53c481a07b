"""Sees whether Docker answers: one that is started or stopped later is noticed, too."""

from collections.abc import Callable

from cloudwhale.agent.pool import Pool
from cloudwhale.agent.seen import CannotStart, Over, Runtimes, Seen
from cloudwhale.clock import wait
from cloudwhale.host.containers import images_here, runtimes
from cloudwhale.model.node import Facts
from cloudwhale.model.units import Instant, Seconds

LOOK_EVERY_S: Seconds = 20.0  # one question over a socket; with the loop's own pace 30 at most
LOOK_AGAIN_S: Seconds = 2.0  # a Docker that is restarted, or busy, is silent for a moment
DOUBTFUL = ("start-failed", "no-gpus", "runtime-lost")


def is_doubtful(event: Seen) -> bool:
    """Say whether an attempt ended as one does when Docker is away."""
    if isinstance(event, Over):
        return event.exit.how in DOUBTFUL
    return isinstance(event, CannotStart) and event.how in DOUBTFUL


class DockerSight:
    """Asks in a pool, as a Docker that hangs takes seconds; tells only of what has changed."""

    def __init__(self, pool: Pool, tell: Callable[[Seen], None]) -> None:
        self._pool = pool
        self._tell = tell
        self._told: tuple[str, ...] = ()
        self._look_at: Instant = 0.0
        self._is_asking = False

    def begin(self, facts: Facts, now: Instant) -> None:
        """Take what the controller was told as known."""
        self._told, self._look_at = facts.runtimes, now + LOOK_EVERY_S

    def doubt(self) -> None:
        """Look at the next turn: something failed that Docker may have been asked for."""
        self._look_at = 0.0

    def look(self, now: Instant) -> None:
        """Ask when it is time to; called at every turn."""
        if self._is_asking or now < self._look_at:
            return
        self._is_asking, self._look_at = True, now + LOOK_EVERY_S
        self._pool.do(self._ask)

    def _ask(self) -> None:
        try:
            images = images_here()
            if images is None and runtimes(images) != self._told:
                wait(LOOK_AGAIN_S)
                images = images_here()
            here = runtimes(images)
            if here != self._told:
                self._told = here
                self._tell(Runtimes(here, images or ()))
        finally:
            self._is_asking = False
