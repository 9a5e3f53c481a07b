"""Where words go: tables and colours to a terminal, plain text to a pipe, one document as JSON."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, TextIO

from cloudwhale.cli.here import document_here, sheet_here
from cloudwhale.control.given import as_given_here
from cloudwhale.reporting.sheet import clean

if TYPE_CHECKING:
    from rich.console import Console

    from cloudwhale.reporting.sheet import Line, Sheet

PLAIN_WIDTH = 100
"""Where running text is wrapped that goes to a pipe."""


def emit(document: Mapping[str, Any]) -> None:
    """Print the one document of a `--json` command."""
    json.dump(document_here(document), sys.stdout, default=_json_form, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")


def _json_form(value: object) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def is_terminal(stream: TextIO) -> bool:
    """Say whether a person looks at a stream."""
    return stream.isatty()


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a sentence and let it out at once."""
    print(clean(as_given_here(text)), file=stream or sys.stdout, flush=True)


def console_on(stream: TextIO) -> "Console":
    """Return a console for a terminal."""
    from rich.console import Console

    return Console(file=stream, highlight=False, soft_wrap=False)


class Paper:
    """One stream to show things on, drawn as it deserves."""

    def __init__(self, stream: TextIO, *, plain: bool = False) -> None:
        self.stream = stream
        self.console = console_on(stream) if is_terminal(stream) and not plain else None

    @property
    def width(self) -> int:
        """Columns that running text may take."""
        return self.console.width if self.console else PLAIN_WIDTH

    def sheet(self, sheet: "Sheet") -> None:
        """Show a table with its notes."""
        sheet = sheet_here(sheet)
        if self.console is not None:
            from cloudwhale.reporting.drawn import show

            show(self.console, sheet)
            return
        from cloudwhale.reporting.sheet import plain_lines

        self._write(plain_lines(sheet))

    def lines(self, lines: Sequence["Line"]) -> None:
        """Show lines that are wrapped already."""
        if self.console is not None:
            from cloudwhale.reporting.drawn import show_lines

            show_lines(self.console, lines)
            return
        from cloudwhale.reporting.sheet import text_of

        self._write([text_of(line).rstrip() for line in lines])

    def say(self, text: str) -> None:
        """Show a sentence."""
        text = clean(as_given_here(text))
        if self.console is not None:
            self.console.print(text, markup=False, highlight=False)
        else:
            self._write([text])

    def _write(self, lines: Sequence[str]) -> None:
        self.stream.write("".join(f"{line}\n" for line in lines))
        self.stream.flush()


def stdout_paper() -> Paper:
    """Return standard output to show things on."""
    return Paper(sys.stdout)


def stderr_paper() -> Paper:
    """Return standard error to show things on, beside a document on standard output."""
    return Paper(sys.stderr)


Drawn = Callable[[Paper], None]


def document_or(as_json: bool, document: Callable[[], Mapping[str, Any]], drawn: Drawn) -> None:
    """Print the document when it was asked for, else draw."""
    if as_json:
        emit(document())
    else:
        drawn(stdout_paper())
