"""The whole house in simulated time: its controller, its agents, and a clock that jumps."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import simpy

from cloudwhale.agent.state import LEASE_S
from cloudwhale.control.controller import Chosen
from cloudwhale.control.effects import InlineEffects
from cloudwhale.control.inboxes import Cadence
from cloudwhale.control.watcher import Pace
from cloudwhale.mailbox.box import node_in
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.model import event as e
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.simulation.befalling import befall
from cloudwhale.simulation.bells import Bell, Life
from cloudwhale.simulation.clock import EnvironmentClock
from cloudwhale.simulation.cloud import SimulatedCloud
from cloudwhale.simulation.executing import true_speed
from cloudwhale.simulation.faults import MachineLost
from cloudwhale.simulation.hosts import SimulatedHosts
from cloudwhale.simulation.machines import Habits, SimulatedMachine
from cloudwhale.simulation.mailbox import RingingObjects
from cloudwhale.simulation.processes import Program
from cloudwhale.simulation.raising import Ground, Raised, raised
from cloudwhale.simulation.setting import Arrival, Offered, Setting
from cloudwhale.simulation.troubled import TroubledStore, troubled, with_wrong_estimates
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.provider import Provider

RUN = "played"
TURNS_AT_ONCE = 1000  # far more than an instant can lead to; a planner that repeats itself is stuck
BEATS_S: Seconds = 60.0  # where machines can be lost, each is heard so often
MISSED_BEATS = 10.0  # a lease is as many heartbeats, and never less than in production
TRY_AGAIN_S: Seconds = 1.0  # a store that takes no writes is tried again so soon


class BrokenOff(Exception):
    """A play means nothing from here on; its text says why."""

    def __init__(self, says: str, after_s: Seconds, number: int) -> None:
        super().__init__(says, after_s, number)  # simpy makes it anew from these
        self.says = says
        self.after_s = after_s
        """Since the play began."""
        self.number = number
        """Of the round."""

    def __str__(self) -> str:
        """Return why."""
        return self.says


class PlanRefused(BrokenOff):
    """The checker found a fault in a plan."""


class Stuck(BrokenOff):
    """The planner makes one plan after another at the same instant."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a play has come."""

    now: Instant
    arrived: int
    ended: int
    jobs: int
    """All that will come."""


