"""The agent's eyes: a thread that looks at GPUs, processes and the machine, and tells duty."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from cloudwhale.agent.belonging import Belonging, Root
from cloudwhale.agent.containers.reach import Reach
from cloudwhale.agent.gpu_sight import GpuSight
from cloudwhale.agent.seen import Key, Seen, Used, Using
from cloudwhale.agent.underway import Attempts, Underway
from cloudwhale.agent.usage import HostUsage, JobUsage
from cloudwhale.clock import pause
from cloudwhale.host.gpus import GpuUse
from cloudwhale.model.job import Peaks
from cloudwhale.model.node import DeviceUse, Facts, Measured
from cloudwhale.model.units import GiB, Instant, Seconds

LOOK_EVERY_S: Seconds = 1.0  # what outgrows its memory is stopped within a second
HANGS_AFTER_S: Seconds = 30.0  # a driver that resets a GPU may take ten
IDLE_EVERY_S: Seconds = 10.0  # with each heartbeat, where nothing runs that could outgrow anything


class Eyes:
    """Looks every second while jobs run, else with each heartbeat; a hung driver hangs it alone."""

    def __init__(
        self, attempts: Attempts, now: Callable[[], Instant], tell: Callable[[Seen], None]
    ) -> None:
        self._attempts = attempts
        self._now = now
        self._tell = tell
        self._gpus = GpuSight(tell)
        self._belonging = Belonging()
        self._host = HostUsage()
        self._jobs = JobUsage()
        self._reach = Reach()
        self._roots: dict[Key, Root] = {}
        self._looked_at: Instant = 0.0
        self._hung_said = False
        self._busy_since: Instant | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="eyes", daemon=True)

    def start(self, facts: Facts) -> None:
        """Begin; `facts`: what the controller was told of this machine."""
        self._gpus.begin(facts)
        self._looked_at = self._now()  # the first look is dear, and a first job may be starting
        self._thread.start()

    def close(self) -> None:
        """End; a look that hangs is not waited for."""
        self._ended.set()

    def hangs(self, now: Instant) -> bool:
        """Say, once, that a look does not come to its end: nothing is guarded meanwhile."""
        since = self._busy_since
        if since is None or now - since < HANGS_AFTER_S or self._hung_said:
            return False
        self._hung_said = True
        return True

    def _live(self) -> None:
        while not pause(LOOK_EVERY_S, self._ended):
            running = [one for one in list(self._attempts.here.values()) if one.began]
            running = [one for one in running if not one.over]
            now = self._now()
            if running or now - self._looked_at >= IDLE_EVERY_S:
                self._looked_at = self._busy_since = now
                self._look(running, now)
                self._busy_since, self._hung_said = None, False

    def _look(self, running: list[Underway], now: Instant) -> None:
        roots = [root for one in running if (root := self._root(one)) is not None]
        self._roots = {root.key: root for root in roots}
        members = self._belonging.look(roots)
        uses = self._gpus.look(now)
        held = {device: self._held(use) for device, use in uses.items()}
        devices = {device: self._device_use(use, held[device]) for device, use in uses.items()}
        load = self._host.look(now)
        measured = Measured(
            devices=devices, cpu=load.cpu, memory_gib=load.memory_gib,
            disk_io_mb_s=load.disk_io_mb_s, network_mb_s=load.network_mb_s,
        )  # fmt: skip
        shut = self._reach.look([self._roots[key] for key in _on_gpus(running, self._roots)], now)
        by: dict[Key, Using] = {}
        for key, peaks in self._jobs.look(members, now).items():
            gpu_gib = {device: ours[key] for device, ours in held.items() if key in ours}
            # What a blind driver said before judges nobody.
            using = Using(peaks) if self._gpus.is_blind else _using(peaks, gpu_gib, devices)
            by[key] = replace(using, shut=shut.get(key, ()))
        self._tell(Used(measured, by))

    def _held(self, use: GpuUse) -> dict[Key, GiB]:
        """Return what each attempt holds of a GPU, all its processes together."""
        ours: dict[Key, GiB] = {}
        for pid, gib in use.processes.items():
            key = self._belonging.owner(pid)
            if key is not None:
                ours[key] = ours.get(key, 0.0) + gib
        return ours

    def _device_use(self, use: GpuUse, ours: Mapping[Key, GiB]) -> DeviceUse:
        """Say who uses a GPU; what a job of ours uses unseen must not count as somebody else's."""
        foreign_gib = max(0.0, use.used_gib - sum(ours.values()))
        if any(self._belonging.owner(pid) is not None for pid in use.unmeasured):
            foreign_gib = 0.0
        return DeviceUse(
            used_gib=round(use.used_gib, 2),
            foreign_gib=round(foreign_gib, 2),
            sm=use.sm,
            jobs={job: round(gib, 2) for (job, _), gib in ours.items()},
        )

    def _root(self, one: Underway) -> Root | None:
        """Return where an attempt's processes begin; None before its shim has said so."""
        known = self._roots.get(one.folder.key)
        if known is not None and (known.container or one.order.image is None):
            return known
        pids = one.folder.pids()
        if pids is None:
            return None
        container = "" if one.order.image is None else container_of(one.folder.path)
        return Root(one.folder.key, one.folder.path, pids.shim, pids.job, container)


def container_of(folder: Path) -> str:
    """Return the id of an attempt's container; empty when it has none, or none yet."""
    try:
        found = json.loads((folder / "container.json").read_bytes())
        return str(found["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _on_gpus(running: Iterable[Underway], roots: Mapping[Key, Root]) -> Iterator[Key]:
    """Return the attempts in containers with GPUs, stand-ins left out."""
    for one in running:
        root = roots.get(one.folder.key)
        if root is not None and root.container and not all(d.declared for d in one.order.devices):
            yield root.key


def _using(peaks: Peaks, held: Mapping[str, GiB], devices: Mapping[str, DeviceUse]) -> Using:
    """Say what an attempt uses; a device's compute counts where it has the device to itself."""
    alone = [devices[one].sm for one in held if len(devices[one].jobs) == 1]
    sm = max((share for share in alone if share is not None), default=None)
    gpu_gib = max(held.values(), default=None)
    return Using(peaks.but(gpu_gib=gpu_gib and round(gpu_gib, 3), sm=sm), held)
