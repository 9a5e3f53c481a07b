"""Bells on simpy: who sleeps until somebody rings, or until the time that it has asked for."""

import math
from collections.abc import Generator
from functools import partial
from typing import Any, TypeAlias

import simpy

from cloudwhale.model.units import Instant

Life: TypeAlias = Generator[simpy.Event, object, None]
"""A simpy process: what it yields is what it waits for."""


class Bell:
    """Wakes one process; a ring while that one is awake is kept for when it sleeps."""

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self._sleeps: simpy.Event | None = None
        self._rang = False
        self._wanted = math.inf
        self._alarms: set[Instant] = set()
        """Times at which something is scheduled for us already."""

    def ring(self) -> None:
        """Wake the process now, after all that is due at this time already."""
        if self._sleeps is None:
            self._rang = True
            return
        sleeps, self._sleeps, self._wanted = self._sleeps, None, math.inf
        sleeps.succeed()

    def silence(self) -> None:
        """Forget a ring that came while the process was awake and has done what it was for."""
        self._rang = False

    def until(self, at: Instant) -> simpy.Event:
        """Return what the process must wait for: a ring, or a time; infinity: a ring alone."""
        event = self._sleeps = self._env.event()
        if self._rang or at <= self._env.now:
            self._rang = False
            self.ring()
            return event
        self._wanted = at
        self._schedule(at)
        return event

    def _schedule(self, at: Instant) -> None:
        if math.isinf(at) or at in self._alarms:
            return
        self._alarms.add(at)
        alarm = self._env.timeout(at - self._env.now)
        fired = partial(self._fired, at)
        # simpy's own types leave open what a callback is given.
        alarm.callbacks.append(fired)  # pyright: ignore[reportUnknownMemberType]

    def _fired(self, at: Instant, _: Any) -> None:
        self._alarms.discard(at)
        if self._sleeps is None:
            return
        if self._wanted <= self._env.now:
            self.ring()
        elif self._wanted == at:
            self._schedule(at)  # a sum of floats fell short by a little
