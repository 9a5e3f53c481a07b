"""The watchdog of a rented machine: ends it when its lease is over and its agent has not.

Run as `python -I -S watchdog.py FOLDER` by the agent, of which it needs nothing: the agent may be
dead, or hang. Standard library only. One lives in a folder, whoever started it.
"""

import fcntl
import json
import os
import signal
import sys
import time

TOLD = "watchdog.json"
"""When to end the machine, by its boot-time clock, and how; without this file there is nothing
to watch."""
LOCK = "watchdog.lock"
AGENT_LOCK = "agent.lock"
LOOK_EVERY_S = 1.0
AGAIN_S = 30.0  # a machine that is still there was not ended


def main(folder: str) -> int:
    """Watch until there is nothing to watch; 0 at once where another one does."""
    lock = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal that closes ends no watch
    again_at = 0.0
    while (told := _told(folder)) is not None:
        at, words = told
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        is_over = now >= max(at, again_at)
        if not words and not _agent_lives(folder, kill=is_over):
            return 0  # the machine has ended with it
        if words and is_over:
            _end_machine(words)
            again_at = now + AGAIN_S
        time.sleep(min(LOOK_EVERY_S, max(0.05, at - now)))
    return 0


def _told(folder: str) -> tuple[float, str] | None:
    """Return when, and by what command; None when there is nothing to watch any more."""
    try:
        with open(f"{folder}/{TOLD}", "rb") as file:
            found = json.load(file)
        return float(found["at"]), str(found["words"])
    except FileNotFoundError:
        return None


def _end_machine(words: str) -> None:
    """Run the command, and do not wait: one that hangs is run again."""
    os.posix_spawn("/bin/sh", ["/bin/sh", "-c", words], os.environ)


def _agent_lives(folder: str, *, kill: bool) -> bool:
    """Say whether an agent lives; where the machine ends with it, to kill it is to end that."""
    lock = os.open(f"{folder}/{AGENT_LOCK}", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        if kill:
            os.kill(int(os.pread(lock, 20, 0)), signal.SIGKILL)
        return True
    finally:
        os.close(lock)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
