"""One job under its shim: from its description to its exit record."""

from __future__ import annotations

import os
import select
import time

from cloudwhale.agent import shim_causes as causes
from cloudwhale.agent import shim_files as files
from cloudwhale.agent import shim_processes as processes
from cloudwhale.agent.shim_json import encoded
from cloudwhale.agent.shim_lease import Lease
from cloudwhale.agent.shim_limits import WATCH_EVERY_S, Limits
from cloudwhale.agent.shim_log import Masks, Segments
from cloudwhale.agent.shim_oom import SAYS as STARVED
from cloudwhale.agent.shim_oom import KernelKills, counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cloudwhale.agent.shim_json import Plain

REAP_EVERY_S = 5.0  # orphans of a job are reaped so often; they cost a table entry until then
LEFTOVER_S = 1.0  # what outlives the job's process is asked to end, and killed after this
HARD_EVERY_S = 0.05


class ShimJob:
    """A job that runs; not used twice."""

    def __init__(self, folder: str, wanted: Mapping[str, Any]) -> None:
        self._folder = folder
        self._wanted = wanted
        name = f"cloudwhale-{wanted['job']}-{wanted['attempt']}-{os.getpid()}"
        self._limits = Limits(wanted["limits"], name)
        self._masks = Masks([os.fsencode(secret) for secret in wanted["secrets"]])
        sizes = wanted["log"]
        self._log = Segments(f"{folder}/log", sizes["segment"], sizes["head"], sizes["tail"])
        self._lease = Lease(folder, wanted.get("lease"))
        self._control = files.control_pipe(folder)
        self._output, self._job_output = os.pipe()
        self._poll = select.poll()
        self._main = 0
        self._code: int | None = None
        self._stop_at: float | None = None
        """When what is left is killed, once a stop was asked for."""
        self._stopping = False
        self._by_itself = True
        """No order of the agent came before the job's process had ended."""
        self._killed = False
        self._out_of_memory = False
        self._kernel = KernelKills(time.monotonic(), counter(self._limits.folders))
        self._began_at = 0.0
        self._began = 0.0
        """The same, by a clock that nobody sets."""
        self._watched_at = 0.0

    def run(self) -> None:
        """Run set-up and command, leave nothing behind, write the exit record."""
        files.keep_room(self._folder)
        os.set_blocking(self._output, False)
        files.enlarge(self._output)
        self._poll.register(self._output, select.POLLIN)
        self._poll.register(self._control, select.POLLIN)
        self._began_at, self._began = time.time(), time.monotonic()
        how, says = self._phases()
        self._sweep()
        self._drain()
        self._log.write(self._masks.rest())
        self._log.close()
        self._record(how, says)
        for _ in range(20):
            if self._limits.close():
                break
            time.sleep(HARD_EVERY_S)

    # -- the job's process -------------------------------------------------------------------

    def _phases(self) -> tuple[str, str]:
        """Run what there is to run; say how it ended, in a word and a sentence."""
        try:
            setup = self._wanted["setup"]
            if setup and self._ended_with(setup) != 0:
                return self._judged("setup-failed")
            if setup and self._stopping:
                self._by_itself = False
                return "exited", "stopped before its command began"
            self._ended_with(self._wanted["command"])
        except OSError as error:
            self._code = None
            return "start-failed", f"{error.filename}: {error.strerror}"
        return self._judged("exited")

    def _ended_with(self, command: str) -> int:
        wanted = self._wanted
        self._code = None
        self._main = processes.start(
            command, wanted["cwd"], wanted["env"], self._job_output, self._enter
        )
        self._write_pids()
        ended = _descriptor_of(self._main)
        if ended is not None:
            self._poll.register(ended, select.POLLIN)
        while self._code is None:
            self._turn(REAP_EVERY_S if ended is not None else HARD_EVERY_S)
        if ended is not None:
            self._poll.unregister(ended)
            os.close(ended)
        return self._code

    def _enter(self) -> None:
        """Enter the job's control groups, then become its user, who could not."""
        self._limits.enter()
        if self._wanted.get("user") is not None:
            processes.become_user(self._wanted["user"])

    def _turn(self, at_most_s: float) -> None:
        """Wait for output, an order of the agent, an end, or a time; do what it asks for."""
        if self._limits.watches:
            at_most_s = min(at_most_s, WATCH_EVERY_S)
        if self._stop_at is not None:
            at_most_s = min(at_most_s, max(0.0, self._stop_at - time.monotonic()))
        for descriptor, _ in self._poll.poll(1000 * at_most_s):
            if descriptor == self._output:
                self._read()
            elif descriptor == self._control:
                self._obey()
        self._reap()
        self._watch()
        self._kernel.look(time.monotonic())
        self._lease.look(time.clock_gettime(time.CLOCK_BOOTTIME), time.time())
        if self._stop_at is not None and time.monotonic() >= self._stop_at:
            self._stop_at = None
            self._kill()

    def _reap(self) -> bool:
        """Collect every process that has ended; say whether there is none left at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._main and self._code is None:
                code = os.waitstatus_to_exitcode(status)
                self._code = code if code >= 0 else 128 - code

    def _watch(self) -> None:
        now = time.monotonic()
        if not self._limits.watches or now < self._watched_at + WATCH_EVERY_S:
            return
        self._watched_at = now
        used = processes.memory_bytes(processes.descendants(os.getpid()))
        if self._limits.memory_bytes is not None and used > self._limits.memory_bytes:
            self._out_of_memory = True
            self._kill()

    # -- what the agent wants ----------------------------------------------------------------

    def _obey(self) -> None:
        self._reap()  # first: what has ended is not stopped
        self._by_itself = self._by_itself and self._code is not None
        for words in files.orders(self._control):
            match words:
                case ["stop", number, grace_s]:
                    self._stop(int(number), float(grace_s))
                case ["kill"]:
                    self._kill()
                case _:
                    continue

    def _stop(self, number: int, grace_s: float) -> None:
        if self._stopping:
            return  # an agent that was started again says it again
        self._stopping = True
        self._stop_at = time.monotonic() + grace_s
        if self._code is None:
            _signal_group(self._main, number)

    def _kill(self) -> None:
        self._killed = True
        processes.send(processes.descendants(os.getpid()), processes.SIGNAL_KILL)

    def _sweep(self) -> None:
        """End what the job's process left behind; after a stop it may still be saving."""
        if self._reap():
            return
        hard_at = time.monotonic() + LEFTOVER_S
        if not self._stopping and not self._killed:
            processes.send(processes.descendants(os.getpid()), processes.SIGNAL_TERM)
        while not self._reap():
            saving = self._stopping and self._stop_at is not None
            if self._killed or (not saving and time.monotonic() >= hard_at):
                self._kill()
            self._turn(HARD_EVERY_S)

    # -- output and records ------------------------------------------------------------------

    def _read(self) -> bool:
        try:
            piece = os.read(self._output, files.READ_BYTES)
        except BlockingIOError:
            return False
        self._log.write(self._masks.masked(piece))
        return bool(piece)

    def _drain(self) -> None:
        os.close(self._job_output)
        while self._read():
            pass

    def _write_pids(self) -> None:
        own, main = os.getpid(), self._main
        text = encoded(
            {
                "shim": own,
                "shim_started": processes.started_at(own),
                "job": main,
                "job_started": processes.started_at(main),
                "boot": processes.boot_id(),
                "began_at": self._began_at,
                "groups": self._limits.folders,
            }
        )
        try:
            files.write_whole(f"{self._folder}/pids.json", text)
        except OSError:
            pass  # the disk is full; the job's processes can be found by their environment too

    def _judged(self, otherwise: str) -> tuple[str, str]:
        """Say how a process ended: a failure with a known cause is told by its cause."""
        code, newest = self._code or 0, self._newest()
        if code == 0:
            return "exited", ""
        if self._out_of_memory or self._limits.killed():
            most = self._limits.memory_bytes or 0
            return "oom", f"it needed more than its {most / 2**30:.2f} GiB of memory"
        if not self._killed and self._kernel.explain(code):
            return "oom", STARVED
        below = self._wanted["full_below"]
        if any(files.is_full(path, below) for path in self._wanted["full_paths"]):
            return "disk-full", f"the disk was full; it said last: {causes.last_line(newest)}"
        known = causes.cause(code, newest)
        return known or (otherwise, causes.plain(code, newest))

    def _newest(self) -> bytes:
        while self._read():
            pass
        return self._log.newest

    def _record(self, how: str, says: str) -> None:
        record: dict[str, Plain] = {
            "how": how,
            "code": self._code,
            "says": says,
            "by_itself": self._by_itself,
            "ended_at": time.time(),
            "ran_s": time.monotonic() - self._began,
            "log_unwritten_bytes": self._log.unwritten,
        }
        files.fill_room(self._folder, encoded(record), self._log)


def _descriptor_of(pid: int) -> int | None:
    """Return what becomes readable when a process ends; None on kernels before 5.3."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        pass
