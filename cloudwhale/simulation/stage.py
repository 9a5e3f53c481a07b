"""The same controller and agents under a simulated clock, without threads or sleeps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cloudwhale.control.controller import Chosen, Controller
from cloudwhale.control.effects import Effects
from cloudwhale.control.notifying.notifying import Silent
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.simulation.cloud import SimulatedCloud
from cloudwhale.simulation.hosts import SimulatedHosts
from cloudwhale.simulation.machines import SimulatedMachine
from cloudwhale.simulation.raising import Ground, raised
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.provider import Provider
from cloudwhale.spi.store import Store

LONGEST_STEP_S: Seconds = 1.0  # how far time moves at once when nothing is due before


@dataclass(frozen=True, slots=True)
class Scenery:
    """What outlives any controller."""

    clock: SteppedClock
    store: Store
    objects: Objects
    machines: Sequence[SimulatedMachine]
    chosen: Chosen
    clouds: Mapping[str, SimulatedCloud] = field(default_factory=dict[str, SimulatedCloud])
    """Where machines can be rented, by the provider's name."""
    others: Mapping[str, Objects] = field(default_factory=dict[str, Objects])
    """The mailboxes that some of them have for themselves."""


class Stage:
    """Plays one controller after another over the same scenery."""

    def __init__(self, scenery: Scenery) -> None:
        self.scenery = scenery
        self.controller: Controller | None = None
        self._began_at = scenery.clock.now() - scenery.clock.steady()

    @property
    def machine_time(self) -> Instant:
        """Return the time that agents go by: like the real ones', it never goes back."""
        return self._began_at + self.scenery.clock.steady()

    def raise_controller(
        self,
        effects: Effects | None = None,
        store: Store | None = None,
        notifying: Silent | None = None,
    ) -> None:
        """Begin a controller's life: the next epoch, everything read from the store.

        `effects`, `store`: others in their place, which may die at a chosen point.
        """
        s = self.scenery
        hosts = SimulatedHosts(s.machines, lambda: self.machine_time)
        providers: dict[str, Provider] = {"local": hosts, **s.clouds}
        ground = Ground(s.clock, s.objects, providers, others=s.others)
        self.controller = raised(ground, store or s.store, s.chosen, effects, notifying).controller

    def step(self) -> None:
        """Let everybody do what is due now, then move time to what is due next."""
        clock, version = self.scenery.clock, self.scenery.store.version()
        wait_s = self._tick()
        lives: list[SimulatedMachine | SimulatedCloud]
        lives = [*self.scenery.machines, *self.scenery.clouds.values()]
        for one in lives:
            one.step(self.machine_time)
        if self.scenery.store.version() != version:
            return  # one thing leads to another at the same instant
        now = clock.now()
        here = self.machine_time
        waits = [one.next_at(here) - here for one in lives]
        times = [now + LONGEST_STEP_S, *(now + wait for wait in waits)]
        if wait_s:
            times.append(now + wait_s)
        clock.advance_to(min(times))

    def _tick(self) -> Seconds | None:
        if self.controller is None:
            return None
        try:
            return self.controller.tick()
        except StoreUnusable:
            return LONGEST_STEP_S  # as its host does: nothing is lost, it goes on a little later

    def play(self, until: Callable[[], bool], at_most_s: Seconds) -> bool:
        """Step until something holds; False when the time was up before."""
        end = self.scenery.clock.now() + at_most_s
        while not until():
            if self.scenery.clock.now() >= end:
                return False
            self.step()
        return True
