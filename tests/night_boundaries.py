"""What stands between a controller and its world in a night, and can fail: clock, stores, calls."""

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from night_values import BEGAN_AT

from cloudwhale.control.effects import Effect, InlineEffects, Result
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.plan import Round
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World
from cloudwhale.simulation.mailbox import RingingObjects
from cloudwhale.spi.errors import StoreUnusable

T = TypeVar("T")


class Violation(Exception):
    """Something happened that must never happen."""

    def __init__(self, rule: str, says: str, at: float = 0.0) -> None:
        super().__init__(f"{rule}: {says}")
        self.rule, self.says, self.at = rule, says, at


class ControllerDied(BaseException):
    """What a kill looks like from inside: nobody catches it."""


@dataclass(slots=True)
class Fuse:
    """Blows before or after the n-th deed, or write, from when it was lit."""

    left: float = math.inf
    after: bool = False
    of_writes: bool = False

    def around(self, do: Callable[[], T], *, is_write: bool) -> T:
        if is_write is not self.of_writes or math.isinf(self.left):
            return do()
        self.left -= 1
        if self.left == 0 and not self.after:
            raise ControllerDied
        found = do()
        if self.left == 0:
            raise ControllerDied
        return found


@dataclass(slots=True)
class Weather:
    """What goes wrong now, for whoever asks."""

    failing: dict[str, list[tuple[str, float]]] = field(
        default_factory=dict[str, list[tuple[str, float]]]
    )
    """By verb: how its next calls fail, `before` or `after`, and how many do."""
    is_denied: int = 0
    no_provider: int = 0
    no_mailbox: int = 0
    mailbox_after: int = 0
    no_database: int = 0
    late_s: list[float] = field(default_factory=list[float])
    """How late answers come."""
    slow_s: list[float] = field(default_factory=list[float])
    """How long calls take before they are done."""
    boots: list[str] = field(default_factory=list[str])
    """How the next machines boot."""


class NightClock:
    """The controller's clock: somebody may set it."""

    def __init__(self, true: Callable[[], Instant]) -> None:
        self._true = true
        self.ahead_s = 0.0

    def now(self) -> Instant:
        return self._true() + self.ahead_s

    def steady(self) -> float:
        return self._true() - BEGAN_AT


class Strained(RingingObjects):
    """The mailbox as the controller reaches it."""

    def __init__(self, objects: RingingObjects, weather: Weather) -> None:
        self._real, self._weather = objects, weather

    def _asked(self, do: Callable[[], T]) -> T:
        if self._weather.no_mailbox:
            raise StoreUnusable("the mailbox cannot be reached")
        return do()

    def create(self, key: str, body: bytes) -> bool:
        done = self._asked(lambda: self._real.create(key, body))
        if self._weather.mailbox_after:
            raise StoreUnusable("the connection was cut")
        return done

    def get(self, key: str) -> bytes | None:
        return self._asked(lambda: self._real.get(key))

    def keys(self, prefix: str) -> Sequence[str]:
        return self._asked(lambda: self._real.keys(prefix))

    def folders(self, prefix: str) -> Sequence[str]:
        return self._asked(lambda: self._real.folders(prefix))

    def modified_at(self, key: str) -> Instant | None:
        return self._asked(lambda: self._real.modified_at(key))

    def size_bytes(self, key: str) -> int | None:
        return self._asked(lambda: self._real.size_bytes(key))

    def delete(self, keys: Sequence[str]) -> None:
        self._asked(lambda: self._real.delete(keys))

    def put_file(self, key: str, path: Path) -> str:
        raise StoreUnusable("nothing here has files")


class NightStore(MemoryStore):
    """The database: it fails when it is told to, and who watches sees every write."""

    def __init__(self, weather: Weather) -> None:
        super().__init__()
        self._weather = weather
        self.fuse = Fuse()
        self.wrote: Callable[[list[e.Event]], None] = lambda events: None
        self._again = MemoryStore()
        """The same events, folded once more as far as somebody has asked."""

    def append(self, events: Iterable[e.Event], *, epoch: int | None = None) -> int:
        new = list(events)
        self._refuse(epoch)
        if epoch is None:
            return self._append(new, epoch)
        return self.fuse.around(lambda: self._append(new, epoch), is_write=True)

    def _append(self, new: list[e.Event], epoch: int | None) -> int:
        version = super().append(new, epoch=epoch)
        self.wrote(new)
        return version

    def record(
        self, round: Round, events: Iterable[e.Event], *, epoch: int, offers: str = ""
    ) -> int:
        self._refuse(epoch)
        return super().record(round, events, epoch=epoch, offers=offers)

    def world_at(self, version: int, now: Instant) -> World:
        if self._again.version() > version:
            self._again = MemoryStore()
        before = self._again.version()
        self._again.append(told.event for told in self.since(before, version - before))
        return self._again.world(now)

    def _refuse(self, epoch: int | None) -> None:
        if self._weather.no_database and epoch is not None:
            raise StoreUnusable("the database takes no writes now", "It is tried again.")


class Around(Protocol):
    """What effects need to know of the night."""

    true: Instant
    weather: Weather
    fuse: Fuse


class NightEffects(InlineEffects):
    """Effects that take their time, and around which the controller may die."""

    def __init__(self, house: Around) -> None:
        super().__init__()
        self._house = house
        self._coming: list[tuple[Instant, int, Effect | Result]] = []
        self._count = 0

    def start(self, effect: Effect, now: Instant) -> bool:
        weather, true = self._house.weather, self._house.true
        if self._is_under_way(effect):
            return False
        if not effect.is_slow or not (weather.slow_s or weather.late_s):
            return super().start(self._mortal(effect), now)
        if self._retries.blocks(effect.key, now):
            return False
        if weather.slow_s:
            self._put(true + weather.slow_s[-1], effect)
            return True
        if not super().start(self._mortal(effect), now):
            return False
        self._put(true + weather.late_s[-1], self._ended.pop())
        return True

    def _is_under_way(self, effect: Effect) -> bool:
        return any(one.key == effect.key for _, _, one in self._coming)

    def _mortal(self, effect: Effect) -> Effect:
        house = self._house

        def do() -> object:
            return house.fuse.around(effect.do, is_write=False)

        return replace(effect, do=do)

    def _put(self, at: Instant, one: Effect | Result) -> None:
        self._count += 1
        heapq.heappush(self._coming, (at, self._count, one))

    @property
    def comes_at(self) -> Instant:
        """Return when the next answer comes."""
        return self._coming[0][0] if self._coming else math.inf

    def come(self, true: Instant, now: Instant) -> bool:
        """Take in the answers that have come; say whether there are any."""
        came = False
        while self._coming and self._coming[0][0] <= true:
            _, _, one = heapq.heappop(self._coming)
            if isinstance(one, Effect):
                super().start(self._mortal(one), now)
            else:
                self._ended.append(one)
            came = True
        return came
