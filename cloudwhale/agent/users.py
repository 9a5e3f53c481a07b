"""A user of its own for each job of a rented machine: it sees neither other jobs nor the agent.

Ids are numbers without a name in the list of users. What the job may write belongs to it, the
attempt's folder can be entered by its group alone, and the machine's metadata service, which has
the store's credentials, does not answer it. Jobs in containers are kept apart by those.
"""

import os
import shutil
import stat
import subprocess
import threading
from pathlib import Path

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.place import Place, write_whole

FIRST_ID, IDS = 200_000, 100_000  # beyond the system's, its people's and most containers' ids
METADATA = "169.254.169.254"
NAME = "user"
"""File of an attempt's folder with its id."""


class Users:
    """Gives ids; made where the agent is root and was told to."""

    def __init__(self, place: Place) -> None:
        self._next = place.path / "users"
        self._turn = threading.Lock()

    def own(self, folder: AttemptFolder, checkpoints: Path) -> None:
        """Give an attempt's folders to a user of its own; raises OSError."""
        number = user_of(folder)
        if number is None:
            number = self._new()
            write_whole(folder.path / NAME, str(number))
        home = home_of(folder)
        home.mkdir(exist_ok=True)
        for path in {folder.work, checkpoints, home}:
            _give(path, number)
            os.chmod(path, 0o700)
        os.chown(folder.path, 0, number)
        os.chmod(folder.path, 0o710)

    def _new(self) -> int:
        with self._turn:
            try:
                number = int(self._next.read_text())
            except (OSError, ValueError):
                number = FIRST_ID
            write_whole(self._next, str(FIRST_ID + (number + 1 - FIRST_ID) % IDS))
            return number


def user_of(folder: AttemptFolder) -> int | None:
    """Return the user id of an attempt; None: it runs as the agent does."""
    try:
        return int((folder.path / NAME).read_text())
    except (OSError, ValueError):
        return None


def home_of(folder: AttemptFolder) -> Path:
    """Return the home of an attempt that has a user of its own."""
    return folder.path / "home"


def users_here(place: Place, *, wanted: bool) -> Users | None:
    """Return who gives ids, or None: it is not wanted, or cannot be."""
    return Users(place) if wanted and not obstacle(place) else None


def obstacle(place: Place) -> str:
    """Say why jobs cannot have users of their own here; empty when they can."""
    if os.geteuid() != 0:
        return "the agent is not root"
    for folder in (place.path, *place.path.parents):
        if folder.exists() and not folder.stat().st_mode & stat.S_IXOTH:
            return f"{folder} is closed to others"
    return ""


def block_metadata() -> str:
    """Keep jobs from the metadata service; say why that cannot be done, empty when it is."""
    program = shutil.which("iptables")
    if program is None:
        return "there is no iptables here: jobs can reach the metadata service"
    last = FIRST_ID + IDS - 1
    rule = ["OUTPUT", "-d", METADATA, "-m", "owner", "--uid-owner", f"{FIRST_ID}-{last}"]
    rule += ["-j", "REJECT"]
    for verb in ("-C", "-I"):  # is it there already? else put it first
        done = subprocess.run(
            [program, "-w", "5", verb, *rule], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return ""
    return f"jobs can reach the metadata service: {done.stderr.strip()}"


def _give(path: Path, number: int) -> None:
    """Give a folder and all below it to a user; links themselves, not what they lead to."""
    os.chown(path, number, number, follow_symlinks=False)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            os.chown(os.path.join(folder, name), number, number, follow_symlinks=False)
