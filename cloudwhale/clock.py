"""The real clock: the only place that looks at one."""

import threading
import time
from datetime import datetime

from cloudwhale.model.units import Instant, Seconds


class SystemClock:
    """This host's clock."""

    def now(self) -> Instant:
        """Return the wall time."""
        return time.time()

    def steady(self) -> Seconds:
        """Return seconds that also count while the machine sleeps, where the host can tell."""
        boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime(boot)


def wait(for_s: Seconds, until: threading.Event | None = None) -> bool:
    """Wait at most so long, less when the event is set; say whether it was."""
    if until is None:
        time.sleep(max(0.0, for_s))
        return False
    return until.wait(max(0.0, for_s))


def iso(at: Instant | None) -> str | None:
    """Return a time as ISO 8601 with this host's offset, to the millisecond."""
    if at is None:
        return None
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="milliseconds")
