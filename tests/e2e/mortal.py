"""cloudwhale, killed for real around the n-th thing that its controller does.

python mortal.py N before|within|after WORDS…
`within`: when everything is written and the commit is still to come.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event

from cloudwhale.cli import main
from cloudwhale.control.effects import Effect, ThreadedEffects
from cloudwhale.control.store.sql import SqlStore


def die(*_: object) -> None:
    """End this process as nothing can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)


class Fuse:
    """Kills this process before, within or after the n-th thing."""

    def __init__(self, at: int, when: str) -> None:
        self._count, self._at, self._when = 0, at, when

    def around(self, do: Callable[[], Any]) -> Any:
        self._count += 1
        mine = self._count == self._at
        if mine and self._when == "before":
            die()
        if mine and self._when == "within":
            event.listen(Engine, "commit", die)
        answer = do()
        if mine and self._when == "after":
            die()
        return answer


def lay(fuse: Fuse) -> None:
    """Put the fuse around every write of the controller and every order and launch."""
    append, record, start = SqlStore.append, SqlStore.record, ThreadedEffects.start

    def mortal_append(self: SqlStore, events: Any, *, epoch: int | None = None) -> int:
        if epoch is None:  # a person's wish: the submit itself is not the controller's
            return append(self, events, epoch=epoch)
        return int(fuse.around(lambda: append(self, events, epoch=epoch)))

    def mortal_record(
        self: SqlStore, round: Any, events: Any, *, epoch: int, offers: str = ""
    ) -> int:
        return int(fuse.around(lambda: record(self, round, events, epoch=epoch, offers=offers)))

    def mortal_start(self: ThreadedEffects, effect: Effect, now: float) -> bool:
        looks = effect.key.verb in ("read", "look")
        do = effect.do if looks else lambda: fuse.around(effect.do)
        return start(self, Effect(effect.key, do), now)

    SqlStore.append = mortal_append  # type: ignore[method-assign]
    SqlStore.record = mortal_record  # type: ignore[method-assign]
    ThreadedEffects.start = mortal_start  # type: ignore[method-assign]


if __name__ == "__main__":
    lay(Fuse(int(sys.argv[1]), sys.argv[2]))
    sys.argv[1:] = sys.argv[3:]
    main()
