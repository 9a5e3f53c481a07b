"""Effects: what takes time is started here, and its result is picked up by a later tick."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError

THREADS = 8  # for a store, and for looks
CLOUD_THREADS = 8  # launches take up to 20 s each; eight at a time keep a burst of machines moving
FIRST_RETRY_S: Seconds = 0.5
LONGEST_RETRY_S: Seconds = 30.0


class Key(NamedTuple):
    """What an effect does to what; the same key is never under way twice."""

    verb: str
    subject: str
    attempt: int = 0
    rank: int = 0
    """Of a gang."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing to do, known by its key; doing it twice changes nothing more."""

    key: Key
    do: Callable[[], object]
    is_slow: bool = False
    """Whether it may take minutes, as a call to a cloud that hangs does: nothing else waits."""
    lane: str = ""
    """Whose answer it waits for, where that may hang: a store, a provider. Others do not wait."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an effect: a value or an error, never both."""

    key: Key
    value: object = None
    error: CloudwhaleError | None = None


class Effects(Protocol):
    """Starts effects; a key that is under way is not started again."""

    def start(self, effect: Effect, now: Instant) -> bool:
        """Start it; False when the same key is under way or waits after a failure."""
        ...

    def done(self, now: Instant) -> list[Result]:
        """Return what has ended since the last call."""
        ...

    def retry_at(self) -> Instant | None:
        """Return when the first failed effect may be tried again."""
        ...

    def forget_unwanted(self, now: Instant) -> None:
        """Forget the failures that were due again and that nobody has started again."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Return how many are `under-way`, and `failed` and are to be tried again."""
        ...

    def close(self) -> None:
        """Wait for what is under way."""
        ...


class _Retries:
    """Remembers which effects have failed and when they may be tried again."""

    def __init__(self) -> None:
        self._failed: dict[Key, tuple[int, Instant]] = {}

    def blocks(self, key: Key, now: Instant) -> bool:
        return key in self._failed and now < self._failed[key][1]

    def seen(self, result: Result, now: Instant) -> Result:
        if result.error is None:
            self._failed.pop(result.key, None)
        else:
            times = self._failed.get(result.key, (0, now))[0] + 1
            wait_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2 ** min(times - 1, 10))
            self._failed[result.key] = (times, now + wait_s)
        return result

    def next_at(self) -> Instant | None:
        return min((at for _, at in self._failed.values()), default=None)

    def __len__(self) -> int:
        return len(self._failed)

    def forget(self, now: Instant, under_way: Iterable[Key]) -> None:
        busy = set(under_way)
        self._failed = {k: v for k, v in self._failed.items() if v[1] > now or k in busy}


class ThreadedEffects:
    """Effects in threads; `ring` wakes the controller when one has ended."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._pools: dict[tuple[bool, str], ThreadPoolExecutor] = {}
        self._ended: SimpleQueue[tuple[Key, Future[object]]] = SimpleQueue()
        self._under_way: set[Key] = set()
        self._retries = _Retries()

    def start(self, effect: Effect, now: Instant) -> bool:
        """See Effects."""
        if effect.key in self._under_way or self._retries.blocks(effect.key, now):
            return False
        self._under_way.add(effect.key)
        future = self._pool(effect).submit(effect.do)
        future.add_done_callback(lambda ended: self._end(effect.key, ended))
        return True

    def _pool(self, effect: Effect) -> ThreadPoolExecutor:
        """Return the threads of a lane: what hangs there takes none of another's."""
        lane = (effect.is_slow, effect.lane)
        if lane not in self._pools:
            count, name = (CLOUD_THREADS, "cloud") if effect.is_slow else (THREADS, "effect")
            self._pools[lane] = ThreadPoolExecutor(count, thread_name_prefix=name)
        return self._pools[lane]

    def _end(self, key: Key, future: Future[object]) -> None:
        self._ended.put((key, future))
        self._ring()

    def done(self, now: Instant) -> list[Result]:
        """See Effects."""
        return [self._retries.seen(result, now) for result in self._taken()]

    def _taken(self) -> Iterator[Result]:
        while True:
            try:
                key, future = self._ended.get_nowait()
            except Empty:
                return
            self._under_way.discard(key)
            error = future.exception()
            if error is not None and not isinstance(error, CloudwhaleError):
                raise error
            yield Result(key, None if error else future.result(), error)

    def retry_at(self) -> Instant | None:
        """See Effects."""
        return self._retries.next_at()

    def forget_unwanted(self, now: Instant) -> None:
        """See Effects."""
        self._retries.forget(now, self._under_way)

    def counts(self) -> Mapping[str, int]:
        """See Effects."""
        return {"under-way": len(self._under_way), "failed": len(self._retries)}

    def close(self) -> None:
        """See Effects."""
        for pool in self._pools.values():
            pool.shutdown(wait=True)


class InlineEffects:
    """Effects done on the spot, for simulated time; results come with the next tick."""

    def __init__(self) -> None:
        self._ended: list[Result] = []
        self._retries = _Retries()

    @property
    def has_ended(self) -> bool:
        """Say whether something has ended that `done` has not returned yet."""
        return bool(self._ended)

    def start(self, effect: Effect, now: Instant) -> bool:
        """See Effects."""
        if self._retries.blocks(effect.key, now) or any(r.key == effect.key for r in self._ended):
            return False
        try:
            self._ended.append(Result(effect.key, effect.do()))
        except CloudwhaleError as error:
            self._ended.append(Result(effect.key, error=error))
        return True

    def done(self, now: Instant) -> list[Result]:
        """See Effects."""
        ended, self._ended = self._ended, []
        return [self._retries.seen(result, now) for result in ended]

    def retry_at(self) -> Instant | None:
        """See Effects."""
        return self._retries.next_at()

    def forget_unwanted(self, now: Instant) -> None:
        """See Effects."""
        self._retries.forget(now, [result.key for result in self._ended])

    def counts(self) -> Mapping[str, int]:
        """See Effects."""
        return {"under-way": 0, "failed": len(self._retries)}

    def close(self) -> None:
        """See Effects."""
