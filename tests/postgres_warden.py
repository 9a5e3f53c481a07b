"""Runs a PostgreSQL server as long as somebody has a file locked, however those processes end.

python postgres_warden.py LOCKED FOLDER PROGRAM UID GID
"""

import fcntl
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


def main(locked: Path, folder: Path, program: str, user: dict[str, Any]) -> None:
    """Start the server in a folder; end it and remove the folder when nobody uses it."""
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [program, "-D", folder / "data"], cwd=folder, stdout=log, stderr=log, **user
        )
    with locked.open("r+") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        server.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
        server.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    uid, gid = int(sys.argv[4]), int(sys.argv[5])
    whose: dict[str, Any] = {} if uid < 0 else {"user": uid, "group": gid, "extra_groups": []}
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], whose)
