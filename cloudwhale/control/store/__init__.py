"""Where truth is kept."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudwhale.control.store.lock import HolderLock, Lock
    from cloudwhale.control.store.memory import MemoryStore
    from cloudwhale.control.store.opening import (
        database_url,
        lock_file,
        lock_for,
        open_store,
        sqlite_url,
        turn_lock,
    )
    from cloudwhale.control.store.sql import SqlStore

__all__ = [
    "HolderLock",
    "Lock",
    "MemoryStore",
    "SqlStore",
    "database_url",
    "lock_file",
    "lock_for",
    "open_store",
    "sqlite_url",
    "turn_lock",
]

_LAZY = {
    "HolderLock": "lock",
    "Lock": "lock",
    "MemoryStore": "memory",
    "SqlStore": "sql",
    "database_url": "opening",
    "lock_file": "opening",
    "lock_for": "opening",
    "open_store": "opening",
    "sqlite_url": "opening",
    "turn_lock": "opening",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
