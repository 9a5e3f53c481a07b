"""What this agent has asked of its store, and what else has left the machine, for the bill."""

import importlib
from typing import Any
from urllib.parse import urlsplit

from cloudwhale.mailbox.counting import Counts
from cloudwhale.mailbox.kinds import endpoint_of
from cloudwhale.mailbox.objects import Objects, StoreObjects
from cloudwhale.model.requests import StoreUse

LOOPBACK = ("localhost", "::1")


class Traffic:
    """Sums since the agent began; psutil is loaded at the first question."""

    def __init__(self, objects: Objects) -> None:
        self._counts: Counts | None = None
        if isinstance(objects, StoreObjects) and objects.folder is None:
            self._counts = objects.counts
        # A store on this host is a sandbox's: its machines share the counters of one network.
        self._tells = self._counts is not None and not _is_here(objects)
        self._psutil: Any = None
        self._sent_before = self._sent() if self._tells else 0

    def use(self) -> StoreUse | None:
        """Return what was asked until now; None: the store is a folder, and costs nothing."""
        if self._counts is None:
            return None
        use = self._counts.use
        if not self._tells:
            return use
        # What goes to the store of its own region is not billed as leaving.
        return use.but(left_bytes=max(0, self._sent() - self._sent_before - use.sent_bytes))

    def _sent(self) -> int:
        if self._psutil is None:
            self._psutil = importlib.import_module("psutil")
        network = self._psutil.net_io_counters(pernic=True)
        return sum(int(one.bytes_sent) for name, one in network.items() if name != "lo")


def _is_here(objects: Objects) -> bool:
    endpoint = endpoint_of(objects.url) if isinstance(objects, StoreObjects) else ""
    host = urlsplit(endpoint).hostname or ""
    return host in LOOPBACK or host.startswith("127.")
