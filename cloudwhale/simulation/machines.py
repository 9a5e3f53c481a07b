"""A machine without a machine: the real agent's duty over simulated processes and a disk."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cloudwhale.agent import actions as a
from cloudwhale.agent import seen
from cloudwhale.agent.duty import duty, wakes_at
from cloudwhale.agent.state import HEARTBEAT_S, LEASE_S, AgentState
from cloudwhale.mailbox.box import checkpoint_prefix, folder_of, inbox_from, orders_to
from cloudwhale.mailbox.documents import ORDERS, AttemptEnded, Manifest, StartOrder
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.job import Checkpoint
from cloudwhale.model.node import Facts
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.simulation.beside import Beside
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.processes import Process, Program, begun, work_in

Programs = Callable[[StartOrder], Program]

AT_ONCE = Physics(neighbour=1.0, start_s=0.0, restore_s=0.0, stop_s=1.0)
"""Machines on which nothing but a stop takes time, for lives that are about something else."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How a machine and its agent behave."""

    physics: Physics = AT_ONCE
    heartbeat_s: Seconds = HEARTBEAT_S
    lease_s: Seconds = LEASE_S
    door: str = ""
    """Behind which its folders of the mailbox lie; empty: it has none."""


@dataclass(slots=True)
class Folder:
    """What a machine's disk holds of one attempt; it outlives the agent."""

    order: StartOrder | None
    ready_at: Instant = 0.0
    """When all is in place for its process."""
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
    tenure: seen.Tenure | None = None
    """Until when it is paid for; None: it is not rented, or its agent is told of no lease."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A process was started: the proof that no attempt ran twice, and none beside another."""

    key: seen.Key
    at: Instant
    from_work_s: float


