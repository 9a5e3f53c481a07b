"""Does pieces of work in as many processes as there are cores, and leaves none of them behind."""

import multiprocessing as mp
import os
import signal
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from cloudwhale.model.units import Seconds

LOOK_EVERY_S: Seconds = 0.2

Todo = TypeVar("Todo")
Done = TypeVar("Done")


def at_once(
    work: Callable[[Todo], Done], todo: Sequence[Todo], *, begin: Callable[..., None] | None = None,
    given: tuple[Any, ...] = (), processes: int | None = None,
) -> Generator[Done | None, None, None]:  # fmt: skip
    """Yield each result when it is there, and None five times a second while nothing is.

    `begin` is called with `given` in each process first. Whoever closes the generator ends what
    runs.
    """
    cores = processes or os.cpu_count() or 1
    pool = mp.Pool(min(cores, max(1, len(todo))), _begin, (begin, given))
    try:
        found = pool.imap_unordered(work, todo)
        left = len(todo)
        while left:
            try:
                done = found.next(timeout=LOOK_EVERY_S)
            except mp.TimeoutError:
                yield None
                continue
            left -= 1
            yield done
    finally:
        pool.terminate()
        pool.join()


def _begin(begin: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    """Leave Ctrl-C to the process that asks, which ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _say_nothing()
    if begin is not None:
        begin(*given)


def _say_nothing() -> None:
    """Keep standard output for the process that asks: HiGHS greets on it, whatever one sets."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
