"""The clouds of a box, as whoever runs their machines sees them: one after the other, or all."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from socket import socket
from typing import Protocol, TypeVar

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.endpoint.machines import Instance

Told = Callable[[Instance], None]


class Listening(Protocol):
    """Something of a cloud that is asked over HTTP."""

    @property
    def url(self) -> str:
        """Return where it listens."""
        ...

    def start(self) -> str:
        """Listen and return the URL; raise OSError when its port is taken."""
        ...

    def listen_also(self, listening: socket) -> None:
        """Answer on another socket too, until this closes it."""
        ...

    def close(self) -> None:
        """Listen no more; before it has started, too."""
        ...

    def asked_lately(self) -> bool:
        """Say whether anybody has asked for anything since this was asked last."""
        ...


class Cloud(Listening, Protocol):
    """An API that rents machines; one thread steps it."""

    on_started: Told
    """Called by `step` with an instance that runs now."""
    on_noticed: Told
    """Called by `step` with an instance that is told now that it goes."""
    on_ended: Told
    """Called by `step` with an instance whose end has begun."""
    stirred: threading.Event
    """Set when `step` may have something to do; whoever steps clears it."""

    def step(self, now: Instant) -> None:
        """Let all happen that is due, and tell of it."""
        ...

    def next_at(self) -> Instant | None:
        """Return when `step` has something to do next, by itself; None: not as far as is known."""
        ...

    def instances(self) -> Sequence[Instance]:
        """Return all instances that are listed, oldest first."""
        ...

    def end(self, name: str) -> None:
        """End an instance that has shut down by itself; none is fine."""
        ...


L = TypeVar("L", bound=Listening)


def begun(make: Callable[[int], L], port: int, stack: ExitStack) -> L:
    """Start what listens where the last one did, if nobody does now; the stack closes it.

    Raise OSError where it can listen nowhere.
    """
    for at in (port, 0):
        one = make(at)
        try:
            one.start()
        except OSError:
            one.close()
            if at == 0:
                raise
        else:
            stack.callback(one.close)
            return one
    raise AssertionError("two ports were tried")


class Clouds:
    """All of a box, and their stores; one thread uses them."""

    def __init__(self, clouds: Mapping[str, Cloud], stores: Mapping[str, Listening]) -> None:
        self._clouds, self._stores = dict(clouds), dict(stores)
        self.stirred = threading.Event()
        """Set when `step` may have something to do for any of them."""
        for cloud in self._clouds.values():
            cloud.stirred = self.stirred
        self.stirred.set()  # for what has happened before

    @property
    def listening(self) -> Mapping[str, Listening]:
        """Return all that listens: clouds and stores, by name."""
        return {**self._clouds, **self._stores}

    def hear(self, started: Told, noticed: Told, ended: Told) -> None:
        """Tell of machines that run, that are told that they go, and whose end has begun."""
        for cloud in self._clouds.values():
            cloud.on_started, cloud.on_noticed, cloud.on_ended = started, noticed, ended

    def asked_lately(self) -> bool:
        """Say whether anybody has asked any of them since this was asked last."""
        return any([one.asked_lately() for one in self.listening.values()])  # each is to forget

    def step(self, now: Instant) -> None:
        """Let all happen that is due."""
        for cloud in self._clouds.values():
            cloud.step(now)

    def next_at(self) -> Instant | None:
        """Return when `step` has something to do next."""
        return min(
            (at for cloud in self._clouds.values() if (at := cloud.next_at()) is not None),
            default=None,
        )

    def instances(self) -> Iterator[Instance]:
        """Yield all instances that are listed."""
        for cloud in self._clouds.values():
            yield from cloud.instances()

    def end(self, machine: str) -> None:
        """End an instance that has shut down by itself; no two clouds call theirs alike."""
        for cloud in self._clouds.values():
            cloud.end(machine)
