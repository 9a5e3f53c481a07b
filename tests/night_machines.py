"""Machines of a night: cut off from the store, full, with clocks of their own, warned or not."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cloudwhale.agent import actions as a
from cloudwhale.agent import seen
from cloudwhale.agent.duty import duty, wakes_at
from cloudwhale.agent.leases import stops_after_s
from cloudwhale.mailbox.documents import AttemptEnded, StartOrder
from cloudwhale.model.units import Instant
from cloudwhale.simulation.machines import Folder, SimulatedMachine

SHIFTED_MOST_S = 25.0  # an agent whose clock differs by more than 30 s does not start
FOR_EVER = float("inf")


class Eye:
    """Who looks at machines while a night is played: nothing here, see `night_checks`."""

    def begins(self, machine: "NightMachine", key: seen.Key, done_s: float, now: Instant) -> None:
        """A process is about to start."""

    def publishes(self, machine: "NightMachine", key: seen.Key, now: Instant) -> None:
        """A checkpoint is about to be stored."""


class NightMachine(SimulatedMachine):
    """A machine on which anything can go wrong."""

    eye = Eye()
    duty = staticmethod(duty)

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.is_cut = False
        """Whether its store cannot be reached."""
        self.is_full = False
        """Whether its disk is full."""
        self.is_rented = False
        self.ahead_s = 0.0
        """How far its agent's time is ahead of the true one: as the wall clock was at its start."""
        self.wall_s = 0.0
        """How far its wall clock is ahead now; reports are dated by it."""
        self.heard_at: Instant = 0.0
        """When its store was last heard."""
        self.impaired: list[tuple[Instant, Instant]] = []
        """Spans of time in which nothing could be saved or published, for whatever reason."""
        self._impaired_at: Instant | None = None
        self._unsaid: list[tuple[str, Callable[[], None] | None]] = []
        self._closing: dict[seen.Key, AttemptEnded] = {}
        """Ends that are on its disk and not in the store yet."""
        self._rang = True
        self._due_at: Instant = -FOR_EVER

    # -- time ----------------------------------------------------------------------------------

    def ring(self) -> None:
        """Let it look at the next step, whatever it thought was due."""
        self._rang = True

    def step(self, now: Instant) -> None:
        if not self._rang and now < self._due_at:
            return
        self._rang = False
        self._mind_shims(now)
        if self.agent_alive and not self.is_cut:
            self.heard_at = now
            self._say()
        super().step(now)
        self._due_at = self._next_at(now)

    def next_at(self, now: Instant) -> Instant:
        return now if self._rang else self._due_at

    def _next_at(self, now: Instant) -> Instant:
        times = [at for at in self._due.values() if at > now]
        if self._state is not None:
            at = wakes_at(self._state) - self.ahead_s
            times += [max(at, now + 0.001)]
        elif not self.is_lost and self.is_rented:
            times += [at for at in self._shim_stops() if at > now]
        return min(times, default=FOR_EVER)

    def _shim_stops(self) -> list[Instant]:
        lease_s = self._habits.lease_s
        found: list[Instant] = []
        for folder in self.disk.folders.values():
            if folder.process is not None and folder.order is not None and folder.ended is None:
                grace_s = folder.order.checkpoint.grace_s
                found += [
                    self.heard_at + stops_after_s(lease_s, grace_s),
                    self.heard_at + lease_s - 1,
                ]
        return found

    def _mind_shims(self, now: Instant) -> None:
        """Without an agent each shim stops its job once the store was silent for the lease."""
        if self.agent_alive or self.is_lost or not self.is_rented:
            return
        lease_s = self._habits.lease_s
        for key, folder in self.disk.folders.items():
            process, order = folder.process, folder.order
            if process is None or order is None or process.ends_at <= now:
                continue
            if now >= self.heard_at + lease_s - 1:
                self._change(key, folder, process.killed(now), now)
            elif now >= self.heard_at + stops_after_s(lease_s, order.checkpoint.grace_s):
                self._change(key, folder, process.signalled(now), now)

    # -- what happens to it --------------------------------------------------------------------

    def start_agent(self, now: Instant) -> None:
        if self._state is not None or self.is_lost:
            return
        self.ring()
        self.ahead_s = max(-SHIFTED_MOST_S, min(SHIFTED_MOST_S, self.wall_s))
        self._unsaid = []
        if not self.is_cut and not self.disk.folders:
            self.heard_at = now
        super().start_agent(now)
        for key, report in list(self._closing.items()):
            self._post_end(key, report)
        if self.is_cut:
            self._see(seen.StoreFailed(min(now, self.heard_at) + self.ahead_s), now)
        self._mark(now)

    def kill_agent(self) -> None:
        super().kill_agent()
        self._unsaid = []
        self.ring()

    def dies(self, now: Instant) -> None:
        """Let its agent die; whoever starts it again does so later."""
        self.kill_agent()
        self._mark(now)

    def kill_shim(self, job: str, now: Instant) -> None:
        super().kill_shim(job, now)
        self.ring()

    def lose(self, now: Instant) -> None:
        super().lose(now)
        self.ring()
        self._mark(now)

    def cut(self, now: Instant) -> None:
        """Cut it off from its store."""
        self.step(now)
        self.is_cut = True
        self._see(seen.StoreFailed(now + self.ahead_s), now)
        self._mark(now)
        self.ring()

    def join(self, now: Instant) -> None:
        """Let it reach its store again."""
        self.is_cut = False
        self._see(seen.StoreWorks(), now)
        self._mark(now)
        self.ring()

    def fill(self, now: Instant, *, full: bool) -> None:
        """Fill its disk, or make room."""
        self.is_full = full
        self._mark(now)
        self.ring()

    def warn(self, goes_at: Instant, now: Instant) -> None:
        """Tell its agent what its provider has told the machine."""
        self._see(seen.Warned(goes_at + self.ahead_s, "terminate, says its provider"), now)
        self.ring()

    def _mark(self, now: Instant) -> None:
        """Remember since when nothing can be saved here, or that it can again."""
        is_bad = self.is_cut or self.is_full or self._state is None
        if is_bad and self._impaired_at is None:
            self._impaired_at = now
        elif not is_bad and self._impaired_at is not None:
            self.impaired.append((self._impaired_at, now))
            self._impaired_at = None

    def impaired_s(self, since: Instant, until: Instant) -> float:
        """Return for how long of a span nothing could be saved or published."""
        spans = list(self.impaired)
        if self._impaired_at is not None:
            spans.append((self._impaired_at, until))
        return sum(max(0.0, min(b, until) - max(a_, since)) for a_, b in spans)

    # -- what its agent sees and does ----------------------------------------------------------

    def _woke(self) -> seen.Woke:
        woke = super()._woke()
        known = woke.tenure
        if known is None:
            return woke
        return replace(woke, tenure=_moved(known, self.ahead_s))

    def _see(self, event: seen.Seen, now: Instant) -> None:
        if self._state is None:
            return
        self._state, todo = self.duty(self._state, event, now + self.ahead_s)
        for action in todo:
            answer = self._do(action, now)
            if answer is not None:
                self._see(answer, now)

    def _hold(self, action: a.Leave | a.KeepTenure) -> None:
        if isinstance(action, a.KeepTenure):
            action = replace(action, tenure=_moved(action.tenure, -self.ahead_s))
        super()._hold(action)

    def _read_order(self, now: Instant) -> bool:
        return not self.is_cut and super()._read_order(now)

    def _prepare(self, order: StartOrder, now: Instant) -> seen.Seen | None:
        key = (order.job, order.attempt)
        if self.is_full:
            self.disk.folders.setdefault(key, Folder(order))
            return seen.CannotStart(key, "disk-full", "No space left on device")
        return super()._prepare(order, now)

    def _watch(self, key: seen.Key, folder: Folder, now: Instant) -> None:
        if self.is_full and folder.process is not None and folder.process.ends_at > now:
            self._change(key, folder, folder.process, now)
            return  # nothing becomes whole on a full disk
        super()._watch(key, folder, now)

    def _start(self, key: seen.Key, now: Instant) -> seen.Seen:
        folder = self.disk.folders[key]
        if folder.process is None and folder.order is not None:
            restore = folder.order.restore
            done_s = 0.0 if restore is None else float(restore.name.removeprefix("work-"))
            self.eye.begins(self, key, done_s, now)
        return super()._start(key, now)

    def _publish(self, action: a.Publish, now: Instant) -> seen.Seen:
        if self.is_cut:
            return seen.PublishFailed(action.key, "the store cannot be reached")
        folder = self.disk.folders[action.key]
        if self.is_full and not action.last:
            return seen.Dropped(action.key, "checkpoint", "No space left on device")
        count = len(folder.published)
        told = super()._publish(action, now)
        if len(folder.published) > count:
            self.eye.publishes(self, action.key, now)
        return told

    def _close(self, action: a.Close) -> None:
        report = action.report
        key = (report.job, report.attempt)
        folder = self.disk.folders.setdefault(key, Folder(None))
        self._closing[key] = report
        folder.order = None
        self._due.pop(key, None)
        self._told.pop(key, None)
        self._post_end(key, report)

    def _post_end(self, key: seen.Key, report: AttemptEnded) -> None:
        def taken() -> None:
            self.disk.folders[key].ended = report
            self._closing.pop(key, None)

        self._unsaid.append((report.model_dump_json(), taken))
        self._say()

    def _post(self, body: str) -> None:
        self._unsaid.append((body, None))
        self._say()

    def _say(self) -> None:
        """Say what is to be said, in order, as far as the store takes it."""
        while self._unsaid and not self.is_cut:
            body, then = self._unsaid.pop(0)
            super()._post(self._dated(body))
            if then is not None:
                then()

    def _dated(self, body: str) -> str:
        """Date a report by the wall clock, as it is when it is posted."""
        off_s = self.wall_s - self.ahead_s
        if not off_s:
            return body
        row = json.loads(body)
        row["at"] += off_s
        return json.dumps(row)


def _moved(tenure: seen.Tenure, by_s: float) -> seen.Tenure:
    watched, away = tenure.watched_until + by_s, tenure.away_until + by_s
    return replace(tenure, watched_until=watched, away_until=away)
