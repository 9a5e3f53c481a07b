"""A mailbox in memory that rings when somebody posts: nobody in the simulator has to poll."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import StoreUnusable

Bell = Callable[[str], object]
"""Called with the folder of the node whose box has a new document."""


class RingingObjects:
    """Objects in a dictionary; see mailbox/objects. For one thread, and without files."""

    folder: Path | None = None

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._bodies: dict[str, tuple[bytes, Instant]] = {}
        self._below: dict[str, dict[str, None]] = {}
        """The keys in each folder, in the order in which they came."""
        self._bells: dict[str, Bell] = {}

    def ring(self, box: str, bell: Bell) -> None:
        """Call the bell for every new document below a box: `inbox`, `orders`."""
        self._bells[box] = bell

    def create(self, key: str, body: bytes) -> bool:
        """See Objects."""
        if key in self._bodies:
            return False
        self._bodies[key] = (body, self._now())
        folder = key.rpartition("/")[0]
        self._below.setdefault(folder, {})[key] = None
        box, _, node = folder.partition("/")
        if box in self._bells:
            self._bells[box](node)
        return True

    def get(self, key: str) -> bytes | None:
        """See Objects."""
        found = self._bodies.get(key)
        return None if found is None else found[0]

    def keys(self, prefix: str) -> Sequence[str]:
        """See Objects."""
        inside = self._below.get(prefix, {})
        deeper = [
            key
            for folder, keys in self._below.items()
            if folder.startswith(f"{prefix}/")
            for key in keys
        ]
        return sorted((*inside, *deeper))

    def folders(self, prefix: str) -> Sequence[str]:
        """See Objects."""
        begin = f"{prefix}/"
        names = {f[len(begin) :].split("/")[0] for f in self._below if f.startswith(begin)}
        return sorted(names)

    def modified_at(self, key: str) -> Instant | None:
        """See Objects."""
        found = self._bodies.get(key)
        return None if found is None else found[1]

    def size_bytes(self, key: str) -> int | None:
        """See Objects."""
        found = self._bodies.get(key)
        return None if found is None else len(found[0])

    def delete(self, keys: Sequence[str]) -> None:
        """See Objects."""
        for key in keys:
            if self._bodies.pop(key, None) is not None:
                folder = key.rpartition("/")[0]
                del self._below[folder][key]
                if not self._below[folder]:
                    del self._below[folder]

    def put_chunks(self, key: str, chunks: Iterable[bytes]) -> None:
        """See Objects."""
        self.delete([key])
        self.create(key, b"".join(chunks))

    def put_file(self, key: str, path: Path) -> str:
        """Refuse: nothing in the simulator has files."""
        raise StoreUnusable(f"{path} cannot lie in a simulated mailbox")

    def get_file(self, key: str, path: Path) -> str | None:
        """Refuse: nothing in the simulator has files."""
        raise StoreUnusable(f"{key} of a simulated mailbox cannot be written to {path}")
