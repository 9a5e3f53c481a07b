"""What a cloud without machines has: offers on a shelf, and the machines that were launched."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from cloudwhale.agent.seen import Tenure
from cloudwhale.agent.tenure import begun
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.simulation.booting import Booting, BootPlan
from cloudwhale.simulation.machines import SimulatedMachine
from cloudwhale.spi.provider import LaunchRequest, Machine

SHOWN_S: Seconds = 3600.0  # a cloud lists a machine for about an hour after its end
WATCHDOG_S: Seconds = 60.0  # from the end of a lease to that of a machine whose agent is dead


@dataclass(frozen=True, slots=True)
class Shelf:
    """One offer, how many of it there are, and what goes wrong with it."""

    offer: Offer
    capacity: int | None = None
    """Machines there are; None: always one more."""
    prices: tuple[tuple[Instant, MicroUsd | None], ...] = ()
    """Price per hour from each moment on; before the first it is the offer's own."""
    droughts: tuple[tuple[Instant, Instant], ...] = ()
    """Spans of time in which none can be had."""
    hazard_per_h: float | None = None
    """True preemptions per hour; None: as the offer says, and none where it does not."""
    slow_boots: float = 0.0
    """Share of the machines that boot ten times as slowly."""
    failed_boots: float = 0.0
    """Share of the machines that never boot, and are billed none the less."""
    boot: BootPlan | None = None
    """What they tell of their boots, and how long these take; None: nothing, and as offered."""

    def price_at(self, now: Instant) -> MicroUsd | None:
        """Return the price per hour at a time; None when none is told."""
        since = [price for at, price in self.prices if at <= now]
        return since[-1] if since else self.offer.price_usd_h


@dataclass(slots=True)
class Hired:
    """A machine that was launched, and what will become of it."""

    id: str
    request: LaunchRequest
    shelf: Shelf
    machine: SimulatedMachine
    price_usd_h: MicroUsd
    launched_at: Instant
    boots_at: Instant
    """When its agent starts; infinity: never."""
    taken_at: Instant
    """When it is preempted; infinity: never."""
    stop_at: Instant
    """When the cloud itself ends it, as it was asked to; infinity: never."""
    boot: Booting | None = None
    """What it tells of its boot."""
    ended_at: Instant | None = None
    is_up: bool = False
    is_scheduled: bool = False
    """Whether there is a schedule that ends it: a thing of its own, which can be left over."""

    @property
    def ends_at(self) -> Instant:
        """Return when it ends if nobody ends it before."""
        gives_up_at = math.inf if self.boot is None else self.boot.ends_at
        return min(self.taken_at, self.stop_at, self._barks_at, gives_up_at)

    @property
    def _barks_at(self) -> Instant:
        """Return when its own watchdog ends it though its agent is dead; infinity: it has none."""
        tenure = self.machine.disk.tenure
        return math.inf if tenure is None else tenure.away_until + WATCHDOG_S

    @property
    def noticed_at(self) -> Instant:
        """Return from when on the cloud tells that it will be taken."""
        return self.taken_at - self.shelf.offer.notice_s

    def seen(self, now: Instant) -> Machine:
        """Return it as the cloud lists it."""
        return Machine(
            id=self.id, node=self.machine.node, state=self.state(now),
            facts=self.machine.facts,
            owned=False,
            stop_at=None if math.isinf(self.stop_at) else self.stop_at,
            billed_from=self.launched_at, billed_to=self.ended_at, price_usd_h=self.price_usd_h,
            door=door_of(self.id),
        )  # fmt: skip

    def state(self, now: Instant) -> Literal["starting", "running", "stopping", "gone"]:
        """Return how it is."""
        if self.ended_at is not None:
            return "gone"
        if self.shelf.offer.notice_s > 0 and now >= self.noticed_at:
            return "stopping"
        return "running" if self.is_up else "starting"

    def times(self) -> Iterator[Instant]:
        """Yield the moments at which something happens to it by itself."""
        if self.ended_at is None:
            yield self.ends_at
            if not self.is_up:
                yield self.boots_at
            if self.boot is not None:
                yield self.boot.next_at()
            if self.shelf.offer.notice_s > 0:
                yield self.noticed_at

    def bill(self, now: Instant) -> MicroUsd:
        """Return what it has cost: whole billing steps, the least at least, rounded up."""
        offer, until = self.shelf.offer, now if self.ended_at is None else self.ended_at
        used_s = max(0.0, until - self.launched_at)
        if offer.billing_step_s > 0:
            used_s = math.ceil(used_s / offer.billing_step_s) * offer.billing_step_s
        hourly = self.price_usd_h + offer.extras_usd_h
        billed = Fraction(max(used_s, offer.billing_least_s)) * hourly / 3600
        return MicroUsd(math.ceil(billed))

    def tenure(self, now: Instant) -> Tenure | None:
        """Return what it knows of its lease when it boots now."""
        lease = self.request.lease
        return None if lease is None else begun(lease.number, lease.away_until - now, now)

    def schedule(self, stop_at: Instant | None) -> None:
        """Let the cloud end it at a time; None: never."""
        self.stop_at = math.inf if stop_at is None else stop_at
        self.is_scheduled = stop_at is not None

    def unschedule(self) -> None:
        """Remove the schedule that is left of it."""
        self.is_scheduled = False

    def end(self, at: Instant) -> None:
        """End it with all that runs on it; one that has ended is left alone."""
        if self.ended_at is not None:
            return
        self.ended_at = at
        self.is_scheduled = self.is_scheduled and at < self.stop_at  # gone once it has worked
        self.machine.kill_agent()
        for folder in self.machine.disk.folders.values():
            if folder.process is not None:
                folder.process = folder.process.killed(at)

    def is_shown(self, now: Instant) -> bool:
        """Say whether the cloud lists it."""
        return self.ended_at is None or now - self.ended_at <= SHOWN_S


def door_of(machine: str) -> str:
    """Return who a machine is to the mailbox's store: a role and the machine."""
    return f"ROLE:{machine}"
