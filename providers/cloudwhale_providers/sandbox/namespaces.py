"""Network namespaces without names: each is a file of this process, and gone when nobody has it.

So whatever is in one, links, addresses and rules, ends with the box, however that ends.
"""

import ctypes
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

NEW_NETWORK = 0x40000000  # sched.h, CLONE_NEWNET
TAKES_AT_MOST_S = 20.0  # a link is made in milliseconds; a busy host may need more

T = TypeVar("T")


def new_network() -> int:
    """Return a namespace that has only a loopback that is down; raise OSError where none can be."""

    def make() -> int:
        _called("unshare", NEW_NETWORK)
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    return _in_a_thread(make)


def within(network: int, do: Callable[[], T]) -> T:
    """Return what is done inside: a socket that is made there stays there. Raise what it raises."""

    def enter_and_do() -> T:
        _called("setns", network, NEW_NETWORK)
        return do()

    return _in_a_thread(enter_and_do)


def run(network: int, words: Sequence[str], text: str = "", others: Sequence[int] = ()) -> str:
    """Run a program inside with a text as its input; return what it says. Raise OSError: it fails.

    `others`: files that it may name as /proc/self/fd/N.
    """
    return run_here(["nsenter", f"--net=/proc/self/fd/{network}", *words], text, (network, *others))


def run_here(words: Sequence[str], text: str = "", others: Sequence[int] = ()) -> str:
    """Run a program of this host as `run` does."""
    try:
        done = subprocess.run(
            words, input=text, capture_output=True, text=True, pass_fds=others,
            timeout=TAKES_AT_MOST_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{words[0]} does not end") from error
    if done.returncode:
        raise OSError(f"{' '.join(words[:6])}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def _in_a_thread(do: Callable[[], T]) -> T:
    """Return what another thread does, which ends: it alone has changed its namespace."""
    done: list[T] = []
    raised: list[OSError] = []

    def run_it() -> None:
        try:
            done.append(do())
        except OSError as error:
            raised.append(error)

    thread = threading.Thread(target=run_it, name="namespace")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return done[0]


def _called(name: str, *words: int) -> None:
    libc: Any = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*words):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
