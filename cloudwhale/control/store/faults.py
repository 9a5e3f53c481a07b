"""What is wrong with the database, in a sentence with a remedy."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DatabaseError, OperationalError

from cloudwhale.control.store.address import ELSEWHERE
from cloudwhale.spi.errors import StoreUnusable

WHOLE_COPY = (
    "End cloudwhale and its jobs. Then restore database, mailbox and CLOUDWHALE_HOME from one "
    "copy, or move all three away to begin anew: they belong together, and none fits an older one."
)

_FAULTS: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_BUSY: (
        "is locked by another program, for longer than this one waits",
        "See who has it open (`fuser {where}`), let it finish or end it, then try again.",
    ),
    sqlite3.SQLITE_READONLY: (
        "cannot be written",
        f"Make the file and its folder writable; or, {ELSEWHERE}",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        f"Are the folder and the file there, yours, and writable? Or, {ELSEWHERE}",
    ),
    sqlite3.SQLITE_PERM: (
        "may not be opened",
        f"Make the file and its folder yours; or, {ELSEWHERE}",
    ),
    sqlite3.SQLITE_FULL: (
        "cannot grow: its disk is full",
        "Free some space there, then try again; what was stored before is whole.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "is damaged",
        WHOLE_COPY,
    ),
    sqlite3.SQLITE_NOTADB: (
        "is not a database, or is damaged",
        WHOLE_COPY,
    ),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written",
        "Is its disk there, healthy, and not full? `dmesg` tells what the kernel saw.",
    ),
}
_FAULTS[sqlite3.SQLITE_LOCKED] = _FAULTS[sqlite3.SQLITE_BUSY]
_FAULTS[sqlite3.SQLITE_PROTOCOL] = _FAULTS[sqlite3.SQLITE_BUSY]

_UNKNOWN = ("cannot be used", "Is it a database of cloudwhale, and of this version?")

PRIMARY_CODE = 0xFF  # SQLite keeps the kind of an error in the lowest byte of its code


def is_busy(error: sqlite3.Error) -> bool:
    """Say whether somebody else has the database now, so that trying again may help."""
    return _FAULTS.get(error.sqlite_errorcode & PRIMARY_CODE) is _FAULTS[sqlite3.SQLITE_BUSY]


@contextmanager
def as_sentences(where: str) -> Generator[None]:
    """Raise StoreUnusable in place of what the database raises; bugs pass through."""
    try:
        yield
    except (DatabaseError, sqlite3.DatabaseError) as error:
        unusable = _unusable(where, error)
        if unusable is None:
            raise
        raise unusable from error


def _unusable(where: str, error: DatabaseError | sqlite3.DatabaseError) -> StoreUnusable | None:
    cause = error.orig if isinstance(error, DatabaseError) else error
    code = getattr(cause, "sqlite_errorcode", None)
    known = None if code is None else _FAULTS.get(code & PRIMARY_CODE)
    if known is None and not isinstance(error, OperationalError | sqlite3.OperationalError):
        return None  # a broken constraint or a wrong statement is a bug of ours
    says, remedy = known or _UNKNOWN
    return StoreUnusable(f"{where} {says} ({cause})", remedy.format(where=where))
