"""Processes of a job: how one is started, which there are, how all of them are killed."""

from __future__ import annotations

import os
from _ctypes import call_function, dlopen, dlsym  # a tenth of what importing ctypes takes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SIGNAL_KILL, SIGNAL_TERM = 9, 15  # the signal module takes as long to import as all the rest
SIGNALS_TO_RESET = (13, 25)  # SIGPIPE and SIGXFSZ, which Python ignores and a job must not
SET_DEATH_SIGNAL, SET_SUBREAPER, SET_NO_NEW_PRIVILEGES = 1, 36, 38  # prctl(2)
SHELLS = ("/bin/bash", "/bin/sh")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

_LIBC = dlopen("", os.RTLD_NOW)
_PRCTL, _SIGNAL = dlsym(_LIBC, "prctl"), dlsym(_LIBC, "signal")


def adopt_orphans() -> None:
    """Become the parent of every process below us whose own parent has ended."""
    if call_function(_PRCTL, (SET_SUBREAPER, 1, 0, 0, 0)):
        raise OSError("this kernel cannot make the shim the reaper of its job's processes")


def start(
    command: str, cwd: str, env: Mapping[str, str], output: int, enter: Callable[[], None]
) -> int:
    """Start a shell with a command in its own session; return its process id.

    It dies with the calling process. `enter` runs in it before the shell, and may make it another
    user's. Raise OSError when it cannot be started.
    """
    shell = next((path for path in SHELLS if os.access(path, os.X_OK)), SHELLS[-1])
    parent = os.getpid()
    heard, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            enter()
            # After that: the kernel forgets it when a process becomes another user's.
            call_function(_PRCTL, (SET_DEATH_SIGNAL, SIGNAL_KILL, 0, 0, 0))
            if os.getppid() == parent:
                _become([shell, "-c", command], cwd, env, output)
        except OSError as error:
            os.write(told, f"{error.errno or 0} {error.filename or shell}".encode())
        finally:
            os._exit(127)
    os.close(told)
    with open(heard, "rb") as file:
        trouble = file.read().decode(errors="replace")
    if trouble:
        os.waitpid(pid, 0)
        number, _, path = trouble.partition(" ")
        raise OSError(int(number), os.strerror(int(number)), path)
    return pid


def become_user(number: int) -> None:
    """Become a user, alone in the group of that number, without any way back.

    No program makes it another's, as sudo would, and others read nothing that it writes.
    """
    if call_function(_PRCTL, (SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)):
        raise OSError("this kernel cannot take away what set-user-id programs give")
    os.setgroups([])
    os.setresgid(number, number, number)
    os.setresuid(number, number, number)
    os.umask(0o077)


def _become(words: list[str], cwd: str, env: Mapping[str, str], output: int) -> None:
    for number in SIGNALS_TO_RESET:
        call_function(_SIGNAL, (number, None))
    os.chdir(cwd)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.execve(words[0], words, dict(env))


def started_at(pid: int) -> int | None:
    """Return when a process was started, in ticks since the boot; None when there is none.

    Together with its id it names a process for ever: ids are used again.
    """
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def descendants(root: int) -> list[int]:
    """Return every process below one, children before grandchildren; reads all of /proc."""
    children: dict[int, list[int]] = {}
    for pid, fields in _all():
        children.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    layer = children.get(root, [])
    while layer:
        found += layer
        layer = [child for pid in layer for child in children.get(pid, [])]
    return found


def members(session: int) -> list[int]:
    """Return every process of a session; reads all of /proc."""
    return [pid for pid, fields in _all() if int(fields[3]) == session]


def boot_id() -> str:
    """Name this start of the machine: after another, process ids mean other processes."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _all() -> Iterator[tuple[int, list[str]]]:
    for name in os.listdir("/proc"):
        fields = _stat(int(name)) if name.isdigit() else None
        if fields:
            yield int(name), fields


def send(pids: list[int], number: int) -> None:
    """Send a signal to processes; those that are gone are fine."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def memory_bytes(pids: list[int]) -> int:
    """Return the memory of processes, what they share with others not counted."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                _, resident, shared, *_ = file.read().split()
        except (OSError, ValueError):
            continue
        total += (int(resident) - int(shared)) * PAGE_BYTES
    return total


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; empty when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return text[text.rfind(")") + 2 :].split()
