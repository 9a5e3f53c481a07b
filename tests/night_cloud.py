"""The cloud of a night, its machines with all that can be wrong with them, and planted bugs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from night_boundaries import Weather
from night_machines import Eye, NightMachine

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.simulation.cloud import Hired, SimulatedCloud
from cloudwhale.spi.errors import Denied, StoreUnusable, Unreachable
from cloudwhale.spi.provider import LaunchRequest, Machine

T = TypeVar("T")


class Within(Protocol):
    """What a cloud needs to know of its night."""

    weather: Weather
    eye: Eye
    mutant: "Mutant"
    asked: Callable[[str, object], None]


class NightCloud(SimulatedCloud):
    """The cloud, with all that can be wrong with it."""

    makes = NightMachine
    weather = Weather()
    unheard: set[str]
    """Machines whose agents are not told that they go."""
    slow_to_hear: set[str]

    def prepare(self, house: Within) -> None:
        self.house = house
        self.weather = house.weather
        self.unheard, self.slow_to_hear, self._warned = set(), set(), set[str]()
        self.unlisted: set[str] = set()
        """Machines whose notice the list does not show."""

    def ask(self, verb: str, do: Callable[[], T]) -> T:
        weather = self.weather
        if weather.no_provider:
            raise Unreachable("no route to host")
        if weather.is_denied:
            raise Denied("ExpiredToken: the credentials have run out", "Renew them.")
        waiting = weather.failing.get(verb, [])
        if not waiting:
            return self.told(verb, do())
        how, left = waiting[0]
        waiting[0] = (how, left - 1)
        if left <= 1:
            waiting.pop(0)
        if how == "after":
            self.told(verb, do())
        raise Unreachable("HTTP 500" if how == "before" else "the connection was cut")

    def told(self, verb: str, found: T) -> T:
        """Hear what a call has done."""
        self.house.asked(verb, found)
        return found

    def launch(self, request: LaunchRequest) -> Machine:
        if self.weather.no_mailbox:  # the agent's archive is put there first
            raise StoreUnusable("the mailbox cannot be reached")
        return super().launch(request)

    def offers(self, now: Instant) -> Sequence[Offer]:
        if self.weather.no_provider:
            raise Unreachable("no route to host")
        return super().offers(now)

    def change(self, offer: str, now: Instant, *, times: float = 1.0, dry_s: float = 0.0) -> None:
        """Let an offer cost so many times as much from now on, or be gone for a while."""
        shelf = self._shelves[offer]
        price, cap = shelf.price_at(now), shelf.offer.cap_usd_h
        if price is not None and cap is not None:
            price = MicroUsd(max(1, min(cap, round(price * times))))
        prices = ((now, price),) if times != 1.0 else shelf.prices
        droughts = (*shelf.droughts, (now, now + dry_s)) if dry_s else shelf.droughts
        self._shelves[offer] = replace(shelf, prices=prices, droughts=droughts)

    def _hired(self, request: Any, now: Instant) -> Hired:
        made = super()._hired(request, now)
        boots = self.weather.boots
        if boots:
            how, boot_s = boots.pop(0), made.shelf.offer.boot_s
            made.boots_at = now + 6 * boot_s if how == "slow" else math.inf
        machine = made.machine
        assert isinstance(machine, NightMachine)
        machine.is_rented = True
        machine.eye = self.house.eye
        machine.duty = self.house.mutant.duty
        return made

    def step(self, now: Instant) -> None:
        for one in self._living():
            if one.id not in self._warned and one.noticed_at <= now and one.shelf.offer.notice_s:
                late_s = 0.4 * one.shelf.offer.notice_s if one.id in self.slow_to_hear else 2.0
                if now >= one.noticed_at + late_s and one.id not in self.unheard:
                    self._warned.add(one.id)
                    assert isinstance(one.machine, NightMachine)
                    one.machine.warn(one.taken_at, now)
        super().step(now)

    def next_at(self, now: Instant) -> Instant:
        found = super().next_at(now)
        for one in self._living():
            if one.id not in self._warned and one.shelf.offer.notice_s:
                late_s = 0.4 * one.shelf.offer.notice_s if one.id in self.slow_to_hear else 2.0
                at = one.noticed_at + late_s
                if at > now:
                    found = min(found, at)
        return found

    def take(self, one: Hired, now: Instant, word: str) -> None:
        """Begin to take a machine away."""
        one.taken_at = min(one.taken_at, now + one.shelf.offer.notice_s)
        if word == "unheard":
            self.unheard.add(one.id)
        elif word == "late":
            self.slow_to_hear.add(one.id)

    @property
    def living(self) -> list[Hired]:
        return self._living()


@dataclass(frozen=True)
class Mutant:
    """A bug that was planted; nothing here: the house as it is."""

    name: str = ""
    duty: Any = NightMachine.duty
    cloud: type[NightCloud] = NightCloud
    machine: type[NightMachine] = NightMachine
    controller: Callable[[Any], None] = lambda controller: None
    """Bends a controller that was just raised."""
