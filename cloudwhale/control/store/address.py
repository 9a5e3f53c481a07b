"""Database URLs: of which kind they are, and how they are shown without what is secret in them."""

import re

from cloudwhale.spi.errors import StoreUnusable

KINDS = "sqlite:////absolute/path or postgresql://user@host/database"
ELSEWHERE = "once nothing runs here, CLOUDWHALE_HOME can name another place to begin anew in."
REMEDY = f"Set `database` to {KINDS}, or leave it out."

_POSTGRES = frozenset({"postgresql", "postgresql+psycopg", "postgres"})
# To the last @: a password in which nobody has escaped @, / or ? is hidden whole, too.
_USER_INFO = re.compile(r"(?<=://)([^:@/?#]*):.*@", re.DOTALL)
_PARAMETER = re.compile(r"((?:ssl)?password=)[^&\s]*", re.IGNORECASE)


def is_postgres(url: str) -> bool:
    """Say whether a URL means PostgreSQL; raise StoreUnusable for neither that nor SQLite."""
    scheme, separator, _ = url.partition("://")
    if separator and scheme in _POSTGRES:
        return True
    if separator and scheme == "sqlite":
        return False
    kind = scheme if separator else ""
    says = f"a database of kind {kind!r} is not supported" if kind else "`database` is no URL"
    raise StoreUnusable(f"{says}: only SQLite and PostgreSQL are", REMEDY)


def for_libpq(url: str) -> str:
    """Return a PostgreSQL URL as PostgreSQL's own library understands it."""
    return f"postgresql://{url.partition('://')[2]}"


def masked(url: str) -> str:
    """Return a URL without the passwords in it, for people and logs."""
    return _PARAMETER.sub(r"\1***", _USER_INFO.sub(r"\1:***@", url))
