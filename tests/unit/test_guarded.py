"""A rent policy under a clock: it gives way when its time is up, and only there."""

from collections.abc import Callable
from pathlib import Path

from rental_problems import a_demand, a_kind, a_problem

from cloudwhale import plugins
from cloudwhale.control.desk import policies
from cloudwhale.control.guarded import Guarded, guarded
from cloudwhale.settings import Settings
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.spi.renting import RentalPlan, RentalProblem
from cloudwhale_policies.renting.one_each import OneEach

PROBLEM = a_problem([a_demand()], [a_kind()])


class Searching:
    """Tries ten times, each of which takes a second, unless its time is up."""

    clock = SteppedClock()

    def __init__(self, is_over: Callable[[], bool] = lambda: False) -> None:
        self._is_over = is_over

    def choose(self, problem: RentalProblem) -> RentalPlan:
        for number in range(10):
            if self._is_over():
                return RentalPlan((), how=f"{number} tries", out_of_effort=True)
            self.clock.advance_to(self.clock.now() + 1.0)
        return RentalPlan((), how="10 tries")


def test_who_takes_too_long_gives_way() -> None:
    found = guarded(Searching, Searching.clock, 4.0).choose(PROBLEM)
    assert (found.how, found.out_of_effort) == ("4 tries", True)


def test_who_is_done_in_time_does_not() -> None:
    found = guarded(Searching, Searching.clock, 11.0).choose(PROBLEM)
    assert (found.how, found.out_of_effort) == ("10 tries", False)


def test_each_question_has_its_own_time() -> None:
    rent = guarded(Searching, Searching.clock, 4.0)
    assert [rent.choose(PROBLEM).how for _ in range(3)] == ["4 tries"] * 3


def test_a_wall_clock_that_is_set_back_or_forth_changes_nothing() -> None:
    clock = Searching.clock
    rent = guarded(Searching, clock, 4.0)
    clock.set_wall(clock.now() + 1e6)
    assert rent.choose(PROBLEM).how == "4 tries"
    clock.set_wall(clock.now() - 2e6)
    assert rent.choose(PROBLEM).how == "4 tries"


def test_who_never_asks_is_left_alone() -> None:
    assert isinstance(guarded(OneEach, SteppedClock(), 4.0), OneEach)


def test_only_where_a_clock_is_given_is_it_asked(tmp_path: Path) -> None:
    asking = [
        name
        for name in plugins.names(plugins.RENTS)
        if isinstance(guarded(plugins.load(plugins.RENTS, name), SteppedClock(), 4.0), Guarded)
    ]
    for name in plugins.names(plugins.RENTS):
        settings = Settings(home=tmp_path, rent=name)
        assert not isinstance(policies(settings).rent, Guarded), "simulations are given none"
        assert isinstance(policies(settings, SteppedClock()).rent, Guarded) == (name in asking)
