"""A wall clock over a rent policy: one that takes too long gives way to a simpler choice.

Effort is counted in work, so a slow machine may take long over it. Only where a clock is given is
it asked; what came of an answer that was cut off is stored with the round (`control/answers`).
"""

import inspect
import math
from collections.abc import Callable

from cloudwhale.model.units import Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.renting import Rent, RentalPlan, RentalProblem

IS_OVER = "is_over"
"""A policy that can give way takes this when it is made: a question that it asks now and then."""


class Guarded:
    """A rent policy that is told when its time is up; see Rent."""

    def __init__(self, make: Callable[..., Rent], clock: Clock, patience_s: Seconds) -> None:
        self._clock, self._patience_s = clock, patience_s
        self._until: Seconds = math.inf
        self._rent = make(**{IS_OVER: self._is_over})

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """See Rent; every payer's problem has its own time."""
        self._until = self._clock.steady() + self._patience_s
        return self._rent.choose(problem)

    def _is_over(self) -> bool:
        return self._clock.steady() >= self._until


def guarded(make: Callable[..., Rent], clock: Clock, patience_s: Seconds) -> Rent:
    """Return a policy under a clock; one that does not ask whether its time is up as it is."""
    if IS_OVER in inspect.signature(make).parameters:
        return Guarded(make, clock, patience_s)
    return make()
