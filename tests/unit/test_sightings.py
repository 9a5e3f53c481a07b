"""Whether what was seen of the nodes has changed enough to decide anew."""

from cloudwhale.control.sightings import differ
from cloudwhale.model.node import DeviceUse, Measured
from cloudwhale.model.world import Sighting


def seen(foreign_gib: float | None = None, alive: bool = True, cpu: float = 0.0) -> Sighting:
    devices = {} if foreign_gib is None else {"gpu": DeviceUse(used_gib=9, foreign_gib=foreign_gib)}
    return Sighting(
        node="host", heard_at=0.0, agent_alive=alive, measured=Measured(devices=devices, cpu=cpu)
    )


def test_what_trembles_is_no_news() -> None:
    planned = {"host": seen(3.49)}
    assert not differ(planned, {"host": seen(3.51, cpu=2.0)})
    assert not differ(planned, {"host": seen(4.4)})


def test_a_gib_more_or_less_in_others_hands_is() -> None:
    planned = {"host": seen(3.5)}
    assert differ(planned, {"host": seen(4.5)})
    assert differ(planned, {"host": seen(2.5)})


def test_an_agent_or_a_device_that_comes_or_goes_is() -> None:
    assert differ({"host": seen()}, {"host": seen(alive=False)})
    assert differ({"host": seen(1.0)}, {"host": seen()})
    assert differ({}, {"host": seen()})
    silent = Sighting(node="host", heard_at=0.0, agent_alive=True)
    assert not differ({"host": silent}, {"host": seen()}), "no GPUs, nothing to compare"
