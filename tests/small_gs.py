"""Cloud Storage on loopback, for tests: the sandbox's own, and what its clients are told."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from cloudwhale.clock import SystemClock
from cloudwhale_providers.sandbox.names import GCP_BUCKET
from cloudwhale_providers.sandbox.storage import Storage

URL = f"gs://{GCP_BUCKET}/folder"


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch) -> Generator[Storage]:
    """Serve meanwhile, to clients of this process."""
    storage = Storage(SystemClock())
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage.start())
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "none-that-is-real")
    try:
        yield storage
    finally:
        storage.close()