class SimulatedMachine:
    """One machine; `step` does all that is due at a time, `next_at` says when to come back."""

    def __init__(
        self,
        node: str,
        facts: Facts,
        objects: Objects,
        programs: Programs,
        habits: Habits = Habits(),
    ) -> None:
        self.node = node
        self.facts = facts
        self.disk = Disk()
        self.begun: list[Beginning] = []
        self.is_lost = False
        """Without power or network: nothing runs here, and nothing can be started."""
        self.has_ended = False
        """Its agent has ended it: it was rented, and its lease is over or nothing is left to do."""
        self.woken: Callable[[], None] = lambda: None
        """Called when the agent was started: it has something to do now."""
        self._objects = objects
        folder = folder_of(node, habits.door)
        self._orders = orders_to(objects, folder)
        self._inbox = inbox_from(objects, folder)
        self._programs = programs
        self._habits = habits
        self._beside = Beside(habits.physics.neighbour)
        self._due: dict[seen.Key, Instant] = {}
        """When something happens to each attempt that is not over, by itself."""
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
        if self._state is not None or self.is_lost:
            return
        self._incarnations += 1
        self._last_report = self._inbox.newest()
        self._told = {}
        self._state = AgentState(
            self.node, f"{self.node}-{self._incarnations}", lease_s=self._habits.lease_s,
            heartbeat_s=self._habits.heartbeat_s,
        )  # fmt: skip
        self._see(self._woke(), now)
        self.woken()

    def kill_agent(self) -> None:
        """Kill the agent; processes run on, and the disk stays as it is."""
        self._state = None

    def kill_shim(self, job: str, now: Instant) -> None:
        """Kill the shim of a job's running attempt, and with it the job's process."""
        for key, folder in self.disk.folders.items():
            if key[0] == job and folder.process is not None and folder.ended is None:
                self._change(key, folder, folder.process.killed(now), now)
                folder.shim_lost = True

    def lose(self, now: Instant) -> None:
        """Cut the power: agent and processes are gone, the disk stays as it is."""
        self.is_lost = True
        self.kill_agent()
        for key in list(self._due):
            folder = self.disk.folders[key]
            if folder.process is not None and folder.process.ends_at > now:
                folder.shim_lost = True
                self._change(key, folder, folder.process.killed(now), now)
        self._settle(now)

    def come_back(self, now: Instant) -> None:
        """Switch it on again: its agent starts and finds what its disk holds."""
        self.is_lost = False
        self.start_agent(now)

    def running(self, now: Instant) -> list[seen.Key]:
        """Return the attempts whose processes run."""
        found = self.disk.folders.items()
        return [key for key, f in found if f.process is not None and f.process.ends_at > now]

    def step(self, now: Instant) -> None:
        """Do all that is due."""
        self._look(now)
        while self.agent_alive and self._read_order(now):
            pass
        self._see(seen.Tick(), now)
        self._look(now)  # a stop may take no time

    def next_at(self, now: Instant) -> Instant:
        """Return when something becomes due here; infinity when nothing will by itself."""
        times = [at for at in self._due.values() if at > now]
        if self._state is not None:
            at = wakes_at(self._state)
            times += [at] if at > now else []
        return min(times, default=math.inf)

    # -- its devices -------------------------------------------------------------------------

    def _settle(self, now: Instant) -> None:
        """Let processes that have ended leave their devices, and the others go on faster."""
        for key in [key for key, at in self._due.items() if at <= now]:
            process = self.disk.folders[key].process
            if process is not None and process.ends_at <= now:
                self._pace(self._beside.left(key), process.ends_at)

    def _pace(self, keys: Iterable[seen.Key], now: Instant) -> None:
        """Let processes go on at the rate that holds with the neighbours that they have now."""
        for key in keys:
            folder = self.disk.folders[key]
            if folder.process is not None:
                rate = self._beside.rate(key, folder.process.program.speeds)
                self._change(key, folder, folder.process.paced(rate, now), now)

    def _change(self, key: seen.Key, folder: Folder, process: Process, now: Instant) -> None:
        folder.process = process
        save_at = process.next_save_at(now)
        self._due[key] = process.ends_at if save_at is None else min(save_at, process.ends_at)

    # -- what the agent sees -----------------------------------------------------------------

    def _look(self, now: Instant) -> None:
        self._settle(now)
        for key in [key for key, at in self._due.items() if at <= now and self.agent_alive]:
            if key in self._due:
                self._watch(key, self.disk.folders[key], now)

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
        return seen.Woke(self.facts, f"key of {self.node}", tuple(found), newest, self.disk.fence,
            self.disk.tenure,
        )  # fmt: skip

    def _watch(self, key: seen.Key, folder: Folder, now: Instant) -> None:
        process = folder.process
        if process is None:
            self._see(seen.Prepared(key), now)
            return
        if process.ends_at > now:
            self._change(key, folder, process, now)
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
                return self._prepare(action.order, now)
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
            case a.SaveOutputs():
                return seen.OutputsSaved(action.key)
            case a.Leave() | a.KeepTenure():
                self._hold(action)
            case _:
                self._stop(action, now)
        return None

    def _hold(self, action: a.Leave | a.KeepTenure) -> None:
        if isinstance(action, a.KeepTenure):
            self.disk.tenure = action.tenure
        else:
            self._state = None
            self.has_ended = action.ends_machine

    def _prepare(self, order: StartOrder, now: Instant) -> seen.Seen | None:
        key, physics = (order.job, order.attempt), self._habits.physics
        folder = self.disk.folders.setdefault(key, Folder(order))
        takes_s = physics.start_s + (0.0 if order.restore is None else physics.restore_s)
        folder.ready_at = self._due[key] = now + takes_s
        return None if takes_s > 0 else seen.Prepared(key)

    def _start(self, key: seen.Key, now: Instant) -> seen.Seen:
        folder = self.disk.folders[key]
        order = folder.order
        if folder.process is None and order is not None:
            done_s = 0.0 if order.restore is None else work_in(order.restore.name)
            process = begun(self._programs(order), now, done_s, self._habits.physics.stops)
            self._change(key, folder, process, now)
            self.begun.append(Beginning(key, now, done_s))
            self._pace(self._beside.came(key, order.devices), now)
        return seen.Began(key, now)

    def _stop(
        self, action: a.KeepStop | a.KeepPeaks | a.Signal | a.Kill | a.Forget, now: Instant
    ) -> None:
        folder = self.disk.folders[action.key]
        match action:
            case a.KeepStop():
                folder.stop = action.wish
            case a.Signal() if folder.process is not None:
                self._change(action.key, folder, folder.process.signalled(now), now)
            case a.Kill() if folder.process is not None:
                self._change(action.key, folder, folder.process.killed(now), now)
            case _:
                return

    def _publish(self, action: a.Publish, now: Instant) -> seen.Seen:
        folder, (job, attempt) = self.disk.folders[action.key], action.key
        save = folder.process.newest_save(now) if folder.process is not None else None
        folder.seq = max(folder.seq, action.seq)
        if save is None or any(old.name == save[0] for old in folder.published):
            return seen.Published(action.key, None)
        rank = None if folder.order is None else folder.order.rank
        key = f"{checkpoint_prefix(job, attempt, action.seq, rank)}/manifest.json"
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
        folder.order = None
        self._due.pop((report.job, report.attempt), None)
        self._told.pop((report.job, report.attempt), None)

    def _post(self, body: str) -> None:
        self._last_report = self._inbox.post(body.encode(), self._last_report)
