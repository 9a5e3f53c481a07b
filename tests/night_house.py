"""The whole house in one night: everybody real but time, machines, mailbox and cloud."""

import heapq
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from night_boundaries import (
    ControllerDied,
    Fuse,
    NightClock,
    NightEffects,
    NightStore,
    Strained,
    Violation,
    Weather,
)  # fmt: skip
from night_cloud import Mutant
from night_machines import Eye, NightMachine
from night_values import BEGAN_AT, Night, NightJob, NightShelf

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen, Controller
from cloudwhale.control.inboxes import Cadence
from cloudwhale.control.watcher import Pace
from cloudwhale.mailbox.box import node_in
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.model import event as e
from cloudwhale.model.budget import Budget
from cloudwhale.model.job import CheckpointRule, GpuRequest, Job, JobSpec, Resources, RetryRule
from cloudwhale.model.node import Device, Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, micro_usd
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.rules import Patience, Rules
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.hosts import SimulatedHosts
from cloudwhale.simulation.machines import Habits
from cloudwhale.simulation.mailbox import RingingObjects
from cloudwhale.simulation.processes import Program
from cloudwhale.simulation.raising import Ground, raised
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.provider import Provider

TURNS_AT_ONCE = 300
AGAIN_S = 1.0
HEARTBEAT_S, LEASE_S, SKEW_S = 60.0, 600.0, 30.0
RULES = Rules(patience=Patience(attempt_lease_s=LEASE_S, clock_skew_s=SKEW_S))
PACE = Pace(
    read_every_s=120.0, look_every_s=60.0, ask_every_s=120.0, find_every_s=120.0,
    list_every_s=60.0, list_again_s=10.0, boots=Cadence(120.0),
)  # fmt: skip
PHYSICS = Physics(neighbour=0.9, start_s=2.0, restore_s=10.0, stop_s=3.0)


NONE = Mutant()


