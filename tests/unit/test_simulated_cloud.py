"""The simulated cloud keeps what the others promise about their ends."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from clouding import an_offer

from cloudwhale.mailbox.objects import open_objects
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.processes import Program
from cloudwhale.spi.errors import Unreachable
from cloudwhale.spi.provider import LaunchRequest

T = TypeVar("T")

NOW, STOP_AT = 1_800_000_000.0, 1_800_000_600.0


class CutOff(SimulatedCloud):
    """A cloud whose schedules cannot be reached for a while."""

    failures = 1

    def ask(self, verb: str, do: Callable[[], T]) -> T:
        if verb == "schedule" and self.failures:
            self.failures -= 1
            raise Unreachable("no route to host")
        return do()


def cut_off(times: list[float]) -> CutOff:
    """Return such a cloud after a launch that found no schedules; its time is the list's last."""
    objects = open_objects("memory://")
    cloud = CutOff([Shelf(an_offer())], objects, lambda order: Program(1.0), lambda: times[-1])
    request = LaunchRequest(
        request_id="r", node="n", offer=an_offer(), mailbox="memory://", home="/", stop_at=STOP_AT
    )
    with pytest.raises(Unreachable):
        cloud.launch(request)
    return cloud


def test_a_list_sets_the_stop_of_a_machine_whose_launch_was_cut_off() -> None:
    cloud = cut_off([NOW])
    (listed,) = cloud.machines()
    assert listed.stop_at == STOP_AT


def test_where_it_cannot_be_set_the_next_list_tries_again() -> None:
    cloud = cut_off([NOW])
    cloud.failures = 1
    assert [one.stop_at for one in cloud.machines()] == [None]
    assert [one.stop_at for one in cloud.machines()] == [STOP_AT]


def test_a_machine_that_is_past_a_stop_that_was_never_set_is_ended() -> None:
    times = [NOW]
    cloud = cut_off(times)
    times.append(STOP_AT + 1.0)
    (listed,) = cloud.machines()
    assert listed.state == "gone"
