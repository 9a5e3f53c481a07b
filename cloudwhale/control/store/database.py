"""What the store asks of a kind of database; everything else about it is said in SQL."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine

from cloudwhale.control.store import tables

SCRIPTS = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True)
class Schema:
    """The revision that a program needs, and the folder of scripts that lead to it."""

    head: str = tables.HEAD
    scripts: Path = SCRIPTS


@dataclass(frozen=True, slots=True)
class Advice:
    """Words for whoever meets a database of another version; `{head}` and `{found}` are filled."""

    older: str
    """What to do before a controller migrates it."""
    newer: str
    """Where a copy from before the migration is."""
    another: str
    """How to choose another database."""


class Database(Protocol):
    """One place where rows lie. Its methods are called by one thread at a time."""

    @property
    def name(self) -> str:
        """How sentences call it, without what is secret."""
        ...

    @property
    def reader(self) -> Engine:
        """Transactions that read one snapshot and never wait for a writer."""
        ...

    @property
    def writer(self) -> Engine:
        """Transactions that write, one at a time over all processes; each sees the last one."""
        ...

    @property
    def advice(self) -> Advice:
        """See Advice."""
        ...

    def beat(self) -> int:
        """Return a number that is another one after events were stored, by whomever; cheap."""
        ...

    def returned(self) -> int:
        """Return how often it went away and came back; what was read before is no longer sure."""
        ...

    def before_migration(self, connection: Connection, head: str) -> None:
        """Make a copy and time for a migration, which may read every event there is.

        Raise StoreUnusable when that cannot be.
        """
        ...

    def faults(self) -> AbstractContextManager[None]:
        """Raise StoreUnusable in place of what the driver raises; bugs pass through."""
        ...

    def close(self) -> None:
        """Let go of connections; may be called twice."""
        ...
