"""Opening the store by URL, with nothing of the database imported before that."""

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from cloudwhale.settings import Settings
from cloudwhale.spi.errors import StoreUnusable

if TYPE_CHECKING:
    from cloudwhale.control.store.sql import SqlStore

FILE = "cloudwhale.db"
ELSEWHERE = "once nothing runs here, CLOUDWHALE_HOME can name another place to begin anew in."


def sqlite_url(home: Path) -> str:
    """Return the URL of the database in a folder of local state."""
    return f"sqlite:///{quote(str(home.absolute() / FILE))}"


def database_url(settings: Settings) -> str:
    """Return the URL of the database that the settings ask for."""
    return settings.database or sqlite_url(settings.home)


def path_of(url: str) -> Path:
    """Return the file of a database URL; raise StoreUnusable when it names none."""
    remedy = "Set `database` to sqlite:////absolute/path, or leave it out."
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite":
        raise StoreUnusable(f"a database of kind {scheme!r} is not supported, only sqlite", remedy)
    # SQLAlchemy 2.0 and 2.1 differ in whether they unquote, so the path is taken out by hand.
    path = unquote(rest.removeprefix("/"))
    if path in ("", ":memory:"):
        raise StoreUnusable(f"{url} names no file", remedy)
    return Path(path).absolute()


def lock_file(settings: Settings) -> Path:
    """Return where the controller's lock lies: beside the database that it guards.

    So two homes with one database have one lock, whatever links lead there. Raise StoreUnusable
    when the settings name no file.
    """
    file = Path(os.path.realpath(path_of(database_url(settings))))  # `resolve` raises for a loop
    return file.with_name(f"{file.name}.lock")


def open_store(url: str, *, may_migrate: bool) -> "SqlStore":
    """Open a database, making a new one where there is none; raise StoreUnusable with a sentence.

    Only who holds the controller's lock may migrate an older one.
    """
    from cloudwhale.control.store.sql import SqlStore  # SQLAlchemy takes a third of a second

    return SqlStore(url, may_migrate=may_migrate)
