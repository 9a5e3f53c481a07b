"""The shim: starts one job's process, waits for it and writes its exit record.

Run as `python -I -S shim.py ATTEMPT_FOLDER` by the agent, with the job's description as JSON on
its standard input, so that secrets are never on a disk. Standard library only, and of that only
what is quick to import: a shim stands before every job.
"""

import fcntl
import os
import sys

TRIES = 40  # an agent that asks whether a shim lives holds the lock for microseconds
TRY_EVERY_MS = 5


def main(folder: str) -> int:
    """Run the job of an attempt's folder, unless another shim has begun it already."""
    text = told()
    if not begins(folder):
        return 0
    # At the end of the path: nothing installed beside us can stand before the standard library.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from cloudwhale.agent.shim_job import ShimJob
    from cloudwhale.agent.shim_json import decoded
    from cloudwhale.agent.shim_processes import adopt_orphans

    adopt_orphans()
    ShimJob(folder, decoded(text)).run()
    return 0


def told() -> str:
    """Return what the agent says of the job."""
    with open(0, "rb", closefd=False) as file:
        return file.read().decode()


def begins(folder: str) -> bool:
    """Become the shim of an attempt, once and for ever; False when another one is or was it.

    The lock is held until this process ends.
    """
    lock = os.open(f"{folder}/shim.lock", os.O_RDWR | os.O_CREAT, 0o644)
    if not _taken(lock):
        return False
    try:
        os.close(os.open(f"{folder}/begun", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    except FileExistsError:
        return False
    _flush(folder)  # a power cut must not undo this: the job would begin a second time
    return True


def _flush(folder: str) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError:
        pass  # a file system that cannot; what runs now is worth more than what may come
    finally:
        os.close(opened)


def _taken(lock: int) -> bool:
    import select

    for _ in range(TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            select.select([], [], [], TRY_EVERY_MS / 1000)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
