"""What happens first and last: the command is called, its errors become sentences and codes."""

import errno
import gc
import io
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from cloudwhale.cli.exits import Exit, WrongUsage, for_error
from cloudwhale.control.given import as_given_here
from cloudwhale.reporting.sheet import clean
from cloudwhale.spi.errors import CloudwhaleError, IllegalTransition

# Importing makes two hundred thousand objects that live for ever; looking through them for garbage
# again and again costs a twentieth of a command's start. What counts is objects that were made and
# not freed, so this bounds what a controller keeps of cycles: some 30 MB.
GARBAGE_AFTER = 150_000


def main() -> None:
    """Run the command that was typed; ends the process with its exit code."""
    gc.set_threshold(GARBAGE_AFTER)
    _encode_what_can_be()
    with Sentences():
        _must_be_text(sys.argv[1:])
        from cloudwhale.cli.app import whole_app

        whole_app()(prog_name="cloudwhale")


def _encode_what_can_be() -> None:
    """A terminal without some letter shows another in its place; closed streams take all."""
    if sys.stdout is None or sys.stderr is None:
        nowhere = open(os.devnull, "w")
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _must_be_text(words: Sequence[str]) -> None:
    """Raise WrongUsage for a word whose bytes are no text: nothing of it could be kept or shown."""
    for number, word in enumerate(words, 1):
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = word.encode(errors="surrogateescape").decode(errors="backslashreplace")
            raise WrongUsage(
                f"Word {number} of the command, {shown}, is not UTF-8.",
                "Give it in UTF-8; a file of such a name has to be renamed.",
            ) from None


class Sentences:
    """Within it, no error reaches the user as a traceback."""

    def __enter__(self) -> Self:
        self._thread_hook, threading.excepthook = threading.excepthook, _thread_died
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        threading.excepthook = self._thread_hook
        if isinstance(error, CloudwhaleError) and not isinstance(error, IllegalTransition):
            complain(str(error))
            raise SystemExit(for_error(error)) from None
        if isinstance(error, OSError) and error.errno in (errno.EPIPE, errno.EIO):
            raise SystemExit(Exit.TROUBLE) from None  # whoever read our words has gone
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            complain(f"nothing more can be written: {error.strerror}.\nMake room, then try again.")
            raise SystemExit(Exit.TROUBLE) from None
        if isinstance(error, FileNotFoundError) and _folder_is_gone():
            complain(
                "the folder that this command was given in is gone.\n"
                "Go to another one: `cd` to a folder that exists."
            )
            raise SystemExit(Exit.TROUBLE) from None
        if isinstance(error, Exception):
            complain(_surprise(error))
            raise SystemExit(Exit.BUG) from None


def complain(text: str) -> None:
    """Print a sentence, and its remedy on the next line, on standard error."""
    says, _, remedy = clean(as_given_here(text)).partition("\n")
    lines = [f"cloudwhale: {says}", *(f"  {line}" for line in remedy.splitlines())]
    print("\n".join(lines), file=sys.stderr, flush=True)


def _folder_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _thread_died(told: threading.ExceptHookArgs) -> None:
    """Say what ended a thread; the follower notices that it is gone."""
    if isinstance(told.exc_value, Exception):
        complain(_surprise(told.exc_value))


def _surprise(error: Exception) -> str:
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    told = "".join(traceback.format_exception(error))
    file = _written(told)
    where = f"The whole trace is in {file}" if file else f"The whole trace:\n{told}"
    return (
        f"a bug in cloudwhale itself stopped this command: {what}\n"
        f"{where}\nNothing that was queued is lost; the same command again goes on where it was."
    )


def _written(told: str) -> Path | None:
    """Write a trace into the home folder; None when nothing can be written there."""
    from cloudwhale.clock import SystemClock
    from cloudwhale.settings import default_home

    folder = default_home() / "traces"
    file = folder / f"{SystemClock().now():.3f}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        typed = " ".join(sys.argv)
        file.write_text(f"{typed}\n{told}", encoding="utf-8", errors="backslashreplace")
    except OSError:
        return None
    return file
