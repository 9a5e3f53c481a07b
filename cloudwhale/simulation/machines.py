"""A machine without a machine: the real agent's duty over simulated processes and a disk."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cloudwhale.agent import actions as a
from cloudwhale.agent import seen
from cloudwhale.agent.duty import duty, wakes_at
from cloudwhale.agent.state import AgentState
from cloudwhale.mailbox.box import checkpoint_prefix, inbox_from, orders_to
from cloudwhale.mailbox.documents import ORDERS, AttemptEnded, Manifest, StartOrder
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.job import Checkpoint
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant
from cloudwhale.simulation.processes import Process, Program, work_in
from cloudwhale.spi.provider import Check, LaunchRequest, Leftover, Machine

Programs = Callable[[StartOrder], Program]


@dataclass(slots=True)
class Folder:
    """What a machine's disk holds of one attempt; it outlives the agent."""

    order: StartOrder | None
    process: Process | None = None
    shim_lost: bool = False
    seq: int = 0
    published: tuple[Checkpoint, ...] = ()
    stop: seen.StopWish | None = None
    ended: AttemptEnded | None = None


@dataclass(slots=True)
class Disk:
    """What outlives an agent on its machine."""

    folders: dict[seen.Key, Folder] = field(default_factory=dict[seen.Key, Folder])
    fence: int = 0
    orders_read: int = 0


@dataclass(frozen=True, slots=True)
class Beginning:
    """A process was started: the proof that no attempt ran twice, and none beside another."""

    key: seen.Key
    at: Instant
    from_work_s: float


