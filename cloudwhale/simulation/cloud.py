"""A cloud without machines: offers that can run dry, machines that boot, end and are billed."""

import math
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from cloudwhale.mailbox.box import folder_of
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.simulation.booting import Booting
from cloudwhale.simulation.machines import Habits, Programs, SimulatedMachine
from cloudwhale.simulation.shelf import SHOWN_S as SHOWN_S
from cloudwhale.simulation.shelf import WATCHDOG_S as WATCHDOG_S
from cloudwhale.simulation.shelf import Hired as Hired
from cloudwhale.simulation.shelf import Shelf as Shelf
from cloudwhale.simulation.shelf import door_of as door_of
from cloudwhale.spi.errors import CloudwhaleError, Denied, NoCapacity, PriceMoved
from cloudwhale.spi.provider import Amends, Check, LaunchRequest, Leftover, Machine, Stop

T = TypeVar("T")

SLOW = 10.0  # how many times slower a slow boot is


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
            self.ask("schedule", lambda: known.schedule(request.stop_at))
        self.step(self._now())
        return known.seen(self._now())

    def _created(self, request: LaunchRequest) -> Hired:
        known = self.hired.get(request.request_id)
        if known is None:
            known = self._hired(request, self._now())
            self.hired[request.request_id] = self._listed[known.id] = known
        return known

    def machines(self) -> Sequence[Machine]:
        """Return the machines that run or have ended in the last hour, newest first.

        As with any cloud here, a list sets the stops that are missing: whoever launched may have
        died, or been cut off, right after.
        """
        seen = self.ask("list", self._machines)
        bare = [one for one in self._living() if not one.is_scheduled]
        for one in bare:
            self._complete(one)
        return self._machines() if bare else seen

    def _complete(self, one: Hired) -> None:
        stop_at = one.request.stop_at
        if stop_at is None:
            return
        try:
            if stop_at > self._now():
                self.ask("schedule", lambda: one.schedule(stop_at))
            else:
                self.ask("terminate", lambda: one.end(self._now()))
        except CloudwhaleError:
            return  # the next list tries again

    def _machines(self) -> Sequence[Machine]:
        now = self._now()
        self._listed = {name: one for name, one in self._listed.items() if one.is_shown(now)}
        return [one.seen(now) for one in reversed(self._listed.values())]

    def extend(self, machine: str, stop_at: Instant) -> Instant | Literal["fixed"]:
        """Move the cloud's own stop; that of a machine that is gone, or so offered, is fixed."""
        found = self._listed.get(machine)
        if found is None or found.ended_at is not None or not found.shelf.offer.stop_moves:
            return "fixed"
        self.ask("move", lambda: found.schedule(stop_at))
        return stop_at

    def terminate(self, machine: str) -> None:
        """End a machine at once, and its bill with it; of one that is gone, end its schedule."""
        found = next((one for one in self.hired.values() if one.id == machine), None)
        if found is None:
            return
        if found.ended_at is None:
            self.ask("terminate", lambda: found.end(self._now()))
        elif found.is_scheduled:
            self.ask("delete", lambda: found.unschedule())

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
                one.end(one.ends_at)
            if one.ended_at is None and not one.is_up and one.boots_at <= now:
                one.is_up = True
                one.machine.disk.tenure = one.tenure(now)
                one.machine.start_agent(now)
            if one.ended_at is None:
                one.machine.step(now)
            if one.ended_at is None and one.boot is not None:
                one.boot.step(now)
            if one.machine.has_ended:
                one.end(now)

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
