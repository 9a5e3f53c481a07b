"""Opening the store by URL, with nothing of the database imported before that."""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from cloudwhale.control.store.address import REMEDY, is_postgres
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import StoreUnusable

if TYPE_CHECKING:
    from cloudwhale.control.store.lock import Lock
    from cloudwhale.control.store.sql import SqlStore

FILE = "cloudwhale.db"


def sqlite_url(home: Path) -> str:
    """Return the URL of the database in a folder of local state."""
    return f"sqlite:///{quote(str(home.absolute() / FILE))}"


def database_url(settings: Settings) -> str:
    """Return the URL of the database that the settings ask for."""
    return settings.database or sqlite_url(settings.home)


def path_of(url: str) -> Path:
    """Return the file of an SQLite URL; raise StoreUnusable when it names none."""
    # SQLAlchemy 2.0 and 2.1 differ in whether they unquote, so the path is taken out by hand.
    path = unquote(url.partition("://")[2].removeprefix("/"))
    if path in ("", ":memory:"):
        raise StoreUnusable(f"{url} names no file", REMEDY)
    return Path(path).absolute()


def lock_for(settings: Settings) -> "Lock":
    """Return the lock of who controls the queue: the database's own, or a file beside it.

    Raise StoreUnusable when the settings name no database.
    """
    url = database_url(settings)
    if is_postgres(url):
        _need_driver()
        from cloudwhale.control.store.session_lock import SessionLock

        return SessionLock(url)
    from cloudwhale.control.store.lock import HolderLock

    return HolderLock(lock_file(settings))


def turn_lock(settings: Settings) -> "Lock":
    """Return the lock of who submits: of two equal commands here the second finds the first's jobs.

    A file, for PostgreSQL too: equal commands are those of one folder on one host.
    """
    from cloudwhale.control.store.lock import HolderLock

    if is_postgres(database_url(settings)):
        return HolderLock(settings.home / "submit.lock")
    return HolderLock(lock_file(settings).with_suffix(".submit"))


def lock_file(settings: Settings) -> Path:
    """Return where the controller's lock of an SQLite database lies: beside it.

    So two homes with one database have one lock, whatever links lead there. Raise StoreUnusable
    when the settings name no file.
    """
    file = Path(os.path.realpath(path_of(database_url(settings))))  # `resolve` raises for a loop
    return file.with_name(f"{file.name}.lock")


def open_store(url: str, *, may_migrate: bool) -> "SqlStore":
    """Open a database, making a new one where there is none; raise StoreUnusable with a sentence.

    Only who holds the controller's lock may migrate an older one.
    """
    # SQLAlchemy takes a third of a second, PostgreSQL's driver a seventh.
    if is_postgres(url):
        _need_driver()
        from cloudwhale.control.store.postgres import PostgresDatabase
        from cloudwhale.control.store.sql import SqlStore

        return SqlStore(PostgresDatabase(url), may_migrate=may_migrate)
    from cloudwhale.control.store.sql import SqlStore
    from cloudwhale.control.store.sqlite import SqliteDatabase

    return SqlStore(SqliteDatabase(path_of(url)), may_migrate=may_migrate)


def _need_driver() -> None:
    try:
        import_module("psycopg")
    except ImportError as error:
        raise StoreUnusable(
            f"PostgreSQL needs a driver that cannot be loaded here ({str(error).splitlines()[0]})",
            "Install it: pip install 'cloudwhale[postgres]'",
        ) from error
