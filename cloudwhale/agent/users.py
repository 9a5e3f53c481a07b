"""A user of its own for each job of a rented machine: it sees neither other jobs nor the agent.

Ids are numbers without a name in the list of users. What the job may write belongs to it, the
attempt's folder can be entered by its group alone, and the machine's metadata service, which has
the store's credentials, does not answer it. Jobs in containers are kept apart by those, and have
such a user where a container is in the host's own network.
"""

import os
import stat
import threading
from pathlib import Path

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.barred import barred
from cloudwhale.agent.metadata import block_metadata
from cloudwhale.agent.place import Place, write_whole
from cloudwhale.mailbox.documents import StartOrder

FIRST_ID, IDS = 200_000, 100_000  # beyond the system's, its people's and most containers' ids
NAME = "user"
"""File of an attempt's folder with its id."""


class Users:
    """Gives ids; made where the agent is root and was told to."""

    def __init__(self, place: Place) -> None:
        self._ours = place.path
        self._next = place.path / "users"
        self._turn = threading.Lock()
        for path in (place.path, place.attempts):
            os.chmod(path, 0o711)  # what is in there is nobody's to list

    def own(self, order: StartOrder, folder: AttemptFolder, checkpoints: Path) -> None:
        """Give an attempt's folders to a user of its own; raises OSError.

        A job that can be root in a container sees there what it is given, and has none. Raise
        ValueError when it wants to be given what no job may have here.
        """
        if order.image is not None:
            barring = barred(order.mounts, self._ours)
            if barring:
                raise ValueError(barring)
            if not order.host_network:
                return
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


def apart(place: Place) -> str:
    """Make sure that jobs can be kept from one another and from the store's credentials.

    Say why they cannot; empty when they can. Done again, it changes nothing.
    """
    lacks = obstacle(place)
    if lacks:
        return f"all jobs run as the agent's own user: {lacks}"
    return block_metadata(FIRST_ID, FIRST_ID + IDS - 1)


def _give(path: Path, number: int) -> None:
    """Give a folder and all below it to a user; links themselves, not what they lead to."""
    os.chown(path, number, number, follow_symlinks=False)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            os.chown(os.path.join(folder, name), number, number, follow_symlinks=False)
