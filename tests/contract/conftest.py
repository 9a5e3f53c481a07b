"""The stores that the contract is held to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudwhale.control.store import MemoryStore, open_store, sqlite_url
from cloudwhale.spi.store import Store


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Make an empty store of each kind."""
    made: Store
    if request.param == "memory":
        made = MemoryStore()
    elif request.param == "sqlite":
        made = open_store(sqlite_url(tmp_path), may_migrate=True)
    else:
        made = open_store(request.getfixturevalue("postgres_url"), may_migrate=True)
    yield made
    made.close()
