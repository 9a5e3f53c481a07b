"""Says how far a long transfer is: bytes and rate, seldom enough to be read."""

from collections.abc import Callable

from cloudwhale.model.units import Seconds

FIRST_S: Seconds = 10.0
MOST_S: Seconds = 60.0
UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))

Say = Callable[[str], object]


class Progress:
    """One transfer; after 10 s something is said, then after 20, 40, and every minute."""

    def __init__(
        self, what: str, total_bytes: int, steady: Callable[[], Seconds], say: Say
    ) -> None:
        self._what = what
        self._total = total_bytes
        self._steady = steady
        self._say = say
        self._began = steady()
        self._every_s = FIRST_S
        self._say_at = self._began + FIRST_S
        self.done_bytes = 0

    def add(self, count: int) -> None:
        """Count bytes that are through."""
        self.done_bytes += count
        now = self._steady()
        if now >= self._say_at:
            self._every_s = min(2 * self._every_s, MOST_S)
            self._say_at = now + self._every_s
            of = f" of {size(self._total)}" if self._total else ""
            self._say(f"{self._what}: {size(self.done_bytes)}{of}, {self._rate()}")

    @property
    def told(self) -> str:
        """Return what there was and how long it took, once it is through."""
        took_s = self._steady() - self._began
        return f"{size(self.done_bytes)} in {took_s:.1f} s, {self._rate()}"

    def _rate(self) -> str:
        took_s = max(1e-3, self._steady() - self._began)
        return f"{self.done_bytes / took_s / 1e6:.1f} MB/s"


def size(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    for name, unit in UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
