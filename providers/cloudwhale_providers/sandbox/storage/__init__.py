"""The object store of Google's cloud in a box."""

from cloudwhale_providers.sandbox.storage.storage import Storage

__all__ = ["Storage"]
