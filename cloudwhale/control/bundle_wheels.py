"""Fetches from the package index what is compiled for another Python or another system."""

import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import util
from pathlib import Path, PurePosixPath
from shutil import rmtree, which
from tempfile import mkdtemp

from cloudwhale.control.bundle_distributions import (
    LEGACY,
    NEWEST_GLIBC,
    Content,
    Files,
    Source,
    normal,
    tags_in,
    travels,
)
from cloudwhale.control.saying import Say
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import Unreachable

QUIET_S: Seconds = 2.0
FETCHES_WITHIN_S: Seconds = 180.0
_LIBRARIES = ("purelib", "platlib")


def fetched(wanted: Sequence[Source], python: str, folder: Path, say: Say) -> Sequence[Source]:
    """Return distributions in the versions that are installed here, as wheels for a Python.

    What lies in the folder already is not fetched again. pip compares what it fetches with the
    hashes that the index gives. Raise Unreachable with a sentence when not all can be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [one for one in wanted if _kept(one, python, folder) is None]
    if missing:
        _download(missing, python, folder, say)
    found = [_kept(one, python, folder) for one in wanted]
    lost = [one.pin for one, wheel in zip(wanted, found, strict=True) if wheel is None]
    if lost:
        raise Unreachable(f"there is no {lost[0]} for Python {python} on x86_64 Linux", _REMEDY)
    return [wheel for wheel in found if wheel is not None]


_REMEDY = (
    "Let `pip download` reach a package index once; what it has fetched is kept. Or choose an "
    "image of machines with the same Python as this one."
)


def _kept(one: Source, python: str, folder: Path) -> Source | None:
    """Return a distribution's wheel that runs on a Python, newest first; None: none is kept."""
    for file in sorted(folder.glob("*.whl"), reverse=True):
        name, version, *_ = file.stem.split("-")
        if normal(name) == normal(one.name) and version == (one.version or version):
            source = _opened(file, one)
            if source is not None and source.runs_on(python):
                os.utime(file)  # what is not used for long goes
                return source
    return None


def _opened(file: Path, one: Source) -> Source | None:
    """Return what a wheel holds; one that is torn is removed, to be fetched again."""
    try:
        with zipfile.ZipFile(file) as archive:
            info = next(name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
            tags = tags_in(archive.read(info).decode())
            is_whole = archive.testzip() is None
    except (zipfile.BadZipFile, zlib.error, StopIteration, EOFError, ValueError):
        is_whole, tags = False, ()
    if not is_whole:
        file.unlink(missing_ok=True)
        return None
    return Source(one.name, file.stem.split("-")[1], tags, partial(_files_of, file))


def _files_of(file: Path) -> Files:
    with zipfile.ZipFile(file) as archive:
        return dict(_travelling(file, archive.namelist()))


def _travelling(file: Path, names: Iterable[str]) -> Iterator[tuple[str, Content]]:
    for name in names:
        path = PurePosixPath(name)
        if len(path.parts) > 2 and path.parts[0].endswith(".data"):
            if path.parts[1] not in _LIBRARIES:
                continue  # commands and headers
            path = PurePosixPath(*path.parts[2:])
        if not name.endswith("/") and travels(path):
            yield str(path), partial(_read, file, name)


def _read(file: Path, name: str) -> bytes:
    with zipfile.ZipFile(file) as archive:
        return archive.read(name)


# -- pip -------------------------------------------------------------------------------------


def _download(wanted: Sequence[Source], python: str, folder: Path, say: Say) -> None:
    pip = _pip()
    if pip is None:
        raise Unreachable(
            f"packages for Python {python} cannot be fetched: there is no pip here",
            "`python -m ensurepip` makes one.",
        )
    # A folder of its own: who fetches the same at the same time finds no half a wheel.
    draft = Path(mkdtemp(prefix="fetch-", dir=folder))
    try:
        _run([*pip, *_words(python), "--dest", str(draft), *(one.pin for one in wanted)],
             python, say)  # fmt: skip
        for wheel in draft.glob("*.whl"):
            os.replace(wheel, folder / wheel.name)
    finally:
        rmtree(draft, ignore_errors=True)


def _pip() -> Sequence[str] | None:
    """Return how pip is called here; None: there is none."""
    if util.find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]
    found = which("pip3") or which("pip")
    return None if found is None else [found]


def _words(python: str) -> Sequence[str]:
    abi = "cp" + python.replace(".", "")
    newest = NEWEST_GLIBC[1]
    # pip takes a platform at its word: older ones, which run as well, are said one by one.
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in range(newest, 4, -1)]
    platforms += [f"{name}_x86_64" for name in LEGACY]
    return [
        "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
        "--retries", "1", "--timeout", "15", "--only-binary", ":all:",
        "--implementation", "cp", "--python-version", python,
        *(word for name in (abi, "abi3", "none") for word in ("--abi", name)),
        *(word for name in platforms for word in ("--platform", name)),
    ]  # fmt: skip


def _run(words: Sequence[str], python: str, say: Say) -> None:
    """Run pip; raise Unreachable with its last words."""
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        raise Unreachable(f"pip cannot be run: {error.strerror}", _REMEDY) from error
    with process:
        said = _awaited(process, python, say)
    if process.returncode:
        raise Unreachable(f"packages for Python {python} cannot be fetched: {said}", _REMEDY)


def _awaited(process: "subprocess.Popen[str]", python: str, say: Say) -> str:
    try:
        _, text = process.communicate(timeout=QUIET_S)
    except subprocess.TimeoutExpired:
        say(f"fetching packages for Python {python} …")
        try:
            _, text = process.communicate(timeout=FETCHES_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"pip was not done within {FETCHES_WITHIN_S:g} s"
    wrong = [line for line in text.splitlines() if line.startswith("ERROR: ")]
    return (
        wrong[-1].removeprefix("ERROR: ") if wrong else f"pip said nothing ({process.returncode})"
    )
