"""What the agent asks of those who hear that a rented machine will be taken away."""

from typing import Protocol

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.value import Value


class Notice(Value):
    """The provider has told the machine that it goes, or may go."""

    goes_at: Instant | None
    """When it goes, minutes or days ahead; None: it may, nobody knows when."""
    says: str
    at_once: bool = False
    """It goes already: there is no time to count on, whatever `goes_at` says."""
    goes_in_s: Seconds | None = None
    """How long after this was first said it goes, where the provider names no time."""


class Notices(Protocol):
    """Asks the machine's own provider, from the machine; entry points of `cloudwhale.notices`."""

    every_s: Seconds
    """How often it is worth asking."""

    def look(self) -> tuple[Notice, ...]:
        """Return what the provider says now, worst first; nothing within seconds if it is silent.

        What it said before may be left out.
        """
        ...