class Engine:
    """Plays one setting; everybody is a simpy process that sleeps until a bell or a time."""

    def __init__(self, setting: Setting, chosen: Chosen) -> None:
        arrivals = with_wrong_estimates(setting.arrivals, setting.faults)
        order = sorted(arrivals, key=lambda each: (each.at, each.job))
        self.began_at: Instant = order[0].at if order else 0.0
        self.rounds = 0
        """Plans that controllers made that are gone."""
        self.store = TroubledStore()
        self.truth: Mapping[str, Arrival] = {each.job: each for each in order}
        self._coming = order[::-1]
        self._setting = setting
        self._chosen = chosen
        self._env = simpy.Environment(self.began_at)
        self._bell = Bell(self._env)
        """The controller's."""
        self._mail: set[str] = set()
        """Nodes whose inboxes have something that the controller has not asked for."""
        self._objects = RingingObjects(lambda: self.now)
        self._habits = _habits(setting)
        self._bells = {node.id: Bell(self._env) for node in setting.nodes}
        """Those of the machines, by node."""
        self.machines: Mapping[str, SimulatedMachine] = {
            node.id: self._machine(node) for node in setting.nodes
        }
        self.clouds = {each.name: self._cloud(each) for each in setting.clouds}
        self._cloud_bell = Bell(self._env)
        self._ground = self._made_ground()
        self._effects = InlineEffects()
        self._raised: Raised | None = None
        self._again_at = math.inf
        self.slow_s: Seconds = 0.0
        """What a turn of the controller takes now."""

    @property
    def now(self) -> Instant:
        """Return the simulated time."""
        return float(self._env.now)

    def play(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Play until every job has ended and nothing is rented, or the time is up."""
        self._begin()
        last = self.began_at + self._setting.at_most_s
        told = -1
        while not self._is_over and self._env.peek() <= last:
            self._env.step()
            if progress is not None and self._ended != told:
                told = self._ended
                progress(Progress(self.now, self._arrived, told, len(self.truth)))
        self.stop_controller()

    @property
    def _arrived(self) -> int:
        return len(self.truth) - len(self._coming)

    @property
    def _ended(self) -> int:
        return self._arrived - len(self.store.world(self.now).jobs)

    @property
    def _is_over(self) -> bool:
        world = self.store.world(self.now)
        return not self._coming and not world.jobs and not world.rentals

    # -- the beginning -----------------------------------------------------------------------

    def _machine(self, node: Node) -> SimulatedMachine:
        machine = SimulatedMachine(node.id, node.facts, self._objects, self._program, self._habits)
        machine.woken = self._bells[node.id].ring
        return machine

    def _cloud(self, offered: Offered) -> SimulatedCloud:
        faults = self._setting.faults
        shelves = [troubled(shelf, faults, self.began_at) for shelf in offered.shelves]
        cloud = SimulatedCloud(
            shelves, self._objects, self._program, lambda: self.now, offered.seed
        )
        cloud.habits = self._habits
        return cloud

    def _program(self, order: StartOrder) -> Program:
        arrival = self.truth[order.job]
        rule, models = arrival.spec.checkpoint, {device.model for device in order.devices}
        return Program(
            work_s=arrival.work_s,
            saves_every_s=None if rule is None else rule.every_s,
            speeds={model: true_speed(arrival.spec, model) for model in models},
        )

    def _made_ground(self) -> Ground:
        hosts = SimulatedHosts(list(self.machines.values()), lambda: self.now)
        providers: dict[str, Provider] = {"local": hosts, **self.clouds}
        beats_s = self._habits.heartbeat_s
        pace = Pace(beats_s, beats_s, beats_s, beats_s, beats_s, beats_s, boots=Cadence(beats_s))
        return Ground(EnvironmentClock(lambda: self.now), self._objects, providers, pace)

    def _begin(self) -> None:
        """Raise machines and controller, and open the run, at the first arrival."""
        run = Run(id=RUN, opened_at=self.now, user="play", folder="/", budget=self._setting.budget)
        joined = [
            e.NodeJoined(at=self.now, node=node.but(provider="local"))
            for node in self._setting.nodes
        ]
        self.store.append([e.RunOpened(at=self.now, run=run), *joined])
        self._objects.ring("inbox", self._posted)
        self._objects.ring("orders", self._ordered)
        self._objects.ring("boots", self._boots_on)
        for node, machine in self.machines.items():
            machine.start_agent(self.now)
            self._env.process(self._live(machine, self._bells[node]))
        if self.clouds:
            self._env.process(self._rent_out())
        self.start_controller()
        self._env.process(self._arrive())
        self._env.process(self._control())
        self._env.process(befall(self, self._setting.faults))

    # -- who lives here ----------------------------------------------------------------------

    def _posted(self, folder: str) -> None:
        self._mail.add(node_in(folder))
        self._bell.ring()

    def _boots_on(self, folder: str) -> None:
        if self._raised is not None:
            self._raised.watcher.boots.look_soon()
            self._bell.ring()

    def _ordered(self, folder: str) -> None:
        self._bells.get(node_in(folder), self._cloud_bell).ring()

    def _arrive(self) -> Life:
        while self._coming:
            at = self._coming[-1].at
            yield self._env.timeout(max(0.0, at - self.now))
            events: list[e.Event] = []
            while self._coming and self._coming[-1].at <= self.now:
                events.append(self._submitted(self._coming.pop()))
            self.store.append(events)
            self._bell.ring()

    def _submitted(self, one: Arrival) -> e.Submitted:
        job = Job(id=one.job, run=RUN, spec=one.spec, submitted_at=self.now, after=one.after)
        return e.Submitted(at=self.now, job=one.job, first=job)

    def _live(self, machine: SimulatedMachine, bell: Bell) -> Life:
        while True:
            machine.step(self.now)
            yield bell.until(machine.next_at(self.now))

    def _rent_out(self) -> Life:
        before: object = None
        while True:
            now = self.now
            for cloud in self.clouds.values():
                cloud.step(now)
            seen = [(cloud.states(now), cloud.prices(now)) for cloud in self.clouds.values()]
            if seen != before:
                before = seen
                self.look_soon()
            yield self._cloud_bell.until(min(c.next_at(now) for c in self.clouds.values()))

    # -- the controller ----------------------------------------------------------------------

    def start_controller(self) -> None:
        """Raise the next controller; one that lives is left alone."""
        if self._raised is None:
            self._effects = InlineEffects()
            self._raised = raised(self._ground, self.store, self._chosen, self._effects)
            self._bell.ring()

    def stop_controller(self) -> None:
        """Kill the controller; what it has begun lies in the mailbox and the store."""
        if self._raised is not None:
            self.rounds += self._raised.controller.rounds
            self._raised = None

    def look_soon(self) -> None:
        """Let the controller look at its providers: something has changed there."""
        if self._raised is not None:
            self._raised.watcher.look_soon()
            self._bell.ring()

    def _control(self) -> Life:
        while True:
            yield self._bell.until(self._due_at())
            if self.slow_s:
                yield self._env.timeout(self.slow_s)
            self._bell.silence()
            if self._raised is not None:
                self._turn(self._raised)
                self._cloud_bell.ring()

    def _due_at(self) -> Instant:
        if self._raised is None:
            return math.inf
        due_at = self._raised.controller.due_at
        # What could not be stored is tried again, and nothing is due twice at the same time.
        later = self.now + TRY_AGAIN_S
        if due_at is not None and due_at <= self.now:
            due_at = later
        return min(math.inf if due_at is None else due_at, self._again_at)

    def _turn(self, raised: Raised) -> None:
        """Tick until nothing more comes of it at this time."""
        self._again_at = math.inf
        for _ in range(TURNS_AT_ONCE):
            rung, self._mail = self._mail, set()
            try:
                raised.controller.tick(rung=rung)
            except StoreUnusable:
                self._mail |= rung
                self._again_at = self.now + TRY_AGAIN_S
                return
            if raised.controller.incident:
                raise PlanRefused(raised.controller.incident, *self._where(raised))
            if not (self._mail or self._effects.has_ended) and raised.controller.is_settled:
                return
        raise Stuck(f"{TURNS_AT_ONCE} turns at {self.now}", *self._where(raised))

    def _where(self, raised: Raised) -> tuple[Seconds, int]:
        """Return how long the play has lasted, and the number of the round."""
        return self.now - self.began_at, self.rounds + raised.controller.rounds + 1

    # -- what goes wrong ---------------------------------------------------------------------

    def wait(self, seconds: Seconds) -> simpy.Event:
        """Return what a process must wait for to let so much time pass."""
        return self._env.timeout(seconds)


def _habits(setting: Setting) -> Habits:
    """Return how machines behave: silent ones are only noticed where some can fall silent."""
    beats_s = setting.heartbeat_s
    if beats_s is None:
        # A cloud tells of its machines by itself.
        may_fall_silent = any(isinstance(fault, MachineLost) for fault in setting.faults)
        beats_s = BEATS_S if may_fall_silent else setting.at_most_s
    return Habits(setting.physics, beats_s, max(LEASE_S, MISSED_BEATS * beats_s))
