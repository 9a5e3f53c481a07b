"""An agent that is killed for real before or after the n-th thing that it does.

It does something when it writes a file of its own whole, creates an object, starts a shim or begins
a task of its pool. The environment says which: MORTAL_AT, and MORTAL_AFTER when it is not empty.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from cloudwhale.agent import attempts, logs, place, publisher
from cloudwhale.agent.__main__ import main
from cloudwhale.agent.pool import Pool
from cloudwhale.mailbox.objects import StoreObjects


class Fuse:
    """Kills this process before or after the n-th thing."""

    def __init__(self, at: int, *, after: bool) -> None:
        self._count, self._at, self._after = 0, at, after
        self._turn = threading.Lock()

    def around(self, do: Callable[..., Any]) -> Callable[..., Any]:
        """Return what does the same, unless it is the n-th thing."""

        def mortal(*words: Any, **named: Any) -> Any:
            with self._turn:
                self._count += 1
                mine = self._count == self._at
            if mine and not self._after:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = do(*words, **named)
            if mine:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return mortal


def lay(fuse: Fuse) -> None:
    """Put the fuse around all that an agent does and a death could undo or leave half done."""
    written = fuse.around(place.write_whole)
    for module in (attempts, logs, place, publisher):
        vars(module)["write_whole"] = written
    StoreObjects.create = fuse.around(StoreObjects.create)  # type: ignore[method-assign]
    os.posix_spawn = fuse.around(os.posix_spawn)
    begin = Pool.do

    def do(
        self: Pool, task: Callable[[], object], failed: Callable[[Exception], object] | None = None
    ) -> None:
        begin(self, fuse.around(task), failed)

    Pool.do = do  # type: ignore[method-assign]


if __name__ == "__main__":
    lay(Fuse(int(os.environ["MORTAL_AT"]), after=bool(os.environ["MORTAL_AFTER"])))
    sys.exit(main())
