"""What no machine could start: refused here, since every further try would end in the same way."""

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from cloudwhale.control.intake.tree import Node, Section
from cloudwhale.control.intake.unfit import Unfit, shown
from cloudwhale.model.job import JobSpec

TEXT_MOST_BYTES = 128 * 1024 - 1  # Linux's MAX_ARG_STRLEN without the zero byte at the end
ALL_MOST_BYTES = 1_500_000  # of the 2 MiB that Linux gives; secrets and our own need some too

Axes = Mapping[str, Sequence[str]]


def check_start(spec: JobSpec, axes: Axes, section: Section) -> None:
    """Raise Unfit for a job that no Linux can start, with the place of what is in its way."""
    command = _text(spec.command, section, "cmd" if "cmd" in section.entries else "command")
    setup = _text(spec.setup or "", section, "setup")
    values = [("env", name, value) for name, value in spec.env.items()]
    values += [("array", name, max(axes[name], key=_bytes)) for name in axes]
    total = max(command, setup)
    for key, name, value in values:
        total += _text(f"{name}={value}", section, key, name)
    if total > ALL_MOST_BYTES:
        raise Unfit(
            f"its command and environment are {total:,} bytes together, and "
            f"{ALL_MOST_BYTES:,} can be given to a process",
            "Put long values into files of the working directory.",
            section,
        )
    _check_checkpoint(spec, section)


def _text(text: str, section: Section, *keys: str) -> int:
    """Return how long a text is; raise Unfit when no process can be given it."""
    size = _bytes(text)
    if size > TEXT_MOST_BYTES:
        raise _at(
            section,
            keys,
            f"it is {size:,} bytes long, and {TEXT_MOST_BYTES:,} can be given to a process",
            "Put it into a file of the working directory.",
        )
    return size


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _check_checkpoint(spec: JobSpec, section: Section) -> None:
    """The path becomes a folder in a copy of the working directory: nothing else may be there."""
    path = spec.checkpoint.path if spec.checkpoint else None
    if path is None or spec.workdir is None:
        return
    for part in (PurePosixPath(path), *PurePosixPath(path).parents):
        there = os.path.join(spec.workdir, part)
        if os.path.exists(there) and not os.path.isdir(there):
            raise _at(
                section,
                ("checkpoint", "path"),
                f"{shown(str(part))} is a file in the working directory",
                "Name a folder, or a path where nothing is.",
            )


def _at(section: Section, keys: Sequence[str], says: str, remedy: str) -> Unfit:
    """Return an error with the place of the innermost key that the file itself has."""
    node: Node = section
    for key in keys:
        entry = node.entries.get(key) if isinstance(node, Section) else None
        if entry is None:
            break
        node = entry.value
    wrong = Unfit(says, remedy, node)
    for key in reversed(keys):
        wrong = wrong.under(key)
    return wrong
