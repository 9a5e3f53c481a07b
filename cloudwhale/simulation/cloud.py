"""A cloud without machines: offers that can run dry, machines that boot, end and are billed."""

import math
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeVar

from cloudwhale.agent.seen import Tenure
from cloudwhale.agent.tenure import begun
from cloudwhale.mailbox.box import folder_of
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.simulation.booting import Booting, BootPlan
from cloudwhale.simulation.machines import Habits, Programs, SimulatedMachine
from cloudwhale.spi.errors import Denied, NoCapacity, PriceMoved
from cloudwhale.spi.provider import Amends, Check, LaunchRequest, Leftover, Machine, Stop

T = TypeVar("T")

SHOWN_S: Seconds = 3600.0  # a cloud lists a machine for about an hour after its end


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


WATCHDOG_S: Seconds = 60.0  # from the end of a lease to that of a machine whose agent is dead
SLOW = 10.0  # how many times slower a slow boot is


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


class SimulatedCloud:
    """The provider of simulated machines that are rented; passes the provider contract.

    A machine keeps the price that it was launched at; a price that moves is that of new ones. Its
    fate is drawn from the seed and the request, so it does not depend on what else was launched.
    """

    makes: type[SimulatedMachine] = SimulatedMachine
    """What its machines are: others where more goes wrong with them."""

    def __init__(
        self,
        shelves: Sequence[Shelf],
        objects: Objects,
        programs: Programs,
        now: Callable[[], Instant],
        seed: int = 0,
    ) -> None:
        self._shelves = {shelf.offer.id: shelf for shelf in shelves}
        self._objects = objects
        self._programs = programs
        self._now = now
        self._seed = seed
        self.habits = Habits()
        """How the machines behave that are launched from now on."""
        self.hired: dict[str, Hired] = {}
        """Every machine that there ever was, by the id of its request."""
        self._listed: dict[str, Hired] = {}
        """Those that run or have ended not long ago, by their own id, oldest first."""
        self.foreign: dict[str, Leftover] = {}
        """What others have in the same account, by id."""

    def ask(self, verb: str, do: Callable[[], T]) -> T:
        """Do one call of the cloud's own; where tests let it fail, before or after it is done."""
        return do()

    # -- as a provider -----------------------------------------------------------------------

    @property
    def stops(self) -> frozenset[Stop]:
        """It ends machines by itself, as it was asked to, and they do."""
        return frozenset({"cloud", "self"})

    def offers(self, now: Instant) -> Sequence[Offer]:
        """Return all shelves at today's prices; one that has run dry is not told from others."""
        return [
            shelf.offer.but(price_usd_h=shelf.price_at(now)) for shelf in self._shelves.values()
        ]

    def launch(self, request: LaunchRequest) -> Machine:
        """Start a machine; raise NoCapacity when none is left, PriceMoved when it costs more."""
        known = self.ask("create", lambda: self._created(request))
        if request.stop_at is not None and not known.is_scheduled and known.ended_at is None:
            self.ask("schedule", lambda: _schedule(known, request.stop_at))
        self.step(self._now())
        return known.seen(self._now())

    def _created(self, request: LaunchRequest) -> Hired:
        known = self.hired.get(request.request_id)
        if known is None:
            known = self._hired(request, self._now())
            self.hired[request.request_id] = self._listed[known.id] = known
        return known

    def machines(self) -> Sequence[Machine]:
        """Return the machines that run or have ended in the last hour, newest first."""
        return self.ask("list", self._machines)

    def _machines(self) -> Sequence[Machine]:
        now = self._now()
        self._listed = {name: one for name, one in self._listed.items() if _is_shown(one, now)}
        return [one.seen(now) for one in reversed(self._listed.values())]

    def extend(self, machine: str, stop_at: Instant) -> Instant | Literal["fixed"]:
        """Move the cloud's own stop; that of a machine that is gone, or so offered, is fixed."""
        found = self._listed.get(machine)
        if found is None or found.ended_at is not None or not found.shelf.offer.stop_moves:
            return "fixed"
        self.ask("move", lambda: _schedule(found, stop_at))
        return stop_at

    def terminate(self, machine: str) -> None:
        """End a machine at once, and its bill with it; of one that is gone, end its schedule."""
        found = next((one for one in self.hired.values() if one.id == machine), None)
        if found is None:
            return
        if found.ended_at is None:
            self.ask("terminate", lambda: _end(found, self._now()))
        elif found.is_scheduled:
            self.ask("delete", lambda: _unschedule(found))

    def leftovers(self, live: Collection[str]) -> Sequence[Leftover]:
        """Return machines and schedules that nobody knows of, and what others have here."""
        return self.ask("sweep", lambda: [*self.unknown(live), *self.foreign.values()])

    def unknown(self, live: Collection[str]) -> Iterator[Leftover]:
        """Yield what is there of ours and belongs to no live machine; asks for nothing."""
        for one in self.hired.values():
            node, since, region = one.machine.node, one.launched_at, one.shelf.offer.region
            if node in live:
                continue
            if one.ended_at is None:
                yield Leftover(
                    id=one.id, what="instance", node=node, since=since, region=region,
                    usd_h=one.price_usd_h,
                )  # fmt: skip
            elif one.is_scheduled:
                yield Leftover(
                    id=f"stop-{one.id}", what="schedule", node=node, since=since, region=region,
                    usd_h=MicroUsd(0),
                )  # fmt: skip

    def remove(self, leftover: Leftover) -> None:
        """End a machine or a schedule that nobody knows of."""
        if not leftover.is_ours:
            raise Denied(f"{leftover.id} is of another installation")
        self.terminate(leftover.id.removeprefix("stop-"))

    def check(self) -> Sequence[Check]:
        """Say how many offers there are."""
        return [Check(name="cloud", state="ok", says=f"simulated, {len(self._shelves)} offers")]

    def amends(self, whose: Callable[[], str], allow: str = "") -> Amends:
        """Return nothing: it has no account."""
        return Amends()

    # -- in simulated time -------------------------------------------------------------------

    def step(self, now: Instant) -> None:
        """Do all that is due: boots, preemptions, stops, and what the agents do."""
        for one in self._living():
            if one.ends_at <= now:
                _end(one, one.ends_at)
            if one.ended_at is None and not one.is_up and one.boots_at <= now:
                one.is_up = True
                one.machine.disk.tenure = _tenure(one, now)
                one.machine.start_agent(now)
            if one.ended_at is None:
                one.machine.step(now)
            if one.ended_at is None and one.boot is not None:
                one.boot.step(now)
            if one.machine.has_ended:
                _end(one, now)

    def next_at(self, now: Instant) -> Instant:
        """Return when something becomes due here by itself; infinity when nothing will."""
        found = math.inf
        for one in self._living():
            found = min(found, one.machine.next_at(now), *(at for at in one.times() if at > now))
        for shelf in self._shelves.values():
            found = min(found, *(at for at, _ in shelf.prices if at > now), math.inf)
        return found

    @property
    def machines_ever(self) -> Sequence[SimulatedMachine]:
        """Return every machine that there ever was, in the order of their launches."""
        return [one.machine for one in self.hired.values()]

    @property
    def running(self) -> int:
        """Return how many machines have not ended."""
        return len(self._living())

    def states(self, now: Instant) -> tuple[tuple[str, str], ...]:
        """Return how every machine that is listed is; changes when a look would see a change."""
        return tuple((one.id, one.state(now)) for one in self._listed.values())

    def prices(self, now: Instant) -> tuple[MicroUsd | None, ...]:
        """Return the price of every shelf."""
        return tuple(shelf.price_at(now) for shelf in self._shelves.values())

    def _living(self) -> list[Hired]:
        return [one for one in self._listed.values() if one.ended_at is None]

    def bill(self) -> MicroUsd:
        """Return what all machines have cost until now, by the cloud's own arithmetic."""
        now = self._now()
        return MicroUsd(sum(one.bill(now) for one in self.hired.values()))

    # -- what is drawn -----------------------------------------------------------------------

    def _hired(self, request: LaunchRequest, now: Instant) -> Hired:
        shelf, price = self._had(request, now)
        name = f"m-{len(self.hired) + 1}"
        door = door_of(name)
        drawn = random.Random(f"{request.request_id}-{self._seed}")
        slow = SLOW if drawn.random() < shelf.slow_boots else 1.0
        is_up_at = now + shelf.offer.boot_s * slow
        boot = None
        if shelf.boot is not None:
            boot = Booting(shelf.boot, self._objects, folder_of(request.node, door), now, slow)
            is_up_at = boot.joins_at
        if drawn.random() < shelf.failed_boots:
            is_up_at = math.inf
        hazard = shelf.hazard_per_h if shelf.hazard_per_h is not None else shelf.offer.hazard_per_h
        lives_s = drawn.expovariate(hazard) * 3600.0 if hazard else math.inf
        habits = replace(self.habits, door=door)
        facts = shelf.offer.facts
        machine = self.makes(request.node, facts, self._objects, self._programs, habits)
        return Hired(
            id=name, request=request, shelf=shelf, machine=machine,
            price_usd_h=price, launched_at=now, boots_at=is_up_at, taken_at=now + lives_s,
            stop_at=math.inf, boot=boot,
        )  # fmt: skip

    def _had(self, request: LaunchRequest, now: Instant) -> tuple[Shelf, MicroUsd]:
        """Return the shelf and the price of a request; raise TryAnother when it cannot be had."""
        asked = request.offer
        shelf = None if asked is None else self._shelves.get(asked.id)
        if asked is None or shelf is None:
            raise NoCapacity("nothing of that kind is offered", "Ask for an offer of this cloud.")
        price = shelf.price_at(now)
        if price is None or (asked.price_usd_h is not None and price > asked.price_usd_h):
            raise PriceMoved(f"{asked.id} costs more than it was offered for")
        is_dry = any(begins <= now < ends for begins, ends in shelf.droughts)
        taken = sum(one.shelf.offer.id == asked.id for one in self._living())
        if is_dry or (shelf.capacity is not None and taken >= shelf.capacity):
            raise NoCapacity(f"there is no {asked.id} left now")
        return shelf, price


def door_of(machine: str) -> str:
    """Return who a machine is to the mailbox's store: a role and the machine."""
    return f"ROLE:{machine}"


def _schedule(one: Hired, stop_at: Instant | None) -> None:
    one.stop_at = math.inf if stop_at is None else stop_at
    one.is_scheduled = stop_at is not None


def _unschedule(one: Hired) -> None:
    one.is_scheduled = False


def _tenure(one: Hired, now: Instant) -> Tenure | None:
    """Return what a machine knows of its lease when it has booted."""
    lease = one.request.lease
    return None if lease is None else begun(lease.number, lease.away_until - now, now)


def _end(one: Hired, at: Instant) -> None:
    """End a machine with all that runs on it; one that has ended is left alone."""
    if one.ended_at is not None:
        return
    one.ended_at = at
    one.is_scheduled = one.is_scheduled and at < one.stop_at  # it is gone once it has done its work
    one.machine.kill_agent()
    for folder in one.machine.disk.folders.values():
        if folder.process is not None:
            folder.process = folder.process.killed(at)


def _is_shown(one: Hired, now: Instant) -> bool:
    return one.ended_at is None or now - one.ended_at <= SHOWN_S
