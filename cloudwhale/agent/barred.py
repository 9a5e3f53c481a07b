"""Which host paths no container of a rented machine may be given: the machine's own.

Root in a container is root in what it is given. So nothing of the system, of Docker, of other jobs
or of the agent is mounted; what lies on a disk or share of its own is, as /mnt, /data, /srv,
/opt/dlami/nvme. A folder that others can write to could be changed between our look and Docker's.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

SYSTEM = tuple(
    Path(one)
    for one in (
        "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32",
        "/opt/cloudwhale", "/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var",
    )
)  # fmt: skip


def barred(mounts: Iterable[str], ours: Path) -> str:
    """Say which host path is not given to containers here, and why; empty: all are.

    `ours`: the agent's own folder.
    """
    for host in mounts:
        path = Path(os.path.realpath(host))
        of_machine = (*SYSTEM, Path(os.path.realpath(ours)))
        if any(path.is_relative_to(one) or one.is_relative_to(path) for one in of_machine):
            return (
                f"{host} is the machine's own: on a rented machine a container is given only what"
                " lies on a disk or share of its own, such as /mnt or /data"
            )
        loose = next((one for one in path.parents if _is_loose(one)), None)
        if loose is not None:
            return f"{host} lies below {loose}, which everybody can change"
    return ""


def _is_loose(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False
