"""The instances of the cloud, and what becomes of them as time goes by."""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from cloudwhale.model.units import Instant, Seconds
from cloudwhale_providers.sandbox.endpoint import moto_machines
from cloudwhale_providers.sandbox.endpoint.machines import Instance, State
from cloudwhale_providers.sandbox.endpoint.strikes import Strikes
from cloudwhale_providers.sandbox.endpoint.weather_values import (
    Interruption,
    Maintenance,
    Weather,
)

USER = "Client.UserInitiatedShutdown"
ITSELF = "Client.InstanceInitiatedShutdown"
TAKEN = "Server.SpotInstanceTermination"
SCHEDULED = "Server.ScheduledStop"
SAYS = {
    USER: "User initiated shutdown",
    ITSELF: "Instance initiated shutdown",
    TAKEN: "Spot instance termination",
    SCHEDULED: "Stopped due to a scheduled retirement",
}
"""What EC2 writes behind the code: EC2 API Reference, StateReason."""
INITIATED = {USER: "User initiated", ITSELF: "Instance initiated"}

What = Literal[
    "seen", "running", "rebalance", "notice", "maintenance", "taken", "reaped", "terminated",
    "forgotten",
]  # fmt: skip


@dataclass(slots=True)
class Record:
    """An instance, and what moto has made of it: its disks, its interfaces, its tags."""

    instance: Instance
    made: moto_machines.Made
    number: int
    """Of its launch, from 1."""
    facts: dict[str, Any]
    """What else is listed of it, as EC2 names it."""
    shown: tuple[object, str] = (None, "")
    """Its XML, and what it was made from."""
    is_seen: bool = True

    @property
    def is_live(self) -> bool:
        """Say whether it takes room: it has not ended."""
        return self.instance.ended_at is None


