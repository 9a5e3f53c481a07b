"""The log of one attempt: read in order, as it grows and after it was merged."""

import codecs

from cloudwhale.mailbox import gaps
from cloudwhale.mailbox.box import log_of, whole_log_key
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Seconds

CHUNKS_AT_ONCE = 200
"""So many chunks are read before a reader is given something to show."""

READ_AFAR_S: Seconds = 2.0  # each look into a store that is not a folder costs a request


def look_every_s(objects: Objects, near_s: Seconds) -> Seconds:
    """Return how often a log is looked at: every `near_s` when it lies on this host."""
    return near_s if objects.folder is not None else READ_AFAR_S


class Tail:
    """Remembers how far an attempt's log was read."""

    def __init__(self, objects: Objects, job: str, attempt: int) -> None:
        self._objects = objects
        self._box = log_of(objects, job, attempt)
        self._whole_key = whole_log_key(job, attempt)
        self._number = 0
        self._place = 0
        self._merged = False
        self._held: list[bytes] = []
        """Read and not returned yet: the store may fail between two reads."""

    def more(self) -> bytes:
        """Return what came since the last call; empty when nothing did.

        After StoreUnusable nothing is lost: the next call returns what was read before it, too.
        """
        self._read_on()
        return self._taken()

    def rest(self) -> bytes:
        """Return what is left of an attempt that has ended; chunks are gone once merged."""
        while self._read_on():
            pass
        whole = None if self._merged else self._objects.get(self._whole_key)
        if whole is not None:
            self._merged = True
            self._held.append(gaps.after(whole, self._place))
        return self._taken()

    def _read_on(self) -> bool:
        """Read the chunks that are there, a bounded number; return whether there was one."""
        for count in range(CHUNKS_AT_ONCE):
            chunk = None if self._merged else self._box.read(self._number + 1)
            if chunk is None:
                return count > 0
            self._number += 1
            self._place += gaps.stands_for(chunk)
            self._held.append(chunk)
        return True

    def _taken(self) -> bytes:
        data = b"".join(self._held)
        self._held.clear()
        return data


class Lines:
    """Cuts a stream of bytes into lines of text; the last, unfinished one is kept back."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial = ""

    @property
    def partial(self) -> str:
        """The unfinished line, as a terminal shows it: a carriage return starts it anew."""
        return self._partial.rstrip("\r").rsplit("\r", 1)[-1]

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that were finished."""
        *lines, self._partial = (self._partial + self._decoder.decode(data)).split("\n")
        return [line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines]

    def end(self) -> list[str]:
        """Return the unfinished line when there is one, and start afresh."""
        left, self._partial = self.partial, ""
        return [left] if left else []
