"""Where truth is kept."""

from cloudwhale.control.store.lock import HolderLock
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.control.store.opening import open_store, sqlite_url

__all__ = ["HolderLock", "MemoryStore", "open_store", "sqlite_url"]
