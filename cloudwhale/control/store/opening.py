"""Opening the store by URL, with nothing of the database imported before that."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from cloudwhale.control.store.sql import SqlStore

FILE = "cloudwhale.db"


def sqlite_url(home: Path) -> str:
    """Return the URL of the database in a folder of local state."""
    return f"sqlite:///{quote(str(home.absolute() / FILE))}"


def open_store(url: str, *, may_migrate: bool) -> "SqlStore":
    """Open a database, making a new one where there is none; raise StoreUnusable with a sentence.

    Only who holds the controller's lock may migrate an older one.
    """
    from cloudwhale.control.store.sql import SqlStore  # SQLAlchemy takes a third of a second

    return SqlStore(url, may_migrate=may_migrate)
