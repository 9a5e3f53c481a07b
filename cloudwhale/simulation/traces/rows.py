"""Rows of a CSV file, plain or gzipped: one a line, and a fault says where it stands."""

import csv
import gzip
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast

from cloudwhale.spi.errors import SpecError

GZIP = b"\x1f\x8b"
LINE_MOST = 1 << 20
"""Bytes: a line that is longer belongs to no table of jobs."""

Kind = Literal[
    "not UTF-8", "no CSV", "fields missing", "value missing", "not a number", "out of range",
    "not a name", "duplicate job", "out of order", "fits nowhere", "never ran", "cut short",
]  # fmt: skip
"""What can be wrong with a row; skipped ones are counted by it."""

BOM = "\ufeff"
SHOWN_MOST = 60
"""Characters of a value that are shown of it: one that is longer would hide the sentence."""


def brief(text: str, most: int = SHOWN_MOST) -> str:
    """Return a text as a fault quotes it, cut when it is long."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


@dataclass(frozen=True, slots=True)
class Spot:
    """Where something stands; None: it is about all of the file, or of the line."""

    file: str
    line: int | None = None
    column: int | None = None


NOWHERE = Spot("")


class TraceError(SpecError):
    """A trace cannot be read: it names the file, the line, the column, the value, the remedy."""

    def __init__(
        self, says: str, remedy: str, at: Spot = NOWHERE, kind: Kind | None = None
    ) -> None:
        super().__init__(says, remedy, file=at.file, line=at.line, column=at.column)
        self.kind: Kind | None = kind
        """None: it is not one row that is wrong, and nothing can be skipped."""
        self._bare, self._at = says, at

    def or_else(self, remedy: str) -> "TraceError":
        """Return the same fault with one more thing that can be done about it."""
        whole = f"{self.remedy.removesuffix('.')}, or {remedy}."
        return TraceError(self._bare, whole, self._at, self.kind)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a number must be."""

    wanted: str
    """In words, with an example: `a number of seconds above 0, like 3600`."""
    least: float = 0.0
    most: float = math.inf
    is_open: bool = False
    """`least` itself is too little."""
    whole: bool = False

    def holds(self, number: float) -> bool:
        """Say whether a number is one."""
        enough = number > self.least if self.is_open else number >= self.least
        return enough and number <= self.most and (not self.whole or number.is_integer())


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the file, by column."""

    file: str
    line: int
    text: str
    values: Mapping[str, str]

    def has(self, column: str) -> bool:
        """Say whether there is something in a column."""
        return bool(self.values.get(column))

    def word(self, column: str) -> str:
        """Return a text; raise TraceError when there is none, or one that cannot be shown."""
        value = self.values.get(column, "")
        if not value:
            raise self.fault("value missing", column, "is empty", "write a name")
        if not value.isprintable():
            raise self.fault(
                "not a name", column, f"is {brief(value)!r}", "write letters, digits, `-` and `_`"
            )
        return value

    def number(self, column: str, limits: Limits) -> float:
        """Return a number within its limits; raise TraceError for anything else."""
        text = self.values.get(column, "")
        if not text:
            raise self.fault("value missing", column, "is empty", f"write {limits.wanted}")
        number = number_in(text)
        if number is None:
            raise self.fault(
                "not a number", column, f"is {brief(text)!r}", f"write {limits.wanted}"
            )
        if not limits.holds(number):
            raise self.fault("out of range", column, f"is {brief(text)}", f"write {limits.wanted}")
        return number

    def fault(self, kind: Kind, column: str, says: str, remedy: str) -> TraceError:
        """Return what is wrong with one of its values."""
        return TraceError(
            f"{column} {says}", f"{remedy[:1].upper()}{remedy[1:]}.", kind=kind,
            at=Spot(self.file, self.line, self._where(column)),
        )  # fmt: skip

    def _where(self, column: str) -> int | None:
        """Return where on the line a value begins, from 1; None where quotes hide it."""
        if '"' in self.text:
            return None
        before = list(self.values)[: list(self.values).index(column)]
        return 1 + sum(len(self.values[name]) + 1 for name in before)


_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")


def number_in(text: str) -> float | None:
    """Return a finite number as tables write it; None for others, such as `nan` and `1_000`."""
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


@dataclass(frozen=True, slots=True)
class Lines:
    """A file's lines as text: the first one is the header."""

    file: Path
    raw: BinaryIO
    """As it lies on the disk."""
    stream: BinaryIO
    """The same, unpacked."""

    def close(self) -> None:
        """Let go of the file; one that is not closed leaks."""
        self.stream.close()
        self.raw.close()

    @property
    def name(self) -> str:
        """The file as a fault names it."""
        return str(self.file)

    def numbered(self) -> Iterator[tuple[int, str | TraceError]]:
        """Yield each line from 1 on, blank ones too, or what is wrong with it."""
        number = 0
        while True:
            number += 1
            try:
                raw = self.stream.readline(LINE_MOST)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                yield number, self._cut(number)
                return
            if not raw:
                return
            yield number, self._text(number, raw)

    def _text(self, number: int, raw: bytes) -> str | TraceError:
        if len(raw) >= LINE_MOST:
            return TraceError(
                f"is longer than {LINE_MOST:,} bytes", "Is this a table of jobs?",
                at=Spot(self.name, number),
            )  # fmt: skip
        try:
            return raw.decode().rstrip("\r\n").removeprefix(BOM if number == 1 else "")
        except UnicodeDecodeError as error:
            return TraceError(
                f"byte {raw[error.start] :#04x} is not UTF-8", "Save the file as UTF-8.",
                kind="not UTF-8", at=Spot(self.name, number, error.start + 1),
            )  # fmt: skip

    def _cut(self, number: int) -> TraceError:
        return TraceError(
            "the gzip file is cut short or damaged here",
            "Fetch it again; `gzip -t` checks it.",
            kind="cut short", at=Spot(self.name, number),
        )  # fmt: skip


