"""The files through which a shim and the agent know of each other: a pipe in, records out."""

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cloudwhale.agent.shim_log import Segments

PIPE_BYTES = 1 << 20  # room for a burst of output while the disk is slow
READ_BYTES = 1 << 18
RECORD_BYTES = 4096  # kept free on the disk for the exit record


def control_pipe(folder: str) -> int:
    """Make the pipe that the agent writes orders into; open for writing too, so it never ends."""
    path = f"{folder}/control"
    if not os.path.exists(path):
        os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def orders(control: int) -> list[list[str]]:
    """Return the words of each order that waits in the pipe: `stop NUMBER GRACE_S` or `kill`."""
    return [line.split() for line in os.read(control, READ_BYTES).decode().splitlines()]


def enlarge(pipe: int) -> None:
    """Give a pipe more room, where the kernel lets us."""
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        pass  # the user's share of pipe memory is used up; the usual 64 KiB do


def is_full(path: str, below_bytes: int) -> bool:
    """Say whether a file system has no room left."""
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < below_bytes


def keep_room(folder: str) -> None:
    """Take the room for the exit record while there is some: a full disk must not hide the end."""
    try:
        with open(f"{folder}/exit.new", "wb") as file:
            file.write(b" " * RECORD_BYTES)
    except OSError:
        pass  # full already; the end gives log files up for it


def fill_room(folder: str, text: str, log: Segments) -> None:
    """Write the exit record into its room and give it its name."""
    body = text.encode().ljust(RECORD_BYTES)
    while True:
        try:
            file = os.open(f"{folder}/exit.new", os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                os.pwrite(file, body, 0)
            finally:
                os.close(file)
            os.rename(f"{folder}/exit.new", f"{folder}/exit.json")
            return
        except OSError:
            if not log.give_way():
                raise


def write_whole(path: str, text: str) -> None:
    """Write a file so that a reader sees all of it or none; raise OSError."""
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.rename(f"{path}.new", path)
