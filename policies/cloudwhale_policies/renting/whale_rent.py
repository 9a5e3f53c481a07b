"""The portfolio as a policy; what it needs is imported when it is asked for the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudwhale.spi.renting import RentalPlan, RentalProblem


def never() -> bool:
    """Say that the time is not up: there is no clock."""
    return False


class WhaleRent:
    """Never dearer than greedy; the same problem gives the same plan."""

    def __init__(
        self, effort: Literal["quick", "thorough"] = "quick", is_over: Callable[[], bool] = never
    ) -> None:
        """`is_over`: asked all the while whether the time is up; then greedy has to do."""
        self._effort: Literal["quick", "thorough"] = effort
        self._is_over = is_over

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """Return the best plan that was found within the effort; all bounds are kept."""
        from cloudwhale_policies.renting.portfolio import chosen

        return chosen(problem, self._effort, self._is_over)
