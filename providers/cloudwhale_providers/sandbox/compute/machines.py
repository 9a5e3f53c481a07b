"""The machines of Compute Engine, and what becomes of them as time goes by.

`Instance.launched_at` is the creation and `ended_at` when STOPPING began, as they are listed;
whoever is preempted has its processes for up to 30 s more. Compute Engine charges from RUNNING on,
so what the box counts is never less.
A machine that has shut down by itself is TERMINATED: it is kept, with its disk, until somebody
deletes it. Restarts of machines (automaticRestart) do not happen here.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from cloudwhale.model.units import Instant, Seconds
from cloudwhale_providers.sandbox.compute.operations import Failure, Operations
from cloudwhale_providers.sandbox.compute.records import STATES, Record, Then
from cloudwhale_providers.sandbox.compute.wording import listed_at, written_at
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.endpoint.strikes import Strikes
from cloudwhale_providers.sandbox.endpoint.weather_values import Interruption, Maintenance, Weather

SOFT_OFF_S: Seconds = 30.0
"""Compute Engine docs, "Spot VMs": at most so long from ACPI G2 to G3."""
PREEMPTED = "compute.instances.preempted"
GUEST = "compute.instances.guestTerminate"
HOST_ERROR = "compute.instances.hostError"
MAINTENANCE = "compute.instances.terminateOnHostMaintenance"
TIMED = {"DELETE": "compute.instances.deferredDelete", "STOP": "compute.instances.deferredStop"}
"""Types of the operations that Compute Engine leaves of what it has done by itself."""
DELETED, STOPPED = "delete", "stop"
STAYS = frozenset({"UNSUPPORTED_OPERATION", "PREEMPTED"})
"""Codes of launches that were preempted: the machine is there, stopped, with its disk and name.