class House:
    """One night, step by step."""

    def __init__(self, night: Night, mutant: Mutant = NONE) -> None:
        self.night, self.mutant = night, mutant
        self.true: Instant = BEGAN_AT
        self.weather, self.fuse = Weather(), Fuse()
        self.eye = Eye()
        self.asked: Callable[[str, object], None] = lambda verb, found: None
        self.clock = NightClock(lambda: self.true)
        self.objects = RingingObjects(lambda: self.true)
        self.store = NightStore(self.weather)
        self.truth = {job.id: job for job in night.jobs}
        self.controller: Controller | None = None
        self.is_awake = True
        self.effects = NightEffects(self)
        self._again_at: Instant = -math.inf
        self._blocked_until: Instant = -math.inf
        self._mail: set[str] = set()
        self._coming = sorted(night.jobs, key=lambda job: (job.at, job.id), reverse=True)
        self._later: list[tuple[Instant, int, Callable[[], None]]] = []
        self._count = 0
        self.machines: dict[str, NightMachine] = {}
        self.steps = 0
        self.died = 0
        self.cancelled: set[str] = set()
        """Jobs that somebody did not want any more."""

    def begin(self, eye: Eye) -> None:
        """Build everything, and raise the first controller."""
        self.eye = eye
        habits = Habits(PHYSICS, HEARTBEAT_S, LEASE_S)
        for number, gpus in enumerate(self.night.owned, 1):
            name = f"own-{number}"
            machine = self.mutant.machine(name, facts(gpus), self.objects, self._program, habits)
            machine.eye, machine.duty = eye, self.mutant.duty
            self.machines[name] = machine
        self.cloud = self.mutant.cloud(
            [_shelf(one) for one in self.night.shelves], self.objects, self._program,
            lambda: self.true, self.night.seed,
        )  # fmt: skip
        self.cloud.habits = habits
        self.cloud.prepare(self)
        self.objects.ring("inbox", self._posted)
        self.objects.ring("orders", self._ordered)
        self._open()
        self.raise_controller()

    def _open(self) -> None:
        events: list[e.Event] = []
        for name, usd in self.night.budgets_usd.items():
            run = Run(
                id=name, opened_at=self.true, user="u", folder="/", budget=micro_usd(str(usd))
            )
            events.append(e.RunOpened(at=self.true, run=run))
        for name, usd in self.night.projects_usd.items():
            budget = Budget(project=name, month=micro_usd(str(usd)), set_at=self.true)
            events.append(e.BudgetSet(at=self.true, budget=budget))
        self.store.append(events)

    def _program(self, order: StartOrder) -> Program:
        job = self.truth[order.job]
        return Program(job.work_s, job.exit_code, job.saves_every_s, job.heeds)

    # -- the controller ------------------------------------------------------------------------

    def raise_controller(self) -> None:
        """Begin the next controller's life."""
        if self.controller is not None:
            return
        self.fuse = Fuse()
        self.store.fuse = self.fuse
        self.effects = NightEffects(self)
        hosts = SimulatedHosts(list(self.machines.values()), lambda: self.true)
        providers: dict[str, Provider] = {"local": hosts, "cloud": self.cloud}
        ground = Ground(self.clock, Strained(self.objects, self.weather), providers, PACE)
        self.controller = raised(ground, self.store, chosen(self.night), self.effects).controller
        self.mutant.controller(self.controller)
        self._again_at = self.true

    def kill_controller(self) -> None:
        """End the controller's life, wherever it is."""
        self.controller = None
        self.died += 1

    def _turn(self) -> None:
        """Tick until nothing more comes of it at this time."""
        controller = self.controller
        if controller is None or not self._may_turn:
            return
        try:
            came = self.effects.come(self.true, self.clock.now())
            if came or self._mail or self.true >= self._again_at:
                self._tick(controller)
        except ControllerDied:
            self.kill_controller()

    def _tick(self, controller: Controller) -> None:
        for _ in range(TURNS_AT_ONCE):
            rung, self._mail = self._mail, set()
            try:
                wait_s = controller.tick(rung=rung)
            except StoreUnusable:
                self._mail |= rung
                self._again_at = self._blocked_until = self.true + AGAIN_S
                return
            if controller.incident:
                raise Violation("plan-refused", controller.incident)
            if not (self._mail or self.effects.has_ended) and controller.is_settled:
                soon = math.inf if wait_s is None else wait_s
                self._again_at = self.true + (soon if soon > 0.001 else AGAIN_S)
                return
        raise Violation("stuck-at-an-instant", f"{TURNS_AT_ONCE} turns at once")

    @property
    def _may_turn(self) -> bool:
        is_up = self.controller is not None and self.is_awake
        return is_up and self.true >= self._blocked_until

    def _posted(self, folder: str) -> None:
        self._mail.add(node_in(folder))

    def _ordered(self, folder: str) -> None:
        machine = self.machine(node_in(folder))
        if machine is not None:
            machine.ring()

    def machine(self, node: str) -> NightMachine | None:
        """Return the machine that is a node."""
        if node in self.machines:
            return self.machines[node]
        hired = self.cloud.hired.get(node)
        machine = None if hired is None else hired.machine
        return machine if isinstance(machine, NightMachine) else None

    def is_there(self, machine: NightMachine) -> bool:
        """Say whether a machine has not ended."""
        return not machine.is_rented or any(one.machine is machine for one in self.cloud.living)

    @property
    def rented(self) -> list[NightMachine]:
        """Return the rented machines that are there."""
        found = (one.machine for one in self.cloud.living)
        return [one for one in found if isinstance(one, NightMachine)]

    # -- time ----------------------------------------------------------------------------------

    def later(self, at: Instant, do: Callable[[], None]) -> None:
        """Let something happen at a time."""
        self._count += 1
        heapq.heappush(self._later, (at, self._count, do))

    def step(self) -> None:
        """Let everybody do what is due, then move time to what is due next."""
        self.steps += 1
        while self._later and self._later[0][0] <= self.true:
            heapq.heappop(self._later)[2]()
        self._arrive()
        self._turn()
        for machine in self.machines.values():
            machine.step(self.true)
        self.cloud.step(self.true)
        if self._mail and self._may_turn:
            return  # one thing leads to another at the same instant
        self.true = max(self.true, min(self.true + 3600.0, self._next_at()))

    def _next_at(self) -> Instant:
        now = self.true
        times = [self.cloud.next_at(now), *(one.next_at(now) for one in self.machines.values())]
        if self._later:
            times.append(self._later[0][0])
        if self._coming:
            times.append(BEGAN_AT + self._coming[-1].at)
        if self.controller is not None and self.is_awake:
            times.append(max(self._blocked_until, min(self._again_at, self.effects.comes_at)))
        return min(times)

    def _arrive(self) -> None:
        events: list[e.Event] = []
        while self._coming and BEGAN_AT + self._coming[-1].at <= self.true:
            job = _job(self._coming.pop(), self.true)
            events.append(e.Submitted(at=self.true, job=job.id, first=job))
        if events:
            self.store.append(events)
            self._again_at = self.true

    @property
    def is_coming(self) -> bool:
        """Say whether some jobs are still to come."""
        return bool(self._coming)

    @property
    def is_over(self) -> bool:
        """Say whether everybody has come, every job has ended and every machine is back."""
        if self._coming:
            return False
        world = self.store.world(self.true)
        return not world.jobs and not world.rentals

    def stir(self) -> None:
        """Let the controller take a turn."""
        self._again_at = min(self._again_at, self.true)


