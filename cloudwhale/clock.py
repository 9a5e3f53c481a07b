"""The real clock: the only place that looks at one.

In a sandbox time may go faster: `CLOUDWHALE_CLOCK=1800000000:60` makes all processes agree that a
second is a minute, counted from that moment on. With a third number it was that time there then.
"""

import os
import threading
import time
from datetime import datetime
from functools import cache

from cloudwhale.model.units import Instant, Seconds

SPEED = "CLOUDWHALE_CLOCK"


class SystemClock:
    """This host's clock, as fast as it goes here."""

    def now(self) -> Instant:
        """Return the wall time."""
        return told(time.time())

    def steady(self) -> Seconds:
        """Return seconds that also count while the machine sleeps, where the host can tell."""
        boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime(boot) * _pace()[1]


@cache
def _pace() -> tuple[Instant, float, Instant]:
    """Return from when on time goes faster, how much, and what time it was then."""
    begin, _, rest = os.environ.get(SPEED, "").partition(":")
    speed, _, start = rest.partition(":")
    return (float(begin), float(speed), float(start or begin)) if speed else (0.0, 1.0, 0.0)


def look_again() -> None:
    """Take the pace from the environment anew: this process has gone into a sandbox."""
    _pace.cache_clear()


def told(at: Instant) -> Instant:
    """Return what time it was here at a time of the real clock, which files are dated by."""
    begin, speed, start = _pace()
    return start + (at - begin) * speed


def dated(at: Instant) -> Instant:
    """Return the time of the real clock at a time here: others hold what we send against it."""
    begin, speed, start = _pace()
    return begin + (at - start) / speed


def lasted(real_s: Seconds) -> Seconds:
    """Return how long it took here what took so long on a real clock."""
    return real_s * _pace()[1]


def real(for_s: Seconds) -> Seconds:
    """Return how long a time takes on a real clock: what a system call may wait for."""
    return for_s / _pace()[1]


def wait(for_s: Seconds, until: threading.Event | None = None) -> bool:
    """Wait at most so long, less when the event is set; say whether it was."""
    at_most_s = max(0.0, real(for_s))
    if until is None:
        time.sleep(at_most_s)
        return False
    return until.wait(at_most_s)


def pause(for_s: Seconds, until: threading.Event | None = None) -> bool:
    """Wait as `wait` does, but by the real clock: before a person or this host is looked at again.

    Neither is faster where time is.
    """
    return wait(lasted(for_s), until)


def iso(at: Instant | None) -> str | None:
    """Return a time as ISO 8601 with this host's offset, to the millisecond."""
    if at is None:
        return None
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="milliseconds")
