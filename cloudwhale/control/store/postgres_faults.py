"""What is wrong with a PostgreSQL server or the way to it, in a sentence with a remedy."""

import re

import psycopg
from sqlalchemy.exc import DBAPIError

from cloudwhale.control.store.faults import WHOLE_COPY
from cloudwhale.spi.errors import StoreUnusable

Sentence = tuple[str, str]

AWAY = (
    "Is the server running, and can it be reached from here? Nothing is lost: what was stored is "
    "whole, and what was not can be tried again."
)
CREDENTIALS = "Correct user and password: in `database`, in ~/.pgpass, or in $PGPASSWORD."

_BY_STATE: dict[str, Sentence] = {
    "28P01": ("does not take the password", CREDENTIALS),
    "28000": ("lets this user not in", f"{CREDENTIALS} pg_hba.conf says who may come from where."),
    "3D000": ("does not exist", "Make it: `createdb NAME` on the server; cloudwhale fills it."),
    "42501": (
        "lets this user not do that",
        "Make the user owner of the database: it makes tables there.",
    ),
    "53300": (
        "takes no more connections",
        "Raise max_connections on the server, or end what is connected and not needed.",
    ),
    "53100": (
        "cannot grow: its server's disk is full",
        "Free some space there; what was stored before is whole.",
    ),
    "53200": ("has no memory left on its server", "See what else runs there, then try again."),
    "25006": (
        "can only be read here: it is a standby, or was set to read-only",
        "Name the primary in `database`, or several hosts with target_session_attrs=read-write.",
    ),
    "55P03": (
        "is locked by another program, for longer than this one waits",
        "See who writes (`SELECT * FROM pg_stat_activity`), let it finish or end it.",
    ),
    "57014": (
        "took too long to answer",
        "Is its server busy, or waiting for somebody's lock? See pg_stat_activity there.",
    ),
    "25P03": (
        "ended a transaction of ours that did nothing for too long",
        "Was this host asleep, or overloaded? Nothing is lost: the same command goes on.",
    ),
    "57P03": ("is not ready yet: its server starts or stops", AWAY),
    "22P05": (
        "cannot hold this text: its encoding is not UTF-8",
        "Make it anew: `createdb -E UTF8 -T template0 NAME`.",
    ),
    "42P01": ("has lost a table of cloudwhale", WHOLE_COPY),
    "42703": ("has lost a column of cloudwhale", WHOLE_COPY),
    "XX001": ("is damaged", WHOLE_COPY),
    "XX002": ("is damaged", WHOLE_COPY),
}

_AWAY: Sentence = ("was lost while this program talked to it", AWAY)
_BY_CLASS: dict[str, Sentence] = {
    "08": _AWAY,
    "57": _AWAY,
    "40": ("was in each other's way with another program", "Try again; nothing is lost."),
    "53": ("lacks something that it needs on its server", "See the server's log."),
    "58": ("cannot be read or written by its server", "Is the server's disk there and healthy?"),
}

# While it connects the driver gives no code, only what was said: by the server in its language.
_BY_WORDS: tuple[tuple[str, Sentence], ...] = (
    ("password authentication failed", _BY_STATE["28P01"]),
    ("no password supplied", ("asks for a password", CREDENTIALS)),
    ("pg_hba.conf|authentication failed", _BY_STATE["28000"]),
    (
        'role ".*" does not exist',
        ("does not know this user", "Make the user: `createuser NAME` on the server."),
    ),
    ('database ".*" does not exist', _BY_STATE["3D000"]),
    ("too many clients|connection slots|too many connections", _BY_STATE["53300"]),
    ("starting up|shutting down|in recovery mode", _BY_STATE["57P03"]),
    ("session is read-only|server is in hot standby", _BY_STATE["25006"]),
)

_UNREACHABLE: Sentence = ("cannot be reached", AWAY)
_UNKNOWN: Sentence = ("cannot be used", "Is it a database of cloudwhale, and of this version?")


def unusable(name: str, error: DBAPIError | psycopg.Error) -> StoreUnusable | None:
    """Return what an error means, None for a bug of ours; no password is in it.

    `name` is how sentences call the database.
    """
    cause = error.orig if isinstance(error, DBAPIError) else error
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    state = getattr(cause, "sqlstate", None)
    known = _of_state(state) if state else _of_words(str(cause), lost=lost)
    if known is None and not isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        return None  # a broken constraint or a wrong statement is a bug of ours
    says, remedy = known or _UNKNOWN
    return StoreUnusable(f"{name} {says} ({_brief(cause)})", remedy)


def _of_state(state: str) -> Sentence | None:
    return _BY_STATE.get(state) or _BY_CLASS.get(state[:2])


def _of_words(said: str, *, lost: bool) -> Sentence | None:
    for words, sentence in _BY_WORDS:
        if re.search(words, said):
            return sentence
    return _AWAY if lost or "closed" in said else _UNREACHABLE


def _brief(cause: object) -> str:
    """Return the first line of what was said, or of the last of several tries."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    tries = [line for line in lines if "failed" in line or "error" in line]
    return (tries or lines or [type(cause).__name__])[-1 if tries else 0].lstrip("- ")
