"""cloudwhale, killed for real before or after the n-th thing that its controller does.

python mortal.py N before|after WORDS…
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from cloudwhale.cli import main
from cloudwhale.control.effects import Effect, ThreadedEffects
from cloudwhale.control.store.sql import SqlStore


class Fuse:
    """Kills this process before or after the n-th thing."""

    def __init__(self, at: int, after: bool) -> None:
        self._count, self._at, self._after = 0, at, after

    def around(self, do: Callable[[], Any]) -> Any:
        self._count += 1
        mine = self._count == self._at
        if mine and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = do()
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def lay(fuse: Fuse) -> None:
    """Put the fuse around every write of the controller and every order and launch."""
    append, record, start = SqlStore.append, SqlStore.record, ThreadedEffects.start

    def mortal_append(self: SqlStore, events: Any, *, epoch: int | None = None) -> int:
        if epoch is None:  # a person's wish: the submit itself is not the controller's
            return append(self, events, epoch=epoch)
        return int(fuse.around(lambda: append(self, events, epoch=epoch)))

    def mortal_record(self: SqlStore, round: Any, events: Any, *, epoch: int) -> int:
        return int(fuse.around(lambda: record(self, round, events, epoch=epoch)))

    def mortal_start(self: ThreadedEffects, effect: Effect, now: float) -> bool:
        looks = effect.key.verb in ("read", "look")
        do = effect.do if looks else lambda: fuse.around(effect.do)
        return start(self, Effect(effect.key, do), now)

    SqlStore.append = mortal_append  # type: ignore[method-assign]
    SqlStore.record = mortal_record  # type: ignore[method-assign]
    ThreadedEffects.start = mortal_start  # type: ignore[method-assign]


if __name__ == "__main__":
    lay(Fuse(int(sys.argv[1]), sys.argv[2] == "after"))
    sys.argv[1:] = sys.argv[3:]
    main()
