"""What a process has asked of an object store, and what it costs there."""

from cloudwhale.model.units import MicroUsd
from cloudwhale.model.value import Wire

WRITE_MICRO_USD = 5.0
READ_MICRO_USD = 0.4
"""S3 Standard in us-east-1: 0.005 USD for 1,000 PUT, POST or LIST, 0.0004 for 1,000 GET or HEAD,
by its price page, "Requests & data retrievals"."""


class StoreUse(Wire):
    """What one process has asked of the store since it began, and what left its machine else."""

    puts: int = 0
    """Writes; each part of a large object is one."""
    gets: int = 0
    """Reads and looks, misses included."""
    lists: int = 0
    deletes: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    left_bytes: int | None = None
    """Bytes that the machine has sent to others than the store: an estimate, from the counters of
    its network, which hold what protocols add, too; None: nobody can tell."""

    def and_(self, other: "StoreUse") -> "StoreUse":
        """Return the sum of both."""
        left = [one for one in (self.left_bytes, other.left_bytes) if one is not None]
        return StoreUse(
            puts=self.puts + other.puts,
            gets=self.gets + other.gets,
            lists=self.lists + other.lists,
            deletes=self.deletes + other.deletes,
            sent_bytes=self.sent_bytes + other.sent_bytes,
            received_bytes=self.received_bytes + other.received_bytes,
            left_bytes=sum(left) if left else None,
        )

    @property
    def requests(self) -> int:
        """Return how often the store was asked for anything."""
        return self.puts + self.gets + self.lists + self.deletes

    @property
    def cost(self) -> MicroUsd:
        """Return what the requests cost, about: to delete costs nothing."""
        writes, reads = self.puts + self.lists, self.gets
        return MicroUsd(round(writes * WRITE_MICRO_USD + reads * READ_MICRO_USD))
