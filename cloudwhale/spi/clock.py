"""What the house asks of a clock."""

from typing import Protocol

from cloudwhale.model.units import Instant, Seconds


class Clock(Protocol):
    """A source of time; made in `cli`, `control` and `agent/__main__`, passed everywhere else."""

    def now(self) -> Instant:
        """Return the wall time; it may go backwards."""
        ...

    def steady(self) -> Seconds:
        """Return seconds since some moment; never goes backwards."""
        ...
