"""One `run` or `submit`: the jobs that came together, and the budget that bounds them."""

from cloudwhale.model.night import Night
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.model.value import Value


class Run(Value):
    """Jobs submitted together; the payer of what they rent."""

    id: str
    opened_at: Instant
    user: str
    folder: str
    """Absolute folder the command was given in."""
    files: tuple[str, ...] = ()
    digest: str = ""
    """Of files and options; the same command in the same folder adopts an unfinished run."""
    budget: MicroUsd | None = None
    """Bound on what the run may spend; None: nothing may be rented."""
    soft_share: float = 0.9
    """Share of the budget at which nothing new is rented."""
    night: Night | None = None
    """Its hours, and what becomes of what is left over; None: a run at any time."""