def opened(file: Path) -> Lines:
    """Open a file, gzipped or not; raise TraceError with a sentence when that cannot be."""
    try:
        raw = file.open("rb")
        is_gzip = raw.peek(len(GZIP)).startswith(GZIP)
    except OSError as error:
        what = error.strerror or "it cannot be read"
        raise TraceError(
            f"{what[:1].lower()}{what[1:]}", "Give the path of a CSV file.", Spot(str(file))
        ) from error
    unpacked = gzip.GzipFile(fileobj=raw) if is_gzip else raw
    return Lines(file, raw, cast(BinaryIO, unpacked))


def header(lines: Iterator[tuple[int, str | TraceError]], name: str) -> Sequence[str]:
    """Return the columns; raise TraceError for a file without a header or with one twice."""
    for number, line in lines:
        if isinstance(line, TraceError):
            raise line
        if line.strip():
            return _columns(line, name, number)
    raise TraceError(
        "the file is empty", "Its first line names the columns: job,submit_s,duration_s,gpus.",
        at=Spot(name, 1),
    )  # fmt: skip


COLUMNS_MOST = 200
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def _columns(line: str, name: str, number: int) -> Sequence[str]:
    columns = [column.strip() for column in fields(line, name, number)]
    other = next((sign for sign in SEPARATORS if len(columns) == 1 and sign in line), None)
    twice = next((each for each, times in Counter(columns).items() if times > 1), None)
    says, remedy = "", ""
    if other is not None:
        says, remedy = f"{SEPARATORS[other]} separate the columns", "Separate them by commas."
    elif len(columns) > COLUMNS_MOST:
        says, remedy = f"has {len(columns):,} columns", "Is this a table of jobs?"
    elif "" in columns:
        says = f"column {columns.index('') + 1} of the header has no name"
        remedy = "Name it, or leave it out: a comma at the end begins one more."
    elif twice is not None:
        says, remedy = f"has the column {brief(twice)!r} twice", "Rename one."
    if says:
        raise TraceError(says, remedy, at=Spot(name, number))
    return columns


def fields(line: str, name: str, number: int) -> list[str]:
    """Return the fields of one line; raise TraceError when its quotes do not match."""
    if "\r" in line:
        raise TraceError(
            "is no line of CSV: it holds a carriage return, at which no line ends",
            "Save the file with ends of lines as Unix (LF) or Windows (CR LF) writes them.",
            kind="no CSV", at=Spot(name, number, line.index("\r") + 1),
        )  # fmt: skip
    try:
        return list(csv.reader([line], strict=True))[0] if line else []
    except csv.Error as error:
        raise TraceError(
            f"is no line of CSV: {error}", "Mend its quotes: they end on the line they begin on.",
            kind="no CSV", at=Spot(name, number),
        ) from error  # fmt: skip


def row(columns: Sequence[str], line: str, name: str, number: int) -> Row:
    """Return one line by its columns; raise TraceError when it has more or fewer fields."""
    found = fields(line, name, number)
    if len(found) != len(columns):
        raise TraceError(
            f"has {len(found)} fields, the header has {len(columns)}",
            "Write a field for every column.",
            kind="fields missing", at=Spot(name, number),
        )  # fmt: skip
    values = {column: value.strip() for column, value in zip(columns, found, strict=True)}
    return Row(name, number, line, values)


def listed(file: Path, columns: Sequence[str], what: str) -> list[Row]:
    """Return the rows of a list that needs some columns, the first of which names a row.

    `what` they list, in words. Raise TraceError for a column that is not there, and a wrong line.
    """
    with closing(opened(file)) as lines:
        numbered = lines.numbered()
        found = header(numbered, lines.name)
        missing = [name for name in columns if name not in found]
        if missing:
            raise TraceError(
                f"the header has no column {' and no '.join(missing)}",
                f"A list of {what} has the columns {','.join(columns)}.",
                at=Spot(lines.name, 1),
            )  # fmt: skip
        return list(_of_their_own(numbered, found, lines.name, columns[0]))


def _of_their_own(
    lines: Iterator[tuple[int, str | TraceError]], columns: Sequence[str], name: str, key: str
) -> Iterator[Row]:
    """Yield the rows of a list; raise TraceError for a bad one, and for a name that comes again."""
    seen: dict[str, int] = {}
    for number, line in lines:
        if isinstance(line, TraceError):
            raise line
        if not line.strip():
            continue
        one = row(columns, line, name, number)
        word = one.word(key)
        if word in seen:
            raise one.fault(
                "duplicate job", key, f"is {brief(word)!r}, as on line {seen[word]}",
                "give every row a name of its own",
            )  # fmt: skip
        seen[word] = number
        yield one
