"""A job's output in files: secrets masked, the first and the last part kept, never in its way."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MASK = b"***"
SHORTEST_SECRET = 4
"""In bytes, of a secret, or of one line of it: masking "a" would leave nothing to read."""
SAYS_BYTES = 16384  # of the newest output: the sentence on how it ended is read from it


class Masks:
    """Replaces secret values in a stream, wherever the pieces of it are cut.

    A value is found whole, and each of its lines by itself, with and without the blanks around it.
    What a job makes of it (base64, a hash, one letter a line) is not a value any more.
    """

    def __init__(self, secrets: Sequence[bytes]) -> None:
        lines = {line for secret in secrets for line in (secret, *secret.splitlines())}
        lines |= {line.strip() for line in lines}
        self._secrets = sorted(line for line in lines if len(line) >= SHORTEST_SECRET)
        self._held = b""

    def masked(self, piece: bytes) -> bytes:
        """Return what can be shown now; the beginning of what may be a secret is held back."""
        if not self._secrets:
            return piece
        text = self._held + piece
        spans = self._spans(text)
        cut = len(text) - max(_begun(text, secret) for secret in self._secrets)
        for start, end in reversed(spans):
            if end > cut:
                cut = min(cut, start)
        self._held = text[cut:]
        return _without(text[:cut], [span for span in spans if span[1] <= cut])

    def rest(self) -> bytes:
        """Return what was held back: nothing comes any more."""
        held, self._held = self._held, b""
        return _without(held, self._spans(held))

    def _spans(self, text: bytes) -> list[tuple[int, int]]:
        """Return where secrets lie, overlapping ones as one, in order."""
        found: list[tuple[int, int]] = []
        for secret in self._secrets:
            at = text.find(secret)
            while at >= 0:
                found.append((at, at + len(secret)))
                at = text.find(secret, at + 1)
        spans: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if spans and start < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((start, end))
        return spans


def _begun(text: bytes, secret: bytes) -> int:
    """Return how many bytes at the end of a text may be the beginning of a secret."""
    first = secret[:1]
    at = text.find(first, max(0, len(text) - len(secret) + 1))
    while at >= 0:
        if secret.startswith(text[at:]):
            return len(text) - at
        at = text.find(first, at + 1)
    return 0


def _without(text: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], MASK)
        at = end
    parts.append(text[at:])
    return b"".join(parts)


class Segments:
    """Numbered files of one size; past the head only the newest ones stay."""

    def __init__(self, folder: str, segment: int, head: int, tail: int) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder = folder
        self._segment = segment
        self._head_count = max(1, head // segment)
        self._tail_count = -(-tail // segment) + 1  # one more: the newest is not full
        self._number = 0
        self._file = -1
        self._room = 0
        self.unwritten = 0
        """Bytes that the disk did not take."""
        self.newest = b""

    def write(self, piece: bytes) -> None:
        """Append; what the disk does not take is counted and gone."""
        if not piece:
            return
        self.newest = (self.newest + piece[-SAYS_BYTES:])[-SAYS_BYTES:]
        view = memoryview(piece)
        try:
            while view:
                if not self._room:
                    self._open_next()
                count = os.write(self._file, view[: self._room])
                self._room -= count
                view = view[count:]
        except OSError:
            self.unwritten += len(view)

    def give_way(self) -> bool:
        """Delete the newest file, so that the exit record finds room; False: there is none."""
        self.close()
        path = self._path(self._number)
        if self._number < 1 or not os.path.exists(path):
            return False
        self.unwritten += os.path.getsize(path)
        os.unlink(path)
        self._number -= 1
        return True

    def close(self) -> None:
        """Write no more."""
        if self._file >= 0:
            os.close(self._file)
        self._file, self._room = -1, 0

    def _open_next(self) -> None:
        number = self._number + 1
        file = os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.close()
        self._file, self._number, self._room = file, number, self._segment
        old = number - self._tail_count
        if old > self._head_count:
            os.unlink(self._path(old))

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:06d}"
