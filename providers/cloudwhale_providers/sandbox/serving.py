"""Is the cloud: its API, its weather, its machines and its meter, until nobody needs it."""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.sandbox import Machines as Wish
from cloudwhale_providers.sandbox import boots, containers, orphans, record
from cloudwhale_providers.sandbox.box import gcp_reached, reached
from cloudwhale_providers.sandbox.choosing import Choice, chosen
from cloudwhale_providers.sandbox.endpoint import Instance
from cloudwhale_providers.sandbox.hypervisor import House, Hypervisor, Machines
from cloudwhale_providers.sandbox.metadata import MetadataService
from cloudwhale_providers.sandbox.meter import Meter
from cloudwhale_providers.sandbox.names import AWS, GCP, GCP_STORE
from cloudwhale_providers.sandbox.opening import Ground, opened
from cloudwhale_providers.sandbox.pace import PacedClock, pace_from
from cloudwhale_providers.sandbox.weather import Script, read

IDLE_S: Seconds = 120.0
"""Of real time, without a question and without a machine: nobody is inside any more."""
TURN_S: Seconds = 0.5  # of real time: children, idleness
METER_EVERY_S: Seconds = 2.0  # of real time
NO_CONTAINERS = "machines of the sandbox have no containers here: that needs root and Docker"


def serve(
    folder: Path, script: Path | None, clock: Clock, machines: Wish, idle_s: Seconds = IDLE_S
) -> int:
    """Be the sandbox of a folder until it is idle or told to end; 0 at once when there is one.

    Raise SpecError for a script that is wrong, Denied without moto or where machines are to boot
    and cannot, OSError.
    """
    told = Script() if script is None else read(script)
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "CLOUDSDK_"))]:
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

        def is_making(says: str) -> None:
            record.keep_progress(folder, says)

        choice = chosen(machines, folder, told.speed, is_making)
        record.keep_progress(folder, "")
        Serving(folder, told, (clock, choice), stack).to_the_end(idle_s)
    return 0