def facts(gpus: int) -> Facts:
    """Return what a machine has."""
    devices = tuple(Device(id=f"gpu-{n}", model="L4", memory_gib=24.0) for n in range(gpus))
    return Facts(
        cpu=8.0 * gpus,
        memory_gib=64.0 * gpus,
        disk_gib=500.0,
        devices=devices,
        runtimes=("process", "container"),
    )


def _shelf(one: NightShelf) -> Shelf:
    offer = Offer(
        id=one.id, provider="cloud", region="r", zone=one.zone, market=_market(one.market),
        facts=facts(one.gpus), price_usd_h=micro_usd(str(one.usd_h)),
        cap_usd_h=micro_usd(str(one.cap_usd_h)), boot_s=one.boot_s, notice_s=one.notice_s,
        hazard_per_h=one.said_hazard_per_h, type=f"g{one.gpus}.xlarge",
    )  # fmt: skip
    return Shelf(
        offer, one.capacity, hazard_per_h=one.hazard_per_h, slow_boots=one.slow_boots,
        failed_boots=one.failed_boots,
    )  # fmt: skip


def _market(word: str) -> Any:
    return word


def _job(one: NightJob, now: Instant) -> Job:
    rule = CheckpointRule(every_s=one.publish_every_s, grace_s=one.grace_s)
    spec = JobSpec(
        name=one.id.rpartition("-")[0] or one.id, command="true", project=one.project,
        resources=Resources(cpu=1.0, gpu=GpuRequest(count=one.gpus, share=one.share)),
        duration_s=one.said_s, max_duration_s=one.max_duration_s,
        deadline=None if one.deadline_s is None else now + one.deadline_s,
        priority=one.priority, wait_max_s=one.wait_max_s, market=_market(one.market),
        checkpoint=rule if one.saves_every_s is not None else None,
        retry=RetryRule(max=one.retries, backoff_s=20.0),
        budget=None if one.budget_usd is None else micro_usd(str(one.budget_usd)),
        image="image", reference="L4",
    )  # fmt: skip
    after = (one.after,) if one.after else ()
    return Job(id=one.id, run=one.run, spec=spec, submitted_at=now, after=after)


@cache
def _policies(order: str, score: str, wait: str, rent: str) -> Policies:
    return Policies(
        plugins.load(plugins.ORDERS, order)(), plugins.load(plugins.SCORES, score)(), RULES,
        plugins.load(plugins.WAITS, wait)(), plugins.load(plugins.RENTS, rent)(),
    )  # fmt: skip


def chosen(night: Night) -> Chosen:
    """Return the policies of a night, under the names by which their rounds are made again."""
    names = (night.order, night.score, night.wait, night.rent)
    return Chosen(
        _policies(*names), night.order, night.score, night.seed, wait=night.wait, rent=night.rent
    )
