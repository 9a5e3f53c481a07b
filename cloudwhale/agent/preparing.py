"""Puts into place what a job needs before it starts: its working directory and its secrets."""

import errno
import posixpath
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

from cloudwhale.agent import workdirs
from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.launching import runtime_of
from cloudwhale.agent.patience import patiently
from cloudwhale.agent.restoring import Broken, others, restore
from cloudwhale.agent.seen import CannotStart, Prepared
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.mailbox.objects import Objects
from cloudwhale.mailbox.sealing import SealBroken, unseal
from cloudwhale.model.job import Checkpoint
from cloudwhale.spi.errors import StoreUnusable


def needs_time(order: StartOrder) -> bool:
    """Say whether something must be fetched or opened before the job can start."""
    fetches = (order.workdir, order.restore, order.image)
    return any(one is not None for one in fetches) or bool(order.secrets or order.inputs)


def prepare(order: StartOrder, folder: AttemptFolder, objects: Objects) -> Prepared | CannotStart:
    """Make the attempt's folders, unpack its workdir, restore its checkpoint.

    Done again, it is done anew: nobody knows how far an agent came that was killed. Where a shim
    of that agent has begun the job after all, nothing is touched.
    """
    try:
        with folder.fenced() as is_ours:
            return _prepared(order, folder, objects) if is_ours else Prepared(folder.key)
    except OSError as trouble:
        return cannot(folder, trouble)


def opened_secrets(order: StartOrder, private_key: str) -> dict[str, str]:
    """Return the secrets' values; raise SealBroken when one was sealed to another key."""
    values: dict[str, str] = {}
    for name, sealed in order.secrets.items():
        try:
            values[name] = unseal(sealed, private_key)
        except SealBroken as error:
            raise SealBroken(f"the secret {name} cannot be opened here: {error}") from error
    return values


def cannot(folder: AttemptFolder, trouble: Exception) -> CannotStart:
    """Say why an attempt cannot start."""
    full = isinstance(trouble, OSError) and trouble.errno in (errno.ENOSPC, errno.EDQUOT)
    says = trouble.says if isinstance(trouble, StoreUnusable) else str(trouble)
    return CannotStart(folder.key, "disk-full" if full else "start-failed", says)


def _prepared(order: StartOrder, folder: AttemptFolder, objects: Objects) -> Prepared | CannotStart:
    try:
        checkpoints = folder.checkpoints(order)
        cannot_mount = runtime_of(order).unmountable(order.mounts)
        if cannot_mount:
            raise ValueError(cannot_mount)
        shutil.rmtree(folder.work, ignore_errors=True)
        folder.work.mkdir(parents=True)
        if order.workdir is not None:
            _unpacked(order.workdir, folder, objects)
        checkpoints.mkdir(parents=True, exist_ok=True)
    except (ValueError, Broken, StoreUnusable, OSError) as trouble:
        return cannot(folder, trouble)
    return _restored(order, checkpoints, folder, objects)


def _restored(
    order: StartOrder, checkpoints: Path, folder: AttemptFolder, objects: Objects
) -> Prepared | CannotStart:
    """Restore a checkpoint; where it is damaged or gone, the newest of the job that is whole.

    A rank of a gang goes on from what all have in common, or not at all.
    """
    checkpoint = order.restore
    if checkpoint is None:
        return Prepared(folder.key)
    try:
        try:
            _fetched(checkpoint, checkpoints, folder, objects)
        except Broken as trouble:
            if order.gang is not None:
                raise
            return _restored_other(checkpoint, checkpoints, folder, objects, str(trouble))
    except (Broken, StoreUnusable, OSError) as trouble:
        why = cannot(folder, trouble)
        return why if why.how == "disk-full" else CannotStart(why.key, "restore-failed", why.says)
    return Prepared(folder.key)


def _restored_other(
    checkpoint: Checkpoint, checkpoints: Path, folder: AttemptFolder, objects: Objects, why: str
) -> Prepared:
    for other in patiently(lambda: tuple(others(checkpoint, folder.key, objects))):
        try:
            _fetched(other, checkpoints, folder, objects)
        except Broken:
            continue
        says = f"{why}; {other.name} of attempt {other.attempt} was restored instead"
        return Prepared(folder.key, other, says)
    raise Broken(why)


def _fetched(
    checkpoint: Checkpoint, checkpoints: Path, folder: AttemptFolder, objects: Objects
) -> None:
    patiently(lambda: restore(checkpoint, checkpoints, folder.path / "restoring", objects))


def _unpacked(key: str, folder: AttemptFolder, objects: Objects) -> None:
    node = folder.path.parents[2]
    _extract(workdirs.kept(key, node, objects), folder.work)
    workdirs.make_room(node)


def _extract(archive: Path, into: Path) -> None:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            # Checked by ourselves: Debian 12's Python has no extraction filters yet.
            tar.extraction_filter = lambda member, _: member
            tar.extractall(into, members=_harmless(tar))
    except (tarfile.TarError, EOFError) as error:
        raise Broken(f"the working directory cannot be unpacked: {error}") from error


def _harmless(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Return the members; raise Broken for one that would lie outside, or is no plain thing."""
    for member in tar:
        if not (member.isreg() or member.isdir() or member.issym()):
            raise Broken(f"the working directory holds {member.name}, which is no plain file")
        paths = [member.name]
        if member.issym():
            paths.append(posixpath.join(posixpath.dirname(member.name), member.linkname))
        for path in paths:
            plain = posixpath.normpath(path)
            if plain.startswith("/") or plain == ".." or plain.startswith("../"):
                raise Broken(f"the working directory holds {member.name}, which leads out of it")
        yield member
