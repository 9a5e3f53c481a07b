"""Lets faults befall a play, each at its time."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import simpy

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.simulation import faults as f
from cloudwhale.simulation.bells import Life
from cloudwhale.simulation.machines import SimulatedMachine
from cloudwhale.simulation.troubled import TroubledStore
from cloudwhale.spi.errors import SpecError


class Stricken(Protocol):
    """What faults need to know of a play."""

    machines: Mapping[str, SimulatedMachine]
    store: TroubledStore
    slow_s: Seconds

    @property
    def now(self) -> Instant:
        """Return the time."""
        ...

    def start_controller(self) -> None:
        """Raise the next controller."""
        ...

    def stop_controller(self) -> None:
        """Kill the controller."""
        ...

    def look_soon(self) -> None:
        """Let the controller look at its providers."""
        ...

    def wait(self, seconds: Seconds) -> simpy.Event:
        """Return what to wait for to let time pass."""
        ...


Moment = tuple[Seconds, Callable[[], None]]


def befall(play: Stricken, faults: Sequence[f.Fault]) -> Life:
    """Live through all that goes wrong; raise SpecError for a machine that there is not."""
    moments = sorted(
        (moment for fault in faults for moment in _moments(play, fault)), key=lambda each: each[0]
    )
    return _lived(play, moments)


def _lived(play: Stricken, moments: Sequence[Moment]) -> Life:
    began_at = play.now
    for after_s, happen in moments:
        yield play.wait(max(0.0, began_at + after_s - play.now))
        happen()


def _moments(play: Stricken, fault: f.Fault) -> Sequence[Moment]:
    """Return what happens when; what clouds and estimates suffer is there from the start."""
    match fault:
        case f.MachineLost():
            machine = _machine(play, fault.node)
            back: Moment = (fault.at + fault.for_s, lambda: machine.come_back(play.now))
            gone: Moment = (fault.at, lambda: machine.lose(play.now))
            return [gone] if math.isinf(fault.for_s) else [gone, back]
        case f.AgentKilled():
            killed = _machine(play, fault.node)
            return [(fault.at, killed.kill_agent), (fault.at, play.look_soon)]
        case f.ControllerRestarted():
            return [
                (fault.at, play.stop_controller),
                (fault.at + fault.for_s, play.start_controller),
            ]
        case f.StoreFails():
            return _spell(fault, lambda on: setattr(play.store, "is_failing", on))
        case f.StoreSlow():
            return _spell(fault, lambda on: setattr(play, "slow_s", fault.by_s if on else 0.0))
        case _:
            return ()


def _spell(fault: f.StoreFails | f.StoreSlow, set_to: Callable[[bool], None]) -> Sequence[Moment]:
    return [
        (fault.at, lambda: set_to(True)),
        (fault.at + fault.for_s, lambda: set_to(False)),
    ]


def _machine(play: Stricken, node: str) -> SimulatedMachine:
    if node not in play.machines:
        known = ", ".join(sorted(play.machines)[:10])
        raise SpecError(f"faults: there is no machine {node!r}", f"There are {known}.")
    return play.machines[node]
