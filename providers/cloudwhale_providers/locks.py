"""Whether some process holds a lock file: so agents and boxes say that they live."""

import fcntl
import os
from pathlib import Path


def is_held(lock: Path) -> bool:
    """Say whether some process holds a lock; one whose file is not there is held by nobody."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
