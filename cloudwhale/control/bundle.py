"""The agent's archive: what a rented machine fetches when it boots; made once, then kept.

Same content, same bytes, so its hash is its name: see `bundle_content` for what lies in it.
"""

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import platformdirs

from cloudwhale.control import bundle_archive
from cloudwhale.control.bundle_content import PYTHONS, Libraries, content, ours
from cloudwhale.control.bundle_distributions import Source, installed
from cloudwhale.control.bundle_wheels import fetched
from cloudwhale.control.saying import Say, to_nobody
from cloudwhale.mailbox.box import bundle_key
from cloudwhale.model.units import Seconds
from cloudwhale.model.value import Value, Wire
from cloudwhale.spi.errors import Denied, SettingsError, Unreachable

FORM = 1  # of the archive; another one is made anew though its content is the same
KEEPS = 4  # archives: of this version, of those before, of other checkouts
WHEELS_KEPT_S: Seconds = 90 * 86400.0
LOOK_EVERY_S: Seconds = 0.1  # of real time
LOOKS = 6000
"""Ten minutes: packages of two Pythons are fetched within three each, and packed in seconds."""


class Bundle(Value):
    """An archive that lies on this host."""

    file: Path
    sha256: str
    size_bytes: int
    pythons: tuple[str, ...]
    """Versions that machines may have."""
    missing: tuple[str, ...] = ()
    """Why others are missing, a sentence each."""

    @property
    def key(self) -> str:
        """Return where it lies in a mailbox."""
        return bundle_key(self.sha256)


class _About(Wire):
    """What an archive says of itself; see `bundle_content`."""

    pythons: tuple[str, ...]
    missing: dict[str, str]


def default_folder() -> Path:
    """Return where archives are kept: all homes of a user share them, sandboxes too."""
    return platformdirs.user_cache_path("cloudwhale") / "bundles"


def made(folder: Path | None = None, say: Say = to_nobody) -> Bundle:
    """Return the archive of what is installed here; takes seconds the first time.

    `folder`: where it is kept; None: the user's cache. `say` is told what takes long. A Python that
    packages cannot be had for is left out and tried again by the next process. Raise Denied when
    there is no archive at all.
    """
    place = default_folder() if folder is None else folder
    try:
        place.mkdir(parents=True, exist_ok=True)
        with _alone(place, say):
            return _made(place, say)
    except OSError as error:
        raise Denied(
            f"the agent's archive cannot be made in {place}: {error.strerror or error}",
            "Is the folder writable, and the disk not full? XDG_CACHE_HOME names another place.",
        ) from error
    except SettingsError as error:
        raise Denied(f"the agent's archive cannot be made: {error.says}", error.remedy) from error


@contextmanager
def _alone(place: Path, say: Say) -> Generator[None]:
    with (place / "lock").open("w") as lock:
        _wait_for(lock, say)
        yield


def _wait_for(lock: TextIO, say: Say) -> None:
    """Wait for another process that makes one: it is then found. Raise Denied: that hangs."""
    tick = threading.Event()
    for look in range(LOOKS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if look == 0:
                say("another process makes the agent's archive …")
            tick.wait(LOOK_EVERY_S)
        else:
            return
    raise Denied(
        f"another process has been making the agent's archive for {LOOKS * LOOK_EVERY_S:.0f} s",
        f"Whoever holds {lock.name} may hang: end it, and try again.",
    )


def _made(place: Path, say: Say) -> Bundle:
    own, sources = ours(), installed()
    recipe = _recipe(own, sources)
    kept = _kept(place, recipe)
    if kept is not None and not kept.missing:
        return kept
    libraries = _libraries(sources, place / "wheels", say)
    if not libraries.by_python:
        raise Denied(
            f"the agent's archive cannot be made: {'; '.join(libraries.missing.values())}",
            "Let pip reach a package index once; what it has fetched is kept.",
        )
    if kept is not None and set(kept.pythons) == set(libraries.by_python):
        return kept
    draft = place / f"{recipe}.draft"
    sha256 = bundle_archive.write(content(own, libraries), draft)
    os.replace(draft, place / f"{recipe}-{sha256}.tar.gz")
    found = _kept(place, recipe)
    assert found is not None, "it has just been written"
    _tidy(place)
    return found


def _recipe(own: Mapping[str, bytes], sources: Sequence[Source]) -> str:
    """Return a digest of all that an archive is made from, without making it."""
    parts: Mapping[str, object] = {
        "form": FORM,
        "pythons": PYTHONS,
        "ours": {path: _sha256(body) for path, body in own.items()},
        "libraries": [(one.name, one.version, one.tags) for one in sources],
    }
    return _sha256(json.dumps(parts, sort_keys=True).encode())[:16]


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _sha256_of(file: Path) -> str:
    with file.open("rb") as body:
        return hashlib.file_digest(body, "sha256").hexdigest()


def _kept(place: Path, recipe: str) -> Bundle | None:
    """Return the archive of a recipe with the most Pythons; one that is damaged is removed.

    Each is read whole: machines refuse what is not what its name says, all of them.
    """
    found: list[Bundle] = []
    for file in sorted(place.glob(f"{recipe}-*.tar.gz")):
        sha256 = file.name.removeprefix(f"{recipe}-").removesuffix(".tar.gz")
        try:
            if _sha256_of(file) != sha256:
                raise ValueError("it is not what its name says")
            about = _About.model_validate_json(bundle_archive.first(file))
        except (OSError, ValueError):
            file.unlink(missing_ok=True)
            continue
        found.append(
            Bundle(
                file=file,
                sha256=sha256,
                size_bytes=file.stat().st_size,
                pythons=about.pythons,
                missing=tuple(about.missing.values()),
            )
        )
    best = max(found, key=lambda one: len(one.pythons), default=None)
    if best is not None:
        os.utime(best.file)  # what was used last is kept
    return best


def _libraries(sources: Sequence[Source], wheels: Path, say: Say) -> Libraries:
    by_python: dict[str, Sequence[Source]] = {}
    missing: dict[str, str] = {}
    for python in PYTHONS:
        wanted = [one for one in sources if not one.runs_on(python)]
        try:
            others = {one.name: one for one in fetched(wanted, python, wheels, say)}
        except Unreachable as error:
            missing[python] = error.says
            continue
        by_python[python] = [others.get(one.name, one) for one in sources]
    return Libraries(by_python, missing)


def _tidy(place: Path) -> None:
    """Remove the archives that were used longest ago, and wheels that nobody uses any more."""
    archives = sorted(place.glob("*.tar.gz"), key=_used_at, reverse=True)
    now = _used_at(archives[0])
    wheels = place.glob("wheels/*.whl")
    old = [file for file in wheels if now - _used_at(file) > WHEELS_KEPT_S]
    for file in (*archives[KEEPS:], *old, *place.glob("*.draft")):
        file.unlink(missing_ok=True)


def _used_at(file: Path) -> float:
    return os.stat(file).st_mtime
