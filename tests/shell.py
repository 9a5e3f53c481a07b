"""Types cloudwhale commands as a person does, and leaves nothing running behind."""

import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from cloudwhale.clock import SystemClock, wait
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model.job import Job
from cloudwhale.spi.store import JobQuery

LIMIT_S = 180.0  # far more than anything here takes where many others share the cores
COMMAND = [sys.executable, "-m", "cloudwhale"]


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What a `--json` command printed; fails when there is anything else."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def until(what: str, holds: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Wait for a condition; fail when it does not come."""
    clock = SystemClock()
    end = clock.steady() + limit_s
    while not holds():
        assert clock.steady() < end, f"waited {limit_s:g} s in vain: {what}"
        wait(0.05)


@dataclass
class Shell:
    """A folder to type commands in, with a home of its own."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    _started: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])

    @property
    def home(self) -> Path:
        """Where all state of these commands lies."""
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every command."""
        ours = {"CLOUDWHALE_HOME": str(self.home), "CLOUDWHALE_NODE": "host", "TERM": "xterm"}
        return {**os.environ, **ours, **self.settings}

    def write(self, name: str, text: str) -> str:
        """Write a file into the folder; return its name."""
        (self.folder / name).write_text(text)
        return name

    def __call__(self, *words: str) -> Done:
        """Run a command to its end, in a pipe."""
        done = subprocess.run(
            [*COMMAND, *words], cwd=self.folder, env=self.environment, capture_output=True,
            text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, command: Sequence[str] = COMMAND) -> subprocess.Popen[str]:
        """Start a command in a pipe."""
        process = subprocess.Popen(
            [*command, *words], cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._started.append(process)
        return process

    def jobs(self) -> Sequence[Job]:
        """Every job, newest first; looked up without a command, which would take longer."""
        url = self.settings.get("CLOUDWHALE_DATABASE")
        if url is None and not (self.home / "cloudwhale.db").exists():
            return []
        with closing(open_store(url or sqlite_url(self.home), may_migrate=False)) as store:
            return store.jobs(JobQuery())

    def states(self) -> dict[str, str]:
        """State by name of job."""
        return {job.spec.name: job.state.value for job in self.jobs()}

    def until_state(self, name: str, state: str) -> None:
        """Wait until a job is in a state."""
        until(f"{name} to be {state}", lambda: self.states().get(name) == state)

    def processes(self) -> list[psutil.Process]:
        """Every process of this home: controllers, agents, shims, jobs."""
        return processes_of(self.home)

    def close(self) -> None:
        """End whatever is left; its pipes are not waited for, as others may hold them."""
        end_all_of(self.home)
        for started in self._started:
            started.kill()
            started.wait()
            if started.stdout is not None:
                started.stdout.close()


def processes_of(place: Path) -> list[psutil.Process]:
    """Return the processes whose home a place is, or whose command names it."""
    return [each for each in psutil.process_iter() if _is_of(each, str(place))]


def end_all_of(place: Path) -> None:
    """Kill them, and what they have started meanwhile."""
    while left := processes_of(place):
        for process in left:
            _kill(process)
        psutil.wait_procs(left, timeout=5)


def _is_of(process: psutil.Process, place: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        said = process.environ().get("CLOUDWHALE_HOME") == place
        return said or any(place in word for word in process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        pass


class Terminal:
    """A command on a terminal of its own: what it shows, and keys for it."""

    def __init__(self, shell: Shell, *words: str, command: Sequence[str] = COMMAND) -> None:
        try:
            self._master, slave = pty.openpty()
        except OSError as error:
            pytest.skip(f"this host gives no pseudo-terminal: {error}")
        self.process = subprocess.Popen(
            [*command, *words], cwd=shell.folder, env=shell.environment,
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            # So that Ctrl-C typed here becomes a signal there.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)
        self.shown = ""

    def shows(self, text: str) -> None:
        """Wait until the screen has shown a text."""
        until(f"{text!r} to be shown in {self.shown[-2000:]!r}", lambda: self._read(text))

    def now(self) -> str:
        """Return all that the screen has shown until now."""
        self._read("")
        return self.shown

    def press(self, keys: str) -> None:
        """Type something."""
        os.write(self._master, keys.encode())

    def closes(self) -> None:
        """Close the window: the command hears SIGHUP, and nobody reads what it says."""
        os.close(self._master)
        until("the command to end", lambda: self.process.poll() is not None)

    def ends(self) -> int:
        """Wait for the end; return the exit code."""
        until("the command to end", lambda: self._read("") and self.process.poll() is not None)
        os.close(self._master)
        return self.process.wait()

    def _read(self, text: str) -> bool:
        while select.select([self._master], [], [], 0.0)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # Linux says EIO when the other end has closed
                break
            self.shown += data.decode(errors="replace")
            if not data:
                break
        return text in self.shown
