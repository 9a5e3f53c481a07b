"""Puts a published checkpoint back into a job's folder, bit for bit, or says that it cannot."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from cloudwhale.agent.seen import Key
from cloudwhale.mailbox.documents import Manifest, ManifestFile
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.job import Checkpoint


class Broken(Exception):
    """What was fetched is not what it should be; the text says what and why."""


def restore(checkpoint: Checkpoint, into: Path, staging: Path, objects: Objects) -> None:
    """Fetch a checkpoint next to its place, verify all of it, then move it in.

    Raise Broken when anything is missing or differs, StoreUnusable, or this disk's OSError.
    """
    manifest = _manifest(checkpoint, objects)
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        for file in _links_last(manifest):
            _fetch(file, staging, objects)
        for one in sorted(staging.iterdir()):
            _move(one, into / one.name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def others(checkpoint: Checkpoint, before: Key, objects: Objects) -> Iterator[Checkpoint]:
    """Return the job's other published checkpoints, newest first; of attempts before this one.

    Raise StoreUnusable.
    """
    job, attempt = before
    found: list[tuple[int, int, str]] = []
    for key in objects.keys(f"checkpoints/{job}"):
        numbers = key.split("/")[-2].split("-")
        if key.endswith("/manifest.json") and all(one.isdecimal() for one in numbers):
            found.append((int(numbers[0]), int(numbers[-1]), key))
    for number, seq, key in sorted(found, reverse=True):
        if number >= attempt or key == checkpoint.manifest:
            continue
        try:
            manifest = Manifest.model_validate_json(objects.get(key) or b"")
        except ValidationError:
            continue
        yield Checkpoint(
            attempt=number, seq=seq, name=manifest.name,
            size_bytes=sum(file.size_bytes for file in manifest.files),
            saved_at=manifest.at, manifest=key,
        )  # fmt: skip


def _manifest(checkpoint: Checkpoint, objects: Objects) -> Manifest:
    body = objects.get(checkpoint.manifest)
    if body is None:
        raise Broken(f"checkpoint {checkpoint.name} is not in the store any more")
    try:
        return Manifest.model_validate_json(body)
    except ValidationError as error:
        raise Broken(f"the manifest of checkpoint {checkpoint.name} cannot be read") from error


def _links_last(manifest: Manifest) -> Iterator[ManifestFile]:
    """Return what a manifest lists, links last: nothing is ever written through one."""
    yield from (file for file in manifest.files if not stat.S_ISLNK(file.mode))
    yield from (file for file in manifest.files if stat.S_ISLNK(file.mode))


def _fetch(file: ManifestFile, folder: Path, objects: Objects) -> None:
    parts = PurePosixPath(file.path)
    if parts.is_absolute() or ".." in parts.parts:
        raise Broken(f"{file.path} would lie outside the checkpoint folder")
    path = folder / parts
    path.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISDIR(file.mode):
        path.mkdir(exist_ok=True)
    elif stat.S_ISLNK(file.mode):
        target = objects.get(file.key)
        if target is None:
            raise Broken(f"{file.path} is not in the store any more")
        os.symlink(target, os.fsencode(path))
    else:
        _fetch_bytes(file, path, objects)


def _fetch_bytes(file: ManifestFile, path: Path, objects: Objects) -> None:
    found = objects.get_file(file.key, path)
    if found is None:
        raise Broken(f"{file.path} is not in the store any more")
    if found != file.sha256 or path.stat().st_size != file.size_bytes:
        raise Broken(f"{file.path} is damaged: its sha256 is {found} instead of {file.sha256}")
    path.chmod(stat.S_IMODE(file.mode))


def _move(source: Path, target: Path) -> None:
    if target.is_symlink():
        target.unlink()
    elif target.is_dir():
        shutil.rmtree(target)
    shutil.move(source, target)
