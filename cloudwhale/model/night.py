"""A nightly burst: the hours in which the jobs of a file may run on rented machines."""

from typing import Literal

from cloudwhale.model.happened import Happened
from cloudwhale.model.units import Instant
from cloudwhale.model.value import Value

Unfinished = Literal["park", "carry-over", "continue"]
"""What becomes of a job that is not done when its night closes.

`park`: it waits for a person. `carry-over`: it waits for the next night of the same file.
`continue`: it goes on where that costs nothing, on machines of one's own.
"""


DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Window(Value):
    """The hours of a night as its file says them; which moments they are, a calendar says."""

    opens_min: int
    """Minutes after midnight by the clock on the wall."""
    closes_min: int
    """The same; not after `opens_min`: on the next day."""
    zone: str | None = None
    """IANA name; None: whatever the settings say."""
    days: tuple[str, ...] = ()
    """On which it opens by itself, of `DAYS`; empty: on all."""
    unfinished: Unfinished = "park"
    line: int | None = None
    """Where in its file it stands."""
    column: int | None = None


class Night(Value):
    """What makes a run a night."""

    name: str
    """Of its file, without folder and ending; the same every night."""
    date: str
    """The day on which it opens, in its zone, `2026-11-30`."""
    zone: str
    """IANA name, `Europe/Berlin`."""
    opens_at: Instant
    closes_at: Instant
    """Nothing is rented beyond it: all machines have landed by then."""
    deadline: Instant | None = None
    unfinished: Unfinished = "park"
    opens_min: int | None = None
    """Minutes after midnight by its file's window; None: not known, of one begun long ago."""
    closes_min: int | None = None
    days: tuple[str, ...] = ()
    """On which a night of the file opens, of `DAYS`; empty: on all."""
    carried: tuple[str, ...] = ()
    """Ids of jobs that earlier nights have left over for it."""
    closed_at: Instant | None = None
    """When what was left over was dealt with; None: that is still to come."""


class NightClosed(Happened):
    """A night is over: its machines have landed, and what is left over is dealt with. Once each."""

    kind: Literal["night-closed"] = "night-closed"
    run: str
    unfinished: dict[str, Unfinished] = {}
    """What becomes of each job that is not done, by job."""
