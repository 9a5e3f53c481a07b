"""What a job leaves, brought from the store to a folder of this host: all of it or nothing."""

import shutil
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from pydantic import ValidationError

from cloudwhale.mailbox.box import outputs_prefix
from cloudwhale.mailbox.documents import Manifest, ManifestFile
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.job import Job
from cloudwhale.model.value import Wire
from cloudwhale.spi.errors import CloudwhaleError

MARK = ".cloudwhale.json"
"""Lies in a folder of results and says whose they are."""

Stores: TypeAlias = Callable[[str, int], Objects]
"""Returns the store in which an attempt of a job has left something."""

Told: TypeAlias = Callable[[int], None]
"""Told how many bytes there are, before the first is fetched."""


class NotWhole(CloudwhaleError):
    """What came is not what the job left, or there is no room for it."""


class Mark(Wire):
    """Whose results a folder holds."""

    job: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Brought:
    """Results that lie on this host."""

    job: str
    attempt: int
    folder: Path
    files: int
    size_bytes: int
    moved: Path | None = None
    """Where that went which was there before; None: nothing was."""
    was_there: bool = False
    """Whether they had been brought before."""
    links: int = 0
    """Symbolic links that were left out: they lead nowhere here."""


def _quiet(of: int) -> None:
    """Tell nobody."""


def bring(
    stores: Stores, job: Job, folder: Path, attempt: int | None = None, told: Told = _quiet
) -> Brought | None:
    """Fetch what a job's newest attempt that left something has left; None: none has.

    What lies in the folder already is moved aside, never written over; the same results are not
    fetched again. Raise NotWhole, StoreUnusable.
    """
    found = _newest(stores, job.id, [attempt] if attempt else range(job.attempt, 0, -1))
    if found is None:
        return None
    files = [file for file in found.files if not stat.S_ISLNK(file.mode)]
    size = sum(file.size_bytes for file in files)
    brought = Brought(
        job.id, found.attempt, folder, len(files), size, links=len(found.files) - len(files)
    )
    mark = Mark(job=job.id, attempt=found.attempt)
    if _mark_in(folder) == mark:
        return replace(brought, was_there=True)
    draft = draft_of(folder)
    told(size)
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        _fetch_all(stores(job.id, found.attempt), files, draft, _strip(job, files))
        (draft / MARK).write_text(mark.model_dump_json())
        moved = _aside(folder)
        draft.rename(folder)
    except OSError as error:
        raise NotWhole(
            f"the results of {job.id} cannot be written: {error.strerror} ({error.filename})",
            f"Make room, then `cloudwhale results {job.id}` fetches them.",
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return replace(brought, moved=moved)


def _newest(stores: Stores, job: str, attempts: Iterable[int]) -> Manifest | None:
    for attempt in attempts:
        body = stores(job, attempt).get(f"{outputs_prefix(job, attempt)}/manifest.json")
        if body is not None:
            try:
                return Manifest.model_validate_json(body)
            except ValidationError as error:
                raise NotWhole(
                    f"the list of what attempt {attempt} of {job} left cannot be read",
                    "Look at it in the store; another version of cloudwhale may have written it.",
                ) from error
    return None


def _strip(job: Job, files: list[ManifestFile]) -> str:
    """Return the folder that is left out of all paths: the only one that the job names."""
    if len(job.spec.outputs) != 1:
        return ""
    only = job.spec.outputs[0].strip("/").removeprefix("./")
    return f"{only}/" if all(file.path.startswith(f"{only}/") for file in files) else ""


def draft_of(folder: Path) -> Path:
    """Return where results lie while they come."""
    return folder.with_name(f".{folder.name}.coming")


def _fetch_all(objects: Objects, files: list[ManifestFile], draft: Path, strip: str) -> None:
    for file in files:
        path = draft / _inside(file.path.removeprefix(strip))
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = objects.get_file(file.key, path)
        if digest is None:
            raise NotWhole(f"{file.path} is not in the store any more", "Run the job again.")
        if digest != file.sha256:
            raise NotWhole(
                f"{file.path} came with other content than the job left", "Fetch it once more."
            )
        path.chmod(stat.S_IMODE(file.mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR)


def _inside(path: str) -> PurePosixPath:
    """Return a path that stays within the folder of results; raise NotWhole for another."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts or path == MARK:
        raise NotWhole(
            f"{path!r} would lie outside of the results, and nothing was written",
            "Look at what the job names in `outputs`.",
        )
    return parts


def _mark_in(folder: Path) -> Mark | None:
    try:
        return Mark.model_validate_json((folder / MARK).read_text())
    except (OSError, ValidationError):
        return None


def _aside(folder: Path) -> Path | None:
    """Move away what lies there, under a name that says whose it was; return that."""
    if not folder.exists():
        return None
    mark = _mark_in(folder)
    whose = "before" if mark is None else f"{mark.job}.{mark.attempt}"
    name = first = folder.with_name(f"{folder.name}.{whose}")
    number = 1
    while name.exists():
        number += 1
        name = first.with_name(f"{first.name}.{number}")
    folder.rename(name)
    return name
