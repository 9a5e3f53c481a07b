"""A box: numbered documents of one writer, each created once under the next number."""

from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Instant

NODE_FOLDERS = ORDERS, INBOX, CLAIMS, BOOTS = "orders", "inbox", "agents", "boots"
"""Each has a folder for every node."""
DOOR = "@"
"""Before and behind the door of a node in the name of its folder; no node's name holds it."""
BUNDLES = "bundles"


class Box:
    """`<prefix>/000001.json`, `<prefix>/000002.json`, …"""

    def __init__(self, objects: Objects, prefix: str, suffix: str = "json") -> None:
        self._objects = objects
        self._prefix = prefix
        self._suffix = suffix

    def key(self, number: int) -> str:
        """Return the key of a document."""
        return f"{self._prefix}/{number:06d}.{self._suffix}"

    def post(self, body: bytes, after: int) -> int:
        """Create the document under the first free number after `after`; return the number."""
        number = after + 1
        while not self.create(number, body):
            number += 1
        return number

    def read(self, number: int) -> bytes | None:
        """Return a document, or None when it was not written yet (or is long gone)."""
        return self._objects.get(self.key(number))

    def create(self, number: int, body: bytes) -> bool:
        """Create the document under this number; False when there is one: that is unchanged."""
        return self._objects.create(self.key(number), body)

    def posted_at(self, number: int) -> Instant | None:
        """Return when a document was posted, by the store's clock, or None when it is not there."""
        return self._objects.modified_at(self.key(number))

    def newest(self) -> int:
        """Return the highest number that was written, 0 for none; lists, so ask once."""
        return max(self._numbers(), default=0)

    def first_kept(self, number: int) -> int:
        """Return the number itself, or a later one when what lay between was deleted by age.

        Lists when the number is not there, so ask seldom.
        """
        if self.read(number) is not None:
            return number
        # The number itself may have come since.
        later = [n for n in self._numbers() if n >= number]
        return min(later, default=number)

    def _numbers(self) -> list[int]:
        keys = [key for key in self._objects.keys(self._prefix) if key.endswith(self._suffix)]
        return [int(key.rsplit("/", 1)[1].split(".", 1)[0]) for key in keys]

    def forget(self, first: int, last: int) -> None:
        """Delete documents that were read long ago."""
        self._objects.delete([self.key(number) for number in range(first, last + 1)])


def folder_of(node: str, door: str) -> str:
    """Return what the folders of a node are called: by its name, behind its door if it has one.

    A door is how the store knows who asks, so that it opens a machine's folders to that machine
    alone. It comes first: whatever a machine writes below its own door, nothing of it lies in, or
    looks like, another's folder, also where a rule's `*` takes slashes (as that of IAM does).
    """
    return f"{DOOR}{door}{DOOR}{node}" if door else node


def node_in(folder: str) -> str:
    """Return the name of the node that a folder is called after."""
    return folder.rpartition(DOOR)[2]


def orders_to(objects: Objects, folder: str) -> Box:
    """Return the box that the controller writes and one node's agent reads; see `folder_of`."""
    return Box(objects, f"{ORDERS}/{folder}")


def inbox_from(objects: Objects, folder: str) -> Box:
    """Return the box that one node's agent writes and the controller reads."""
    return Box(objects, f"{INBOX}/{folder}")


def claims_of(objects: Objects, folder: str) -> Box:
    """Return the box in which agents claim a node's name; the newest claim holds."""
    return Box(objects, f"{CLAIMS}/{folder}")


def boot_of(objects: Objects, folder: str) -> Box:
    """Return the box in which a machine tells how far its first boot is, before its agent lives."""
    return Box(objects, f"{BOOTS}/{folder}")


def bundle_key(sha256: str) -> str:
    """Return the key of the agent's archive."""
    return f"{BUNDLES}/{sha256}.tar.gz"


def forget_node(objects: Objects, folder: str) -> None:
    """Delete all that was said to a node and by it in one folder; raise StoreUnusable."""
    for box in NODE_FOLDERS:
        objects.delete(objects.keys(f"{box}/{folder}"))


def log_of(objects: Objects, job: str, attempt: int, rank: int | None = None) -> Box:
    """Return the chunks of an attempt's log, in order; raw bytes, not JSON."""
    return Box(objects, f"logs/{job}/{attempt}{_of_rank(rank)}", "log")


def whole_log_key(job: str, attempt: int, rank: int | None = None) -> str:
    """Return the key of the merged log, written when the attempt has ended."""
    return f"logs/{job}/{attempt}{_of_rank(rank)}.log"


def _of_rank(rank: int | None) -> str:
    """Return what the log of a gang's rank is called after: that of rank 0 is the attempt's."""
    return f"-rank{rank}" if rank else ""


def checkpoint_prefix(job: str, attempt: int, seq: int, rank: int | None = None) -> str:
    """Return the folder of one published checkpoint; each rank of a gang has its own."""
    of_rank = "" if rank is None else f".{rank}"
    return f"checkpoints/{job}/{attempt}-{seq}{of_rank}"


def outputs_prefix(job: str, attempt: int) -> str:
    """Return the folder of what an attempt leaves, whole once `manifest.json` is there.

    That is a `documents.Manifest` whose paths are relative to the job's working folder.
    """
    return f"outputs/{job}/{attempt}"


def workdir_key(sha256: str) -> str:
    """Return the key of a packed working directory."""
    return f"workdirs/{sha256}.tar.gz"