class Estate:
    """Every instance that is listed; not for threads: whoever asks holds the endpoint's turn."""

    def __init__(self, weather: Weather, began_at: Instant) -> None:
        self._weather = weather
        self._records: dict[str, Record] = {}
        self._due: list[tuple[Instant, int, What, str, str]] = []
        self._turns = 0
        self._launches = 0
        self._strikes = Strikes(weather, began_at)
        self.told: deque[tuple[Literal["started", "noticed", "ended"], Instance]] = deque()
        """What whoever runs the machines has to hear of."""

    # -- reading -----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def get(self, machine: str) -> Record | None:
        """Return an instance; None when there is none, or none is found yet."""
        return self._records.get(machine)

    def role_of(self, machine: str) -> str | None:
        """Return what the role of an instance is called; None: it has none, or has ended.

        Any thread may ask: it is one look.
        """
        record = self._records.get(machine)
        if record is None or not record.is_live:
            return None
        return record.instance.profile.rpartition("/")[2] or None

    def next_at(self) -> Instant | None:
        """Return when something happens next, as far as is known."""
        return self._due[0][0] if self._due else None

    # -- what happens ------------------------------------------------------------------------

    def add(self, make: Callable[[int], Record]) -> Record:
        """Let a new instance be."""
        self._launches += 1
        record = make(self._launches)
        one, weather = record.instance, self._weather
        record.instance = replace(one, hangs=self._strikes.hangs(one))
        self._records[one.id] = record
        if weather.unseen_s:
            record.is_seen = False
            moto_machines.hide(record.made)
            self._plan(one.launched_at + weather.unseen_s, "seen", one.id)
        self._plan(one.launched_at + weather.boot_s, "running", one.id)
        for number, rule in enumerate(weather.interruptions):
            self._plan_interruption(one, rule, number)
        for number, event in enumerate(weather.maintenance):
            at = self._strikes.announced_at(one, event)
            if at is not None:
                self._plan(at, "maintenance", one.id, str(number))
        for reap in weather.reaps:
            if self._strikes.is_meant(reap, reap.which, reap.nth, one):
                self._plan(one.launched_at + reap.age_s, "reaped", one.id, reap.code)
        self._advance_states(record, "pending")
        return record

    def advance(self, now: Instant) -> None:
        """Let all happen that is due."""
        while self._due and self._due[0][0] <= now:
            at, _, what, machine, code = heapq.heappop(self._due)
            record = self._records.get(machine)
            if record is not None:
                self._happen(record, what, at, code)

    def end(self, record: Record, code: str, at: Instant) -> None:
        """Begin the end of an instance; one that has ended is left alone."""
        one = record.instance
        if one.ended_at is not None:
            return
        ended_at = max(one.launched_at, float(math.floor(at)))
        record.instance = replace(one, ended_at=ended_at, reason=code)
        self._advance_states(record, "shutting-down")
        self.told.append(("ended", record.instance))
        self._plan(at + self._weather.stopping_s, "terminated", one.id)

    def interrupt(self, record: Record, at: Instant, notice_s: Seconds) -> None:
        """Announce that an instance is taken back, and take it then."""
        one = record.instance
        if one.ended_at is None and one.goes_at is None:
            record.instance = replace(one, noticed_at=at, goes_at=at + notice_s)
            self.told.append(("noticed", record.instance))
            self._plan(at + notice_s, "taken", one.id)

    def _happen(self, record: Record, what: What, at: Instant, code: str) -> None:
        one = record.instance
        if what == "seen":
            record.is_seen = True
            moto_machines.show(record.made)
        elif what == "terminated":
            self._advance_states(record, "terminated")
            self._plan(at + self._weather.listed_s, "forgotten", one.id)
        elif what == "forgotten":
            moto_machines.hide(record.made)
            del self._records[one.id]
        elif one.ended_at is None:
            self._befall(record, what, at, code)

    def _befall(self, record: Record, what: What, at: Instant, code: str) -> None:
        """Let something happen to an instance that has not ended."""
        if what == "running":
            self._advance_states(record, "running")
            self.told.append(("started", record.instance))
        elif what == "rebalance":
            if not self._strikes.has_struck(self._weather.interruptions[int(code)]):
                record.instance = replace(record.instance, rebalance_at=at)
        elif what == "notice":
            rule = self._weather.interruptions[int(code)]
            if self._strikes.strikes(rule, record.instance):
                self.interrupt(record, at, rule.notice_s)
        elif what == "maintenance":
            self._announce(record, self._weather.maintenance[int(code)], at)
        else:
            self.end(record, code or TAKEN, at)

    def _advance_states(self, record: Record, state: State) -> None:
        one = record.instance = replace(record.instance, state=state)
        code = one.reason
        moto_machines.become(record.made, state, reason_of(one), code, f"{code}: {says(code)}")
        if state == "terminated":
            moto_machines.take_down(record.made)

    # -- the weather -------------------------------------------------------------------------

    def _plan(self, at: Instant, what: What, machine: str, code: str = "") -> None:
        self._turns += 1
        heapq.heappush(self._due, (at, self._turns, what, machine, code))

    def _plan_interruption(self, one: Instance, rule: Interruption, number: int) -> None:
        at = self._strikes.announced_at(one, rule) if one.market == "spot" else None
        if at is None:
            return
        if rule.rebalance_s:
            before = max(one.launched_at, at - rule.rebalance_s)
            self._plan(before, "rebalance", one.id, str(number))
        self._plan(at, "notice", one.id, str(number))

    def _announce(self, record: Record, event: Maintenance, at: Instant) -> None:
        one = record.instance
        if one.maintained_at is None and self._strikes.strikes(event, one):
            ends_at = at + event.ahead_s
            record.instance = replace(one, maintained_at=ends_at, maintenance=event.code)
            self.told.append(("noticed", record.instance))
            self._plan(ends_at, "reaped", one.id, SCHEDULED)


def says(code: str) -> str:
    """Return what EC2 writes behind the code of an end."""
    return SAYS.get(code, code.partition(".")[2] or code)


def reason_of(one: Instance) -> str:
    """Return why an instance is in its state, in EC2's words; empty while it lives."""
    if one.ended_at is None:
        return ""
    head = INITIATED.get(one.reason) or f"{one.reason}: {says(one.reason)}"
    return f"{head} ({moto_machines.gmt(one.ended_at)})"
