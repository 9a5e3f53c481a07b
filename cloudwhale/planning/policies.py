"""What a round is decided by: the policies that the settings name, and a user's rules."""

from dataclasses import dataclass, field

from cloudwhale.planning.rules import Rules
from cloudwhale.spi.policy import Order, Score
from cloudwhale.spi.renting import Rent
from cloudwhale.spi.waiting import Wait


@dataclass(frozen=True, slots=True)
class Policies:
    """What is preferred, and the rules that a user has set."""

    order: Order
    score: Score
    rules: Rules = field(default_factory=Rules)
    wait: Wait | None = None
    """None: whoever fits may start, and nothing is rented."""
    rent: Rent | None = None