class SimulatedMachine:
    """One machine; `step` does all that is due at a time, `next_at` says when to come back."""

    def __init__(self, node: str, facts: Facts, objects: Objects, programs: Programs) -> None:
        self.node = node
        self.facts = facts
        self.disk = Disk()
        self.begun: list[Beginning] = []
        self._objects = objects
        self._orders = orders_to(objects, node)
        self._inbox = inbox_from(objects, node)
        self._programs = programs
        self._state: AgentState | None = None
        self._told: dict[seen.Key, tuple[str, Instant]] = {}
        self._incarnations = 0
        self._last_report = 0

    # -- what happens to it ------------------------------------------------------------------

    @property
    def agent_alive(self) -> bool:
        """Say whether an agent runs here."""
        return self._state is not None

    def start_agent(self, now: Instant) -> None:
        """Start the agent; one that runs is left alone."""
        if self._state is not None:
            return
        self._incarnations += 1
        self._last_report = self._inbox.newest()
        self._told = {}
        self._state = AgentState(self.node, f"{self.node}-{self._incarnations}")
        self._see(self._woke(), now)

    def kill_agent(self) -> None:
        """Kill the agent; processes run on, and the disk stays as it is."""
        self._state = None

    def kill_shim(self, job: str, now: Instant) -> None:
        """Kill the shim of a job's running attempt, and with it the job's process."""
        for (name, _), folder in self.disk.folders.items():
            if name == job and folder.process is not None and folder.ended is None:
                folder.process = folder.process.killed(now)
                folder.shim_lost = True

    def running(self, now: Instant) -> list[seen.Key]:
        """Return the attempts whose processes run."""
        found = self.disk.folders.items()
        return [key for key, f in found if f.process is not None and f.process.ends_at > now]

    def step(self, now: Instant) -> None:
        """Do all that is due."""
        if self._state is None:
            return
        for key, folder in list(self.disk.folders.items()):
            self._watch(key, folder, now)
        while self.agent_alive and self._read_order(now):
            pass
        self._see(seen.Tick(), now)

    def next_at(self, now: Instant) -> Instant:
        """Return when something becomes due here; infinity when nothing will by itself."""
        if self._state is None:
            return math.inf
        times = [wakes_at(self._state)]
        for folder in self.disk.folders.values():
            if folder.process is None or folder.ended is not None:
                continue
            save_at = folder.process.next_save_at(now)
            times += [folder.process.ends_at] if save_at is None else [save_at]
        return min((at for at in times if at > now), default=math.inf)

    # -- what the agent sees -----------------------------------------------------------------

    def _woke(self) -> seen.Woke:
        newest: dict[str, int] = {}
        found: list[seen.Found] = []
        for (job, attempt), folder in self.disk.folders.items():
            newest[job] = max(attempt, newest.get(job, 0))
            if folder.ended is None and folder.order is not None:
                began_at = None if folder.process is None else folder.process.began_at
                found.append(
                    seen.Found(folder.order, began_at, folder.seq, folder.published, folder.stop)
                )
        return seen.Woke(self.facts, f"key of {self.node}", tuple(found), newest, self.disk.fence)

    def _watch(self, key: seen.Key, folder: Folder, now: Instant) -> None:
        process = folder.process
        if process is None or folder.ended is not None:
            return
        save = process.newest_save(now)
        known = any(save is not None and old.name == save[0] for old in folder.published)
        if save is not None and not known and self._told.get(key) != save:
            self._told[key] = save
            self._see(seen.Whole(key, *save), now)
        if process.ends_at <= now:
            lost = folder.shim_lost
            self._see(
                seen.Lost(key, process.ends_at) if lost else seen.Over(key, process.exit()), now
            )

    def _read_order(self, now: Instant) -> bool:
        body = self._orders.read(self.disk.orders_read + 1)
        if body is None:
            return False
        order = ORDERS.validate_json(body)
        self._see(seen.Ordered(order), now)
        self.disk.fence = max(self.disk.fence, order.fence)
        self.disk.orders_read += 1
        return True

    def _see(self, event: seen.Seen, now: Instant) -> None:
        if self._state is None:
            return
        self._state, todo = duty(self._state, event, now)
        for action in todo:
            answer = self._do(action, now)
            if answer is not None:
                self._see(answer, now)

    # -- what the agent does -----------------------------------------------------------------

    def _do(self, action: a.Action, now: Instant) -> seen.Seen | None:
        match action:
            case a.Prepare():
                key = (action.order.job, action.order.attempt)
                self.disk.folders.setdefault(key, Folder(action.order))
                return seen.Prepared(key)
            case a.StartShim():
                return self._start(action.key, now)
            case a.Publish():
                return self._publish(action, now)
            case a.Post():
                self._post(action.report.model_dump_json())
            case a.Close():
                self._close(action)
            case a.Repeat():
                ended = self.disk.folders[action.key].ended
                if ended is not None:
                    self._post(ended.model_dump_json())
            case a.Leave():
                self._state = None
            case _:
                self._stop(action, now)
        return None

    def _start(self, key: seen.Key, now: Instant) -> seen.Seen:
        folder = self.disk.folders[key]
        if folder.process is None and folder.order is not None:
            restored = folder.order.restore
            done_s = 0.0 if restored is None else work_in(restored.name)
            folder.process = Process(self._programs(folder.order), now, done_s)
            self.begun.append(Beginning(key, now, done_s))
        return seen.Began(key, now)

    def _stop(
        self, action: a.KeepStop | a.KeepPeaks | a.Signal | a.Kill | a.Forget, now: Instant
    ) -> None:
        folder = self.disk.folders[action.key]
        match action:
            case a.KeepStop():
                folder.stop = action.wish
            case a.Signal() if folder.process is not None:
                folder.process = folder.process.signalled(now)
            case a.Kill() if folder.process is not None:
                folder.process = folder.process.killed(now)
            case _:
                return

    def _publish(self, action: a.Publish, now: Instant) -> seen.Seen:
        folder, (job, attempt) = self.disk.folders[action.key], action.key
        save = folder.process.newest_save(now) if folder.process is not None else None
        folder.seq = max(folder.seq, action.seq)
        if save is None or any(old.name == save[0] for old in folder.published):
            return seen.Published(action.key, None)
        key = f"{checkpoint_prefix(job, attempt, action.seq)}/manifest.json"
        manifest = Manifest(
            at=now, job=job, attempt=attempt, seq=action.seq, name=save[0], files=()
        )
        self._objects.create(key, manifest.model_dump_json().encode())
        checkpoint = Checkpoint(
            attempt=attempt, seq=action.seq, name=save[0], size_bytes=1, saved_at=save[1],
            manifest=key,
        )  # fmt: skip
        folder.published = (*folder.published, checkpoint)
        return seen.Published(action.key, checkpoint)

    def _close(self, action: a.Close) -> None:
        report = action.report
        folder = self.disk.folders.setdefault((report.job, report.attempt), Folder(None))
        # The report first: an agent that dies in between tells it again, and none is lost.
        self._post(report.model_dump_json())
        folder.ended = report

    def _post(self, body: str) -> None:
        self._last_report = self._inbox.post(body.encode(), self._last_report)


class SimulatedHosts:
    """The provider of simulated machines that are owned; passes the provider contract."""

    def __init__(self, machines: Sequence[SimulatedMachine], now: Callable[[], Instant]) -> None:
        self._machines = {machine.node: machine for machine in machines}
        self._now = now

    def offers(self, now: Instant) -> Sequence[Offer]:
        """Owned machines are not rented."""
        return ()

    def launch(self, request: LaunchRequest) -> Machine:
        """Start a machine's agent."""
        machine = self._machines[request.node]
        machine.start_agent(self._now())
        return _as_seen(machine)

    def machines(self) -> Sequence[Machine]:
        """Return every machine, its agent running or not."""
        return [_as_seen(machine) for machine in self._machines.values()]

    def extend(self, machine: str, stop_at: Instant) -> Instant | Literal["fixed"]:
        """Owned machines have no stop that could be moved."""
        return "fixed"

    def terminate(self, machine: str) -> None:
        """End a machine's agent; one that is gone is fine."""
        if machine in self._machines:
            self._machines[machine].kill_agent()

    def leftovers(self) -> Sequence[Leftover]:
        """Nothing costs money here."""
        return ()

    def check(self) -> Sequence[Check]:
        """Return one row a machine."""
        return [Check(name=name, state="ok", says="simulated") for name in sorted(self._machines)]


def _as_seen(machine: SimulatedMachine) -> Machine:
    return Machine(
        id=machine.node,
        node=machine.node,
        state="running" if machine.agent_alive else "gone",
        facts=machine.facts,
    )
