"""Keeps packed working directories on the node by what they hold: fetched once, for all jobs."""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from cloudwhale.agent.patience import patiently
from cloudwhale.agent.restoring import Broken
from cloudwhale.mailbox.objects import Objects

FOLDER = "workdirs"
KEPT_BYTES = 2 << 30
READ_BYTES = 1 << 20


def kept(key: str, node: Path, objects: Objects) -> Path:
    """Return an archive on this disk, whole; fetched when it is not there yet.

    `node`: the node's own folder. Raise Broken, StoreUnusable, or this disk's OSError.
    """
    folder = node / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    archive = folder / Path(key).name
    if not archive.exists():
        _fetch(key, archive, objects)
    elif _sha256(archive) not in key:  # the disk has lost what was written before a power cut
        archive.unlink()
        _fetch(key, archive, objects)
    os.utime(archive)
    return archive


def make_room(node: Path, most_bytes: int = KEPT_BYTES) -> None:
    """Forget the archives that were used longest ago, until the others are few enough.

    What an agent that was killed has fetched in part goes, too: a node has one agent at a time.
    """
    for draft in (node / FOLDER).glob(".*"):
        if not draft.name.startswith(_drafts()):
            draft.unlink(missing_ok=True)
    found = [(one.stat(), one) for one in (node / FOLDER).glob("*.tar.gz")]
    room = most_bytes
    for told, one in sorted(found, key=lambda pair: pair[0].st_mtime, reverse=True):
        room -= told.st_size
        if room < 0:
            one.unlink(missing_ok=True)


def _fetch(key: str, archive: Path, objects: Objects) -> None:
    handle, name = tempfile.mkstemp(prefix=_drafts(), dir=archive.parent)
    os.close(handle)
    draft = Path(name)
    try:
        found = patiently(lambda: objects.get_file(key, draft))
        if found is None:
            raise Broken(f"the working directory {key} is not in the store any more")
        if found not in key:
            raise Broken(f"the working directory {key} is damaged: its sha256 is {found}")
        draft.rename(archive)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _drafts() -> str:
    """Return how what this process fetches is called until it is whole."""
    return f".{os.getpid()}-"


def _sha256(archive: Path) -> str:
    digest = hashlib.sha256()
    with archive.open("rb") as file:
        while piece := file.read(READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()