So others have met it; whether it stays with instanceTerminationAction=DELETE nobody says, and the
worse is taken here.
"""


class Machines:
    """Every machine there is or was lately; not for threads."""

    def __init__(self, weather: Weather, began_at: Instant) -> None:
        self._weather = weather
        self._due: list[tuple[Instant, int, Callable[[Instant], None]]] = []
        self._turns = 0
        self.operations = Operations(self.plan)
        self._strikes = Strikes(weather, began_at)
        self._records: dict[str, Record] = {}
        """By id; those that are gone stay for a while, for whoever counts them."""
        self._by_name: dict[tuple[str, str], Record] = {}
        """Those that are listed, by zone and name."""
        self.on_gone: Callable[[Record, Instant], None] = lambda record, at: None
        """Called with a machine that is deleted: its disks may go with it."""
        self.told: deque[tuple[Literal["started", "noticed", "ended"], Instance]] = deque()
        """What whoever runs the machines has to hear of."""

    # -- reading -----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Record]:
        """Yield those that are listed, oldest first."""
        return iter(self._by_name.values())

    def all(self) -> Iterator[Record]:
        """Yield those that are listed and those that are gone, oldest first."""
        return iter(self._records.values())

    def get(self, zone: str, name: str) -> Record | None:
        """Return a machine that is listed, by name or id; None: there is none."""
        found = self._by_name.get((zone, name))
        if found is None and name in self._records and not self._records[name].is_gone:
            found = self._records[name]
        return found if found is None or found.instance.zone == zone else None

    def known(self, name: str) -> Record | None:
        """Return a machine by id, by `ZONE/NAME` or by name; the newest of several."""
        if name in self._records:
            return self._records[name]
        zone, slash, bare = name.rpartition("/")
        found = [
            one
            for one in self._records.values()
            if one.instance.name == bare and (not slash or one.instance.zone == zone)
        ]
        return found[-1] if found else None

    def next_at(self) -> Instant | None:
        """Return when something happens next, as far as is known."""
        return self._due[0][0] if self._due else None

    # -- time --------------------------------------------------------------------------------

    def plan(self, at: Instant, do: Callable[[Instant], None]) -> None:
        """Let something happen at a time."""
        self._turns += 1
        heapq.heappush(self._due, (at, self._turns, do))

    def advance(self, now: Instant) -> None:
        """Let all happen that is due."""
        while self._due and self._due[0][0] <= now:
            at, _, do = heapq.heappop(self._due)
            do(at)

    # -- what happens ------------------------------------------------------------------------

    def add(self, record: Record, now: Instant) -> None:
        """Let a new machine be."""
        one = record.instance
        record.instance = replace(one, hangs=self._strikes.hangs(one))
        self._records[one.id] = self._by_name[record.key] = record
        self._plan_life(record, now)

    def doom(self, record: Record, failure: Failure, fails_at: Instant) -> None:
        """Let a machine be listed whose launch fails, until it has; it never ran, and is not told
        of. One that was preempted before it could start is TERMINATED then, and stays."""
        one = record.instance
        record.instance = replace(one, ended_at=one.launched_at, reason=failure.code)
        self._by_name[record.key] = record

        def fail(at: Instant) -> None:
            if failure.code not in STAYS:
                self._forget(record, at)
            elif not record.is_gone:
                self._become(record, "TERMINATED")

        self.plan(fails_at, fail)

    def stillborn(self, one: Instance) -> Failure | None:
        """Return why a machine that is asked for never runs, as the weather has it; None: it
        does."""
        found: Failure | None = None
        for reap in self._weather.reaps:
            if reap.age_s <= 0 and self._strikes.is_meant(reap, reap.which, reap.nth, one):
                code = reap.code if reap.code.isupper() else "INTERNAL_ERROR"
                found = Failure(code, f"{code}: the instance could not be made")
        return found

    def end(self, record: Record, code: str, at: Instant) -> None:
        """End a machine that has shut down by itself; one that has ended is left alone."""
        one = record.instance
        if one.soft_off_at is not None and at >= one.soft_off_at:
            self._take(record, at)
            return
        self._happen(record, code, at, "STOP")

    def interrupt(self, record: Record, at: Instant, notice_s: Seconds) -> None:
        """Tell a machine that it is taken back, in no more time than it has asked for."""
        one = record.instance
        if one.ended_at is not None or one.goes_at is not None:
            return
        off_at = at + min(notice_s, record.notice_s)
        record.instance = replace(
            one, noticed_at=at, soft_off_at=off_at, goes_at=off_at + SOFT_OFF_S
        )
        self.told.append(("noticed", record.instance))
        self.plan(off_at, lambda at: self._soft_off(record, at))
        self.plan(off_at + SOFT_OFF_S, lambda at: self._take(record, at))

    def delete(self, record: Record, at: Instant) -> Instant:
        """Begin to delete a machine; return when it is gone."""
        gone_at = at + self._weather.stopping_s
        self._close(record, at, DELETED)
        self._become(record, "STOPPING")
        self.plan(gone_at, lambda at: self._forget(record, at))
        return gone_at

    def stop(self, record: Record, at: Instant) -> Instant:
        """Begin to stop a machine; return when it has stopped."""
        self._close(record, at, STOPPED)
        return self._halt(record, at)

    def change(self, record: Record, **changed: Any) -> None:
        """Let the values of a machine be others."""
        record.instance = replace(record.instance, **changed)

    # -- one machine -------------------------------------------------------------------------

    def _plan_life(self, record: Record, now: Instant) -> None:
        """Let what will befall a machine be planned."""
        one, weather = record.instance, self._weather
        self.plan(now + weather.boot_s / 2, lambda at: self._stage(record))
        self.plan(now + weather.boot_s, lambda at: self._run(record, at))
        for rule in weather.interruptions:
            at = self._strikes.announced_at(one, rule) if one.market == "spot" else None
            if at is not None:
                self.plan(at, partial(self._preempt, record, rule))
        for event in weather.maintenance:
            at = self._strikes.announced_at(one, event)
            if at is not None:
                self.plan(at, partial(self._announce, record, event))
        for reap in weather.reaps:
            if reap.age_s > 0 and self._strikes.is_meant(reap, reap.which, reap.nth, one):
                self.plan(now + reap.age_s, lambda at: self._break(record, at))

    def _stage(self, record: Record) -> None:
        if record.instance.ended_at is None and record.status != "STOPPING":
            self._become(record, "STAGING")

    def _run(self, record: Record, at: Instant) -> None:
        if record.instance.ended_at is not None or record.status == "STOPPING":
            return
        record.times["lastStartTimestamp"] = written_at(at)
        if record.runs_for_s is not None:
            record.ends_at = at + record.runs_for_s
        if record.ends_at is not None:
            late_s = self._weather.schedule_late_s
            self.plan(record.ends_at + late_s, lambda at: self._expire(record, at))
        self._become(record, "RUNNING")
        self.told.append(("started", record.instance))

    def _break(self, record: Record, at: Instant) -> None:
        self._happen(record, HOST_ERROR, at, "STOP")

    def _expire(self, record: Record, at: Instant) -> None:
        self._happen(record, TIMED[record.then], at, record.then)

    def _preempt(self, record: Record, rule: Interruption, at: Instant) -> None:
        is_there = record.instance.ended_at is None
        if is_there and self._strikes.strikes(rule, record.instance):
            self.interrupt(record, at, rule.notice_s)

    def _soft_off(self, record: Record, at: Instant) -> None:
        """Tell a machine's system to shut down: from now on it costs nothing."""
        if record.instance.ended_at is None:
            scope = f"zones/{record.instance.zone}"
            self.operations.happened(PREEMPTED, scope, record.target, at)
            self.change(record, soft_off_at=at)
            self._become(record, "STOPPING")

    def _take(self, record: Record, at: Instant) -> None:
        one = record.instance
        if one.ended_at is None and not record.is_gone:
            self._close(record, at if one.soft_off_at is None else one.soft_off_at, PREEMPTED)
            self._finish(record, at, record.then)

    def _announce(self, record: Record, event: Maintenance, at: Instant) -> None:
        one = record.instance
        if one.ended_at is None and one.maintained_at is None:
            if self._strikes.strikes(event, one):
                ends_at = at + event.ahead_s
                record.instance = replace(one, maintained_at=ends_at, maintenance=event.code)
                self.told.append(("noticed", record.instance))
                self.plan(ends_at, lambda at: self._maintain(record, at))

    def _maintain(self, record: Record, at: Instant) -> None:
        if record.instance.market == "spot":
            self._soft_off(record, at)
            self._take(record, at)
        else:
            self._happen(record, MAINTENANCE, at, "STOP")

    def _happen(self, record: Record, what: str, at: Instant, then: Then) -> None:
        """End a machine by no call of anybody, and leave an operation that says so."""
        if record.instance.ended_at is not None or record.is_gone:
            return
        self._close(record, at, what)
        scope = f"zones/{record.instance.zone}"
        self.operations.happened(what, scope, record.target, at)
        self._finish(record, at, then)

    def _finish(self, record: Record, at: Instant, then: Then) -> None:
        """Let a machine whose processes have ended be gone, or stopped, after a while."""
        if then == "DELETE":
            self._become(record, "STOPPING")
            self.plan(at + self._weather.stopping_s, lambda at: self._forget(record, at))
        else:
            self._halt(record, at)

    def _halt(self, record: Record, at: Instant) -> Instant:
        halted_at = at + self._weather.stopping_s
        self._become(record, "STOPPING")

        def halt(at: Instant) -> None:
            if not record.is_gone:
                record.times["lastStopTimestamp"] = written_at(at)
                record.ends_at = None
                self._become(record, "TERMINATED")

        self.plan(halted_at, halt)
        return halted_at

    def _close(self, record: Record, at: Instant, reason: str) -> None:
        """Let a machine's processes end now; those of one that has ended are left alone."""
        one = record.instance
        if one.ended_at is None:
            ended_at = max(one.launched_at, listed_at(at))
            record.instance = replace(one, ended_at=ended_at, reason=reason)
            self.told.append(("ended", record.instance))

    def _become(self, record: Record, status: str) -> None:
        record.status = status
        record.instance = replace(record.instance, state=STATES[status])

    def _forget(self, record: Record, at: Instant) -> None:
        if record.is_gone:
            return
        has_stopped = "lastStopTimestamp" in record.times
        self._become(record, "TERMINATED")
        # The disk of one that was deleted while it ran goes with it, and is not counted apart.
        self.change(record, deleted_at=at if has_stopped else record.instance.ended_at)
        record.is_gone = True
        if self._by_name.get(record.key) is record:
            del self._by_name[record.key]
        self.on_gone(record, at)
        kept_s = self._weather.listed_s
        self.plan(at + kept_s, lambda at: self._let_go(record))

    def _let_go(self, record: Record) -> None:
        self._records.pop(record.instance.id, None)
