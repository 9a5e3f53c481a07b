"""The folder that a shim shares with its container: two pipes, and a file of notes."""

import errno
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from cloudwhale.agent.containers.script import NOTES, OUTPUT, SECRETS
from cloudwhale.agent.shim_files import PIPE_BYTES, READ_BYTES, enlarge

NOTES_BYTES = 1 << 16  # a few words a line; what is longer is not ours


class Box:
    """Made before the container, read while it runs and after its end."""

    def __init__(self, folder: Path, secrets: Mapping[str, str], user: int | None = None) -> None:
        self.path = folder
        folder.mkdir(exist_ok=True)
        (folder / NOTES).unlink(missing_ok=True)
        # Open for writing too: it never ends, and no writer is held up.
        self.output = os.open(_pipe(folder / OUTPUT), os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
        enlarge(self.output)
        lines = (f"export {name}={shlex.quote(value)}\n" for name, value in secrets.items())
        self._secrets = "".join(lines).encode()
        if self._secrets:
            _pipe(folder / SECRETS)
        if user is not None:
            for path in (folder, *folder.iterdir()):
                os.chown(path, user, user)

    @property
    def waits(self) -> bool:
        """Say whether the secrets were not handed over yet."""
        return bool(self._secrets)

    def hand_over(self) -> None:
        """Give the secrets to the container once it reads; raise OSError when they do not fit."""
        if not self._secrets:
            return
        try:
            pipe = os.open(self.path / SECRETS, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nobody reads yet
                return
            raise
        try:
            enlarge(pipe)
            if os.write(pipe, self._secrets) < len(self._secrets):
                raise OSError(errno.E2BIG, f"secrets must be smaller than {PIPE_BYTES} bytes")
        finally:
            os.close(pipe)
        self._secrets = b""

    def read(self) -> bytes:
        """Return some output; empty when there is none now."""
        try:
            return os.read(self.output, READ_BYTES)
        except BlockingIOError:
            return b""

    def notes(self) -> dict[str, str]:
        """Return what the container has noted: a word and what belongs to it."""
        text = self._noted().decode(errors="replace")
        lines = (line.partition(" ") for line in text.splitlines())
        return {word: rest for word, _, rest in lines}

    def _noted(self) -> bytes:
        """Return the notes as they are; the job can put a link or a pipe in their place."""
        try:
            file = os.open(self.path / NOTES, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return b""
        try:
            return os.read(file, NOTES_BYTES)
        except OSError:
            return b""
        finally:
            os.close(file)

    def close(self) -> None:
        """Take the pipes away."""
        os.close(self.output)
        for name in (OUTPUT, SECRETS):
            (self.path / name).unlink(missing_ok=True)


def _pipe(path: Path) -> Path:
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    return path
