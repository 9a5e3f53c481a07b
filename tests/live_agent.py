"""A real agent in a temporary folder: orders in, reports out, and nothing left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cloudwhale.agent.attempts import AttemptFolder, Pids
from cloudwhale.clock import SystemClock, wait
from cloudwhale.mailbox.box import folder_of, inbox_from, orders_to, whole_log_key
from cloudwhale.mailbox.documents import (
    REPORTS,
    AnyReport,
    AttemptEnded,
    CheckpointPublished,
    Joined,
    Order,
    StartOrder,
    StopOrder,
)
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.units import Seconds

NODE = "host"
PATIENCE_S: Seconds = 60.0
LOOK_S: Seconds = 0.01
CLOCK = SystemClock()

T = TypeVar("T")


def until(found: Callable[[], T | None], what: str, limit_s: Seconds = PATIENCE_S) -> T:
    """Wait until something is found (neither None nor False); fail with a sentence otherwise."""
    end = CLOCK.steady() + limit_s
    while True:
        answer = found()
        if answer is not None and answer is not False:
            return answer
        if CLOCK.steady() > end:
            raise AssertionError(f"not within {limit_s:g} s: {what}")
        wait(LOOK_S)


def a_start(job: str = "job", command: str = "true", **fields: Any) -> StartOrder:
    """Make an order to start the first attempt of a job that needs a tenth of a CPU."""
    checkpoint = CheckpointRule(every_s=0.2, grace_s=5.0)
    return StartOrder(
        **{
            "at": CLOCK.now(), "fence": 1, "request_id": f"start-{job}-{fields.get('attempt', 1)}",
            "job": job, "attempt": 1, "project": "p", "name": job, "command": command,
            "cpu": 1.0, "checkpoint": checkpoint, **fields,
        }
    )  # fmt: skip


def a_stop(job: str = "job", attempt: int = 1, **fields: Any) -> StopOrder:
    """Make an order to stop an attempt within five seconds."""
    return StopOrder(
        **{
            "at": 0.0, "fence": 1, "request_id": f"stop-{job}-{attempt}", "job": job,
            "attempt": attempt, "grace_s": 5.0, **fields,
        }
    )  # fmt: skip


class LiveAgent:
    """The agent of one node, with the controller's end of its mailbox."""

    def __init__(self, folder: Path, door: str = "") -> None:
        """`door`: see `mailbox.box.folder_of`."""
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.url = (folder / "mailbox").as_uri()
        self.objects = open_objects(self.url)
        self.attempts = self.home / "nodes" / NODE / "attempts"
        self.reports: list[AnyReport] = []
        self.options: list[str] = [f"--door={door}"] if door else []
        self.mailbox = folder_of(NODE, door)
        self.env: dict[str, str] = {"PYTHONPATH": str(Path(__file__).parent)}
        self.program = "cloudwhale.agent"
        self.python = sys.executable
        self.before: list[str] = []
        """Words before its command, as of a program that enters a namespace."""
        self._orders = orders_to(self.objects, self.mailbox)
        self._inbox = inbox_from(self.objects, self.mailbox)
        self._posted = 0
        self._process: subprocess.Popen[bytes] | None = None

    # -- the agent's process -----------------------------------------------------------------

    def start(self) -> None:
        """Start it; its output goes to agent.log in its home."""
        words = [*self.before, self.python, "-P", "-m", self.program]
        words += [f"--mailbox={self.url}", f"--home={self.home}", f"--node={NODE}", *self.options]
        with (self.home / "agent.log").open("ab") as output:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, env={**os.environ, **self.env},
            )  # fmt: skip

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The running agent."""
        assert self._process is not None
        return self._process

    def kill(self) -> None:
        """Kill it as a power cut would, jobs excepted."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Tell it to land its jobs and wait until it is gone."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=2 * PATIENCE_S)

    # -- what is said ------------------------------------------------------------------------

    def post(self, order: Order) -> None:
        """Post an order."""
        body = order.but(at=CLOCK.now()).model_dump_json().encode()
        self._posted = self._orders.post(body, self._posted)

    def hear(self) -> list[AnyReport]:
        """Read what is new in the inbox; return all that was ever said."""
        while (body := self._inbox.read(len(self.reports) + 1)) is not None:
            self.reports.append(REPORTS.validate_json(body))
        return self.reports

    def wait_for(self, kind: type[T], job: str = "job", attempt: int = 1) -> T:
        """Wait for the first report of a kind about an attempt."""

        def found() -> T | None:
            for report in self.hear():
                about = (getattr(report, "job", job), getattr(report, "attempt", attempt))
                if isinstance(report, kind) and about == (job, attempt):
                    return report
            return None

        return until(found, f"{kind.__name__} of {job} {attempt}; {self.story()}")

    def all_of(self, kind: type[T]) -> list[T]:
        """Return every report of a kind that was said until now."""
        return [report for report in self.hear() if isinstance(report, kind)]

    def ended(self, job: str = "job", attempt: int = 1) -> AttemptEnded:
        """Wait for the end of an attempt."""
        return self.wait_for(AttemptEnded, job, attempt)

    def has_noted_the_end(self, job: str = "job", attempt: int = 1) -> None:
        """Wait until the agent has written down that an end was posted: from then it repeats it."""
        until(lambda: self.folder(job, attempt).has_ended, f"the end of {job} in its folder")

    def joined_again(self, times: int) -> Joined:
        """Wait until agents have joined so many times; return the last."""
        return until(
            lambda: (found := self.all_of(Joined)) and len(found) >= times and found[-1] or None,
            f"joined {times} times; {self.story()}",
        )

    def published(self, count: int = 1) -> CheckpointPublished:
        """Wait until so many checkpoints were published; return the last of them."""
        return until(
            lambda: (
                ((found := self.all_of(CheckpointPublished)) and len(found) >= count and found[-1])
                or None
            ),
            f"{count} checkpoints; {self.story()}",
        )

    def story(self) -> str:
        """Return what the agent printed, for a failed test."""
        log = self.home / "agent.log"
        return log.read_text()[-2000:] if log.exists() else "it was never started"

    # -- what is there -----------------------------------------------------------------------

    def folder(self, job: str = "job", attempt: int = 1) -> AttemptFolder:
        """Return an attempt's folder."""
        return AttemptFolder(self.attempts, (job, attempt))

    def output(self, job: str = "job", attempt: int = 1) -> bytes:
        """Return what a job has written until now; once that is stored, it is no more here."""
        try:
            return (self.folder(job, attempt).log / "000001").read_bytes()
        except FileNotFoundError:
            return self.objects.get(whole_log_key(job, attempt)) or b""

    def wait_for_output(self, text: bytes, job: str = "job", attempt: int = 1) -> None:
        """Wait until a job has written something."""
        until(lambda: text in self.output(job, attempt), f"{text!r} in the output of {job}")

    def log(self, job: str = "job", attempt: int = 1) -> bytes:
        """Return the whole log of an attempt that has ended."""
        body = self.objects.get(whole_log_key(job, attempt))
        assert body is not None
        return body

    def pids(self, job: str = "job", attempt: int = 1) -> Pids:
        """Wait until an attempt's shim has said who runs."""
        return until(lambda: self.folder(job, attempt).pids(), f"pids of {job}; {self.story()}")

    def processes(self) -> list[int]:
        """Return every living process that has to do with this home."""
        return [
            int(name) for name in os.listdir("/proc") if name.isdecimal() and self._is_ours(name)
        ]

    def job_processes(self) -> list[int]:
        """Return the living processes that are neither the agent nor a shim, which may linger."""
        return [pid for pid in self.processes() if b"cloudwhale" not in _command(pid)]

    def _is_ours(self, name: str) -> bool:
        mark = os.fsencode(self.home)
        try:
            command = Path(f"/proc/{name}/cmdline").read_bytes()
            ours = mark in command or mark in Path(f"/proc/{name}/environ").read_bytes()
            return ours and bool(command) and int(name) != os.getpid()
        except OSError:
            return False

    def groups(self) -> list[Path]:
        """Return the control groups of jobs that are still there, of any home on this host."""
        return [Path(group) for pids in self._all_pids() for group in pids.groups]

    def _all_pids(self) -> list[Pids]:
        keys = [(path.parts[-2], int(path.name)) for path in self.attempts.glob("*/[0-9]*")]
        found = [self.folder(*key).pids() for key in keys]
        return [pids for pids in found if pids is not None]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b"cloudwhale: gone meanwhile"
