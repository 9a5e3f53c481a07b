"""Reads numbers such as `global_step` out of checkpoints without running anything that is in them.

A pickle is a program. Its opcodes are read one after another and none is obeyed, so a checkpoint
of somebody else can be looked at too.
"""

import json
import pickletools
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from cloudwhale.reporting.counters import PROGRESS

JSON_BYTES = 1 << 20  # a longer one holds text, not a state
PICKLE_BYTES = 4 << 20  # of the opcodes; the arrays lie beside them
MOST_NUMBERS = 50
_KEEPS = frozenset({"MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"})
_NOTHING: Mapping[str, float] = {}


def numbers_in(path: Path) -> Mapping[str, float]:
    """Return the numbers of a file that are called like progress; nothing when it has none.

    Known are JSON, pickles, and what `torch.save` and `numpy.savez` write.
    """
    try:
        found = dict(_first(_of_file(path)))
    except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile, struct.error):
        return _NOTHING
    except (AttributeError, RuntimeError):
        return _NOTHING  # no pickle, one nested too deep, or a zip archive of an unknown kind
    return found


def _first(found: Iterator[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    for count, (name, number) in enumerate(found):
        if count >= MOST_NUMBERS:
            return
        if PROGRESS.fullmatch(name.rsplit(".", 1)[-1]):
            yield name, number


def _of_file(path: Path) -> Iterator[tuple[str, float]]:
    if zipfile.is_zipfile(path):
        yield from _of_zip(path)
    else:
        with path.open("rb") as file:
            head = file.read(PICKLE_BYTES)
        if head[:1] == b"\x80":  # protocol 2 or later
            yield from _of_pickle(head)
        elif head.lstrip()[:1] == b"{" and len(head) <= JSON_BYTES:
            yield from _of_json("", json.loads(head))


def _of_json(name: str, found: object) -> Iterator[tuple[str, float]]:
    if isinstance(found, dict):
        for key, value in cast(dict[str, Any], found).items():
            yield from _of_json(f"{name}.{key}" if name else str(key), value)
    elif isinstance(found, (int, float)) and not isinstance(found, bool):
        yield name, float(found)


def _of_zip(path: Path) -> Iterator[tuple[str, float]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename
            if name.endswith("data.pkl") and member.file_size <= PICKLE_BYTES:
                yield from _of_pickle(archive.read(member))
            elif name.endswith(".npy") and member.file_size <= 1024:
                number = _of_npy(archive.read(member))
                if number is not None:
                    yield name.removesuffix(".npy"), number


def _of_npy(body: bytes) -> float | None:
    """Return the number of an array without dimensions, None for any other."""
    head, _, rest = body.partition(b"\n")
    kinds = {b"<i8": "<q", b"<i4": "<i", b"<u8": "<Q", b"<f8": "<d", b"<f4": "<f"}
    kind = next((code for name, code in kinds.items() if b"'" + name + b"'" in head), None)
    if kind is None or b"'shape': ()" not in head:
        return None
    (number,) = struct.unpack(kind, rest[: struct.calcsize(kind)])
    return float(number)


def _of_pickle(body: bytes) -> Iterator[tuple[str, float]]:
    """Yield what a pickle says right behind a text: the entries of dictionaries."""
    key: str | None = None
    for opcode, argument, _ in pickletools.genops(body):
        if opcode.name in _KEEPS:
            continue
        if isinstance(argument, str) and "UNICODE" in opcode.name:
            key = argument
            continue
        if key is not None and opcode.name in ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"):
            if isinstance(argument, (int, float)):
                yield key, float(argument)
        key = None
