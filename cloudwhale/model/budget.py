"""What a project may spend on rented machines in every month."""

from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.model.value import Value


class Budget(Value):
    """Holds from when it was set, for that month and all that follow, until it is set anew."""

    project: str
    month: MicroUsd | None
    """Bound on what all leases that begin in one month (UTC) may cost; None: no bound any more."""
    soft_share: float = 0.9
    """Share of the bound at which nothing new is rented for the project."""
    set_at: Instant
    by: str = ""
    """Who set it."""