class Serving:
    """One life of a sandbox."""

    def __init__(
        self, folder: Path, script: Script, ways: tuple[Clock, Choice], stack: ExitStack
    ) -> None:
        clock, choice = ways
        self._folder, self._script, self._outside = folder, script, clock
        last = record.last_of(folder)
        pace = pace_from(clock.now(), script.speed, last.at, script.begins)
        self._clock = PacedClock(clock, pace)
        self._ending = threading.Event()
        self._heard: deque[tuple[str, Instance]] = deque()
        self._opened = opened(Ground(folder, script, self._clock, clock, last.ports, stack))
        self._clouds = self._opened.clouds
        self._clouds.hear(self._has_started, self._is_to_go, self._has_ended)
        self._soft_offs: list[tuple[Instant, str]] = []
        """When which machines are told to shut down, before they are taken."""
        metadata = MetadataService(self._clock.now, self._clock.real)
        stack.callback(metadata.close)
        self._urls = {name: one.url for name, one in self._clouds.listening.items()}
        self._hypervisor, notes = self._machines(choice, metadata, pace.words)
        self._hypervisor.tidy()
        self._meter = Meter(folder)
        self._metered_at: Seconds = 0.0
        self._runs = False
        """Whether there is a machine that has not ended."""
        self._record = record.Record(
            pid=orphans.own_pid(), url=self._urls[script.clouds[0]], clock=pace.words,
            speed=pace.speed, script=script.file, digest=script.digest, owned=script.owned,
            notes=notes, boots=choice.image is not None, urls=self._urls,
        )  # fmt: skip
        stack.callback(self._close)

    def _machines(
        self, choice: Choice, metadata: MetadataService, clock: str
    ) -> tuple[Machines, tuple[str, ...]]:
        """Return who runs the machines, and what is to be said of them."""
        notes = (choice.note,) if choice.note else ()
        if choice.image is None:
            self._told = machines_reached(self._urls, clock)
            has_containers = containers.can_have_containers()
            if not has_containers:
                notes = (*notes, NO_CONTAINERS)
            return Hypervisor(self._house(has_containers), metadata), notes
        inside = {name: boots.from_inside(url) for name, url in self._urls.items()}
        told = machines_reached(inside, clock)
        self._told = {name: boots.environment(one) for name, one in told.items()}
        machines = boots.Boots(self._house(True), metadata, choice.image)
        for one in self._clouds.listening.values():
            one.listen_also(machines.network.listening(port_of(one.url)))
        return machines, notes

    def _house(self, has_containers: bool) -> House:
        return House(
            self._folder, next(iter(self._told.values())), has_containers, self._clock.now,
            weather=self._script.weather,
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
            self._clouds.stirred.wait(self._wait_s())
            self._clouds.stirred.clear()
            self._turn()
            now = self._outside.steady()
            if self._clouds.asked_lately() or self._runs:
                used_at = now
            if now - used_at >= idle_s:
                print("nobody is inside: the sandbox ends", file=sys.stderr, flush=True)
                return

    def _turn(self) -> None:
        self._clouds.step(self._clock.now())
        changed = self._obey()
        self._let_shut_down()
        for machine in self._hypervisor.exited():
            print(f"{machine} shuts down: {self._hypervisor.last_words(machine)}", file=sys.stderr)
            self._clouds.end(machine)  # it has shut down: `on_ended` ends what is left of it
        orphans.collect(self._hypervisor.agents)
        if changed or self._outside.steady() - self._metered_at >= METER_EVERY_S:
            self._count()

    def _obey(self) -> bool:
        """Start and end the machines that were told of, in their order; say whether any were."""
        changed = bool(self._heard)
        while self._heard:
            what, instance = self._heard.popleft()
            if what == "started" and not instance.hangs:
                self._start(instance)
            elif what == "ended":
                left = self._hypervisor.end([instance.id])
                if left:
                    print(f"{instance.id}: processes {left} cannot be ended", file=sys.stderr)
        return changed

    def _let_shut_down(self) -> None:
        """Tell machines whose time has come to shut down, as ACPI does: they may take a while."""
        now = self._clock.now()
        for machine in [machine for at, machine in self._soft_offs if at <= now]:
            self._hypervisor.soft_off(machine)
        self._soft_offs = [(at, machine) for at, machine in self._soft_offs if at > now]

    def _start(self, instance: Instance) -> None:
        try:
            made = self._opened.guests[instance.provider](instance, self._told)
            self._hypervisor.start(made)
        except (OSError, ValueError) as error:
            print(f"{instance.id} does not boot: {error}", file=sys.stderr, flush=True)
            self._clouds.end(instance.id)

    def _count(self) -> None:
        """Bring the bill up to date; remember what time it is here."""
        self._metered_at = self._outside.steady()
        now, instances = self._clock.now(), list(self._clouds.instances())
        ran, self._runs = self._runs, any(one.ended_at is None for one in instances)
        if self._meter.read(instances, now) or ran or self._runs:
            self._meter.keep(now)
        ports = {name: port_of(url) for name, url in self._urls.items()}
        record.keep_last(self._folder, record.Last(now, ports))

    def _close(self) -> None:
        """End all machines; their bill ends too."""
        for one in list(self._clouds.instances()):
            if one.ended_at is None:
                self._clouds.end(one.id)
        self._hypervisor.close()
        self._count()

    # -- waiting -----------------------------------------------------------------------------

    def _wait_s(self) -> Seconds:
        if self._heard:
            return 0.0
        due = self._clouds.next_at()
        until = TURN_S if due is None else self._clock.real(due - self._clock.now())
        return min(TURN_S, max(0.0, until))

    def _has_started(self, instance: Instance) -> None:
        self._heard.append(("started", instance))
        self._clouds.stirred.set()

    def _is_to_go(self, instance: Instance) -> None:
        _say_that_it_goes(instance)
        if instance.soft_off_at is not None:
            self._soft_offs.append((instance.soft_off_at, instance.id))

    def _has_ended(self, instance: Instance) -> None:
        self._heard.append(("ended", instance))
        self._clouds.stirred.set()

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ending.set()
        self._clouds.stirred.set()

    def _ring(self, number: int, frame: FrameType | None) -> None:
        self._clouds.stirred.set()


def machines_reached(urls: Mapping[str, str], clock: str) -> Mapping[str, Mapping[str, str]]:
    """Return what machines are told, by the name of their cloud."""
    found: dict[str, Mapping[str, str]] = {}
    if AWS in urls:
        found[AWS] = reached(urls[AWS], clock)
    if GCP in urls:
        found[GCP] = gcp_reached(urls[GCP_STORE], clock)
    return found


def port_of(url: str) -> int:
    """Return the port that a URL names."""
    return int(url.rpartition(":")[2])


def _say_that_it_goes(one: Instance) -> None:
    """Log it, by the time of the box."""
    if one.noticed_at is not None:
        says = f"is told at {one.noticed_at:.3f} that it is taken back at {one.goes_at:.3f}"
    else:
        says = f"is told that it has {one.maintenance} at {one.maintained_at:.3f}"
    print(f"{one.id} {says}", file=sys.stderr, flush=True)
