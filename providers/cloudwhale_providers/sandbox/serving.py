"""Is the cloud: its API, its weather, its machines and its meter, until nobody needs it."""

import os
import signal
import sys
import threading
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale_providers.sandbox import containers, orphans, record
from cloudwhale_providers.sandbox.box import reached
from cloudwhale_providers.sandbox.endpoint import Endpoint, Instance
from cloudwhale_providers.sandbox.guests import guest
from cloudwhale_providers.sandbox.hypervisor import House, Hypervisor
from cloudwhale_providers.sandbox.metadata import MetadataService
from cloudwhale_providers.sandbox.meter import Meter
from cloudwhale_providers.sandbox.pace import PacedClock, pace_from
from cloudwhale_providers.sandbox.weather import Script, read

IDLE_S: Seconds = 120.0
"""Of real time, without a question and without a machine: nobody is inside any more."""
TURN_S: Seconds = 0.5  # of real time: children, idleness
METER_EVERY_S: Seconds = 2.0  # of real time, while machines run
NO_CONTAINERS = "machines of the sandbox have no containers here: that needs root and Docker"


def serve(folder: Path, script: Path | None, clock: Clock, idle_s: Seconds = IDLE_S) -> int:
    """Be the sandbox of a folder until it is idle or told to end; 0 at once when there is one.

    Raise SpecError for a script that is wrong, Denied without moto, OSError.
    """
    told = Script() if script is None else read(script)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]  # the cloud's own code would look for its user's account
    folder.mkdir(parents=True, exist_ok=True)
    lock = record.Lock(folder)
    if not lock.take():
        print("another process is this sandbox already", file=sys.stderr)
        return 0
    record.forget(folder)  # of an earlier one that was killed
    with ExitStack() as stack:
        stack.callback(lock.leave)
        stack.callback(record.forget, folder)
        Serving(folder, told, clock, stack).to_the_end(idle_s)
    return 0


class Serving:
    """One life of a sandbox."""

    def __init__(self, folder: Path, script: Script, clock: Clock, stack: ExitStack) -> None:
        self._folder, self._script, self._outside = folder, script, clock
        pace = pace_from(clock.now(), script.speed, record.last_instant(folder))
        self._clock = PacedClock(clock, pace)
        self._ending = threading.Event()
        self._heard: deque[tuple[str, Instance]] = deque()
        self._endpoint = Endpoint(
            self._clock, script.weather, folder=folder / "s3", real=self._clock.real
        )
        self._endpoint.on_started = lambda one: self._hear("started", one)
        self._endpoint.on_ended = lambda one: self._hear("ended", one)
        url = self._endpoint.start()
        stack.callback(self._endpoint.close)
        metadata = MetadataService(self._clock.now)
        stack.callback(metadata.close)
        has_containers = containers.can_have_containers()
        house = House(folder, reached(url, pace.words), has_containers, self._clock.now)
        self._hypervisor = Hypervisor(house, metadata)
        self._hypervisor.tidy()
        stack.callback(self._close)
        self._meter = Meter(folder)
        self._metered_at: Seconds = 0.0
        notes = () if has_containers else (NO_CONTAINERS,)
        self._record = record.Record(
            pid=orphans.own_pid(), url=url, clock=pace.words, speed=pace.speed,
            script=script.file, digest=script.digest, owned=script.owned, notes=notes,
        )  # fmt: skip

    def to_the_end(self, idle_s: Seconds) -> None:
        """Say how it is reached, and turn until it is told to end, or idle."""
        orphans.adopt()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        signal.signal(signal.SIGCHLD, self._ring)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        record.keep(self._folder, self._record)
        print(f"the sandbox answers at {self._record.url}", file=sys.stderr, flush=True)
        used_at = self._outside.steady()
        while not self._ending.is_set():
            self._endpoint.stirred.wait(self._wait_s())
            self._endpoint.stirred.clear()
            self._turn()
            now = self._outside.steady()
            if self._endpoint.asked_lately() or len(self._hypervisor):
                used_at = now
            if now - used_at >= idle_s:
                print("nobody is inside: the sandbox ends", file=sys.stderr, flush=True)
                return

    def _turn(self) -> None:
        now = self._clock.now()
        self._endpoint.step(now)
        self._obey()
        for machine in self._hypervisor.exited():
            self._endpoint.end(machine)  # it has shut down: `on_ended` ends what is left of it
        self._obey()
        orphans.collect(self._hypervisor.agents)
        self._count(now)

    def _obey(self) -> None:
        """Start and end the machines that were told of, in the order in which they were."""
        while self._heard:
            what, instance = self._heard.popleft()
            if what == "started" and not instance.hangs:
                self._start(instance)
            elif what == "ended":
                left = self._hypervisor.end([instance.id])
                if left:
                    print(f"{instance.id}: processes {left} cannot be ended", file=sys.stderr)

    def _start(self, instance: Instance) -> None:
        try:
            self._hypervisor.start(guest(instance, self._endpoint, self._clock.now))
        except (OSError, ValueError) as error:
            print(f"{instance.id} does not boot: {error}", file=sys.stderr, flush=True)
            self._endpoint.end(instance.id)

    def _count(self, now: Instant) -> None:
        changed = self._meter.read(self._endpoint.instances(), now)
        steady = self._outside.steady()
        if changed or (len(self._hypervisor) and steady - self._metered_at >= METER_EVERY_S):
            self._metered_at = steady
            self._meter.keep(now)
            record.keep_instant(self._folder, now)

    def _close(self) -> None:
        """End all machines; their bill ends too."""
        for one in self._endpoint.instances():
            if one.ended_at is None:
                self._endpoint.end(one.id)
        self._hypervisor.close()
        now = self._clock.now()
        self._meter.read(self._endpoint.instances(), now)
        self._meter.keep(now)
        record.keep_instant(self._folder, now)

    # -- waiting -----------------------------------------------------------------------------

    def _wait_s(self) -> Seconds:
        if self._heard:
            return 0.0
        due = self._endpoint.next_at()
        until = TURN_S if due is None else self._clock.real(due - self._clock.now())
        return min(TURN_S, max(0.0, until))

    def _hear(self, what: str, instance: Instance) -> None:
        self._heard.append((what, instance))
        self._endpoint.stirred.set()

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ending.set()
        self._endpoint.stirred.set()

    def _ring(self, number: int, frame: FrameType | None) -> None:
        self._endpoint.stirred.set()
