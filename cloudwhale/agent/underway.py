"""What the rim holds of each attempt under way, and the tools it works with."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.cgroups import Groups
from cloudwhale.agent.inputs import Inputs
from cloudwhale.agent.launching import Sizes
from cloudwhale.agent.logs import LogTail, LogThread
from cloudwhale.agent.outputs import OutputSaver
from cloudwhale.agent.place import Place
from cloudwhale.agent.pool import Pool
from cloudwhale.agent.poster import Poster
from cloudwhale.agent.publisher import Publisher
from cloudwhale.agent.seen import Key, Seen
from cloudwhale.agent.users import Users
from cloudwhale.mailbox.bell import Bell
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Instant
from cloudwhale.spi.clock import Clock


@dataclass(frozen=True, slots=True)
class Tools:
    """What the rim works with."""

    agent: str
    """Incarnation."""
    place: Place
    objects: Objects
    clock: Clock
    now: Callable[[], Instant]
    """Time that never goes backwards: what duty is told."""
    tell: Callable[[Seen], None]
    """Puts an event before duty; from any thread."""
    bell: Bell
    pool: Pool
    poster: Poster
    logs: LogThread
    groups: Groups | None
    sizes: Sizes
    inputs: Inputs
    users: Users | None = None
    """Who gives each job a user of its own; None: they run as the agent does."""

    def folder(self, key: Key) -> AttemptFolder:
        """Return an attempt's folder, which may not exist yet."""
        return AttemptFolder(self.place.attempts, key)


@dataclass(slots=True)
class Underway:
    """One attempt under way; changed by the rim's own thread only."""

    folder: AttemptFolder
    order: StartOrder
    publisher: Publisher
    tail: LogTail
    outputs: OutputSaver
    secrets: dict[str, str] = field(default_factory=dict[str, str])
    shim: int | None = None
    """Process id of the shim while it is our own child and was not collected."""
    started: bool = False
    began: bool = False
    over: bool = False
    alive_at: Instant = 0.0
    """When this agent last saw its shim alive; 0.0: never."""
    rings: bool = False
    """Whether the bell hears what its shim writes."""
    looking: bool = False
    look_at: Instant = 0.0
    """When its checkpoint folder is looked at next, if a publish is near."""


class Attempts:
    """The attempts under way, and the shims that wait to be collected."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self.here: dict[Key, Underway] = {}
        self._ending: list[int] = []

    def take(self, order: StartOrder, *, adopted: bool = False) -> Underway:
        """Begin to hold an attempt; raise ValueError for a checkpoint folder that cannot be."""
        folder = self._tools.folder((order.job, order.attempt))
        one = Underway(
            folder=folder,
            order=order,
            publisher=Publisher(folder, folder.checkpoints(order), self._tools.objects, order.rank),
            tail=LogTail(
                folder, self._tools.objects, self._tools.sizes, adopted=adopted, rank=order.rank
            ),
            outputs=OutputSaver(folder, order, self._tools.objects),
        )
        self.here[folder.key] = one
        return one

    def listen(self, one: Underway) -> None:
        """Hear of what its shim and its job do."""
        one.started = True
        one.rings = self._tools.bell.watch(one.folder.path, moves=True)
        try:
            self._tools.bell.watch(one.publisher.checkpoints, moves=True)
        except OSError:
            pass  # the job has put something else there: what it saves is found by looking
        self._tools.logs.add(one.folder.key, one.tail)

    def let_go(self, key: Key) -> Underway | None:
        """Hold it no more."""
        one = self.here.pop(key, None)
        if one is not None:
            self._tools.logs.remove(key)
            self._tools.bell.unwatch(one.folder.path)
            self._tools.bell.unwatch(one.publisher.checkpoints)
            if one.shim is not None:
                self._ending.append(one.shim)
        return one

    def collect(self) -> None:
        """Collect the shims that have ended: an uncollected one keeps its process id."""
        self._ending = [pid for pid in self._ending if not has_ended(pid)]


def has_ended(child: int) -> bool:
    """Say whether a child of ours has ended, and collect it; once only."""
    try:
        pid, _ = os.waitpid(child, os.WNOHANG)
    except ChildProcessError:
        return True
    return pid != 0
