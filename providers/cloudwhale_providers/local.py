"""This host as a provider: one owned machine, whose agent is a process of its own session."""

import os
import signal
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal

from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import Unreachable
from cloudwhale.spi.provider import Amends, Check, LaunchRequest, Leftover, Machine, Stop
from cloudwhale_providers.locks import is_held

LEAST_FREE_GIB = 1.0


class LocalProvider:
    """The machine that we run on: it has no price, and nobody but its owner ends it."""

    def __init__(
        self, home: Path, node: str, facts: Callable[[], Facts], options: Sequence[str] = ()
    ) -> None:
        self._home = home
        self._node = node
        self._count = facts
        self._options = tuple(options)
        self._died = False
        """Whether the agent that we started last has ended badly, and nobody was told."""
        self._child: int | None = None
        """The agent that we started, until it has ended and was collected."""

    @property
    def stops(self) -> frozenset[Stop] | None:
        """Nothing is rented, and nobody ends a machine that is owned."""
        return None

    def offers(self, now: Instant) -> Sequence[Offer]:
        """Return nothing: what is owned is not rented."""
        return ()

    def launch(self, request: LaunchRequest) -> Machine:
        """Start the agent unless one runs; raise Unreachable when that is not possible.

        Also when the agent that was started before has died at once: the sentence holds its last
        words, and the call after this one starts another.
        """
        if not _runs_agents():
            raise Unreachable(
                f"agents do not run on {sys.platform}", "Add a Linux machine as a node."
            )
        if not self._agent_lives() and not self._child_lives():
            self._refuse_if_it_died()
            try:
                self._child = self._started(request)
            except OSError as error:
                raise Unreachable(
                    f"the agent of {request.node} cannot be started: {error.strerror}",
                    f"Is {request.home} writable, and the disk not full?",
                ) from error
        return self._machine()

    def machines(self) -> Sequence[Machine]:
        """Return this host, running while an agent works here."""
        return (self._machine(),)

    def extend(self, machine: str, stop_at: Instant) -> Instant | Literal["fixed"]:
        """Answer that it is fixed: an owned machine has no stop of its own."""
        return "fixed"

    def terminate(self, machine: str) -> None:
        """Tell the agent to land its jobs and to go; the host itself stays."""
        pid = self._agent_pid() if self._agent_lives() else None
        if pid is None and self._child_lives():
            pid = self._child  # it has not said yet that it is there
        if pid is None or machine != self._node:
            return
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            return

    def leftovers(self, live: Collection[str]) -> Sequence[Leftover]:
        """Return the jobs that run here while no agent does: the next agent adopts them."""
        if self._agent_lives():
            return ()
        return tuple(
            Leftover(id=str(lock.parent), what="a job without an agent", node=self._node)
            for lock in sorted(self._place.glob("attempts/*/*/shim.lock"))
            if is_held(lock)
        )

    def remove(self, leftover: Leftover) -> None:
        """Leave it alone: the next agent adopts it."""

    def check(self) -> Sequence[Check]:
        """Look at whether agents run here, and at the disk that jobs are kept on."""
        return (_system(), self._disk())

    def amends(self, whose: Callable[[], str], allow: str = "") -> Amends:
        """Return nothing: this host has no account."""
        return Amends()

    # -- the agent ---------------------------------------------------------------------------

    @property
    def _place(self) -> Path:
        return self._home / "nodes" / self._node

    def _machine(self) -> Machine:
        child = self._child_lives()  # collects it when it has ended
        state: Literal["starting", "running", "gone"] = "starting" if child else "gone"
        if self._agent_lives():
            state = "running"
        return Machine(id=self._node, node=self._node, state=state, facts=self._count())

    def _agent_lives(self) -> bool:
        return is_held(self._place / "agent.lock")

    def _agent_pid(self) -> int | None:
        try:
            return int((self._place / "agent.lock").read_text())
        except (OSError, ValueError):
            return None

    def _child_lives(self) -> bool:
        if self._child is None:
            return False
        try:
            pid, status = os.waitpid(self._child, os.WNOHANG)
        except ChildProcessError:
            pid, status = self._child, 0
        if pid:
            self._child = None
            self._died = os.waitstatus_to_exitcode(status) > 0
        return self._child is not None

    def _refuse_if_it_died(self) -> None:
        died, self._died = self._died, False
        if died:
            log = self._place / "agent.log"
            raise Unreachable(
                f"the agent of {self._node} ended at once: {_last_line(log)}",
                f"All that it said is in {log}.",
            )

    def _started(self, request: LaunchRequest) -> int:
        place = Path(request.home) / "nodes" / request.node
        place.mkdir(parents=True, exist_ok=True)
        words = [
            sys.executable,
            "-P",  # nothing in the folder we happen to stand in is mistaken for a module
            "-m",
            "cloudwhale.agent",
            f"--mailbox={request.mailbox}",
            f"--home={request.home}",
            f"--node={request.node}",
            f"--parent={os.getpid()}",
            *self._options,
        ]
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.posix_spawn(
            sys.executable,
            words,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(place / "agent.log"), append, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )

    def _disk(self) -> Check:
        free_gib = self._count().disk_gib
        says = f"{free_gib:.1f} GiB free in {self._home}"
        if free_gib < LEAST_FREE_GIB:
            remedy = "Free some, or set CLOUDWHALE_HOME to a folder on another disk."
            return Check(name="disk", state="failed", says=says, remedy=remedy)
        return Check(name="disk", state="ok", says=says)


def _runs_agents() -> bool:
    return sys.platform.startswith("linux")


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return "it said nothing"
    return lines[-1] if lines else "it said nothing"


def _system() -> Check:
    if _runs_agents():
        return Check(name="agents", state="ok", says=f"run on {sys.platform}")
    return Check(
        name="agents",
        state="failed",
        says=f"do not run on {sys.platform}",
        remedy="Let this host be the controller, and add a Linux machine as a node.",
    )
