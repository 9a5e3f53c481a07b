"""Copies into a node's mailbox what its order names and what lies in another one.

That is a job's packed working directory, which whoever submits puts into the main mailbox, and the
checkpoint that it goes on from, which lies where it was saved. Keys are the same in every mailbox
and are never used for anything else, so a copy that was begun is gone on with: what is there whole
is not copied again. A manifest comes last, as when it was published.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from cloudwhale.control.mailboxes import MAIN, Mailboxes
from cloudwhale.mailbox.documents import Manifest
from cloudwhale.mailbox.objects import Objects, Unreadable
from cloudwhale.model import event as e
from cloudwhale.model.job import Checkpoint, Job
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import NOTHING, Instant
from cloudwhale.model.where import Where
from cloudwhale.planning.bringing import cost_of
from cloudwhale.spi.errors import CloudwhaleError, StoreUnusable


@dataclass(frozen=True, slots=True)
class Carried:
    """A checkpoint was copied to where its job goes on."""

    job: str
    node: str
    """The machine that it was copied for."""
    left: Where | None
    """Where it lay; None: in our own mailbox."""
    checkpoint: Checkpoint
    size_bytes: int
    """All of it, whatever of it an earlier try had copied."""


class Carrying:
    """Sees to it that what an order names can be had where it is read; from any thread."""

    def __init__(self, mailboxes: Mailboxes) -> None:
        self._mailboxes = mailboxes
        self._untold: dict[str, Carried] = {}
        """By manifest: what was copied, and nobody knows yet who is to pay for it."""

    def is_needed(self, job: Job, provider: str, restore: Checkpoint | None) -> bool:
        """Say whether something may lie elsewhere than a provider's machine would look for it."""
        if self._mailboxes.is_one:
            return False
        is_far = job.workdir_key is not None and self._mailboxes.name_of(provider) != MAIN
        return is_far or restore is not None

    def is_elsewhere(self, job: Job, provider: str) -> bool:
        """Say whether what a job has saved was saved in another mailbox than a provider's."""
        saved_by = "" if job.saved_from is None else job.saved_from.provider
        return self._mailboxes.name_of(saved_by) != self._mailboxes.name_of(provider)

    def carry(self, job: Job, node: str, provider: str, restore: Checkpoint | None) -> None:
        """Copy what is missing to where a provider's node looks for it.

        One that is nowhere any more is left to the agent, which says so. Raise StoreUnusable.
        """
        target = self._mailboxes.of(provider)
        if job.workdir_key is not None and target is not self._mailboxes.main:
            _copy_all(self._mailboxes.main, target, [job.workdir_key])
        if restore is None or target.size_bytes(restore.manifest) is not None:
            return
        size_bytes = self._copied(job, target, restore)
        if size_bytes is not None:
            self._untold[restore.manifest] = Carried(
                job.id, node, job.saved_from, restore, size_bytes
            )

    def carried(self, restore: Checkpoint | None) -> Carried | None:
        """Return once what was copied of a checkpoint; None: it was there.

        Also by an earlier try that came to nothing after it: what has left a cloud costs.
        """
        return None if restore is None else self._untold.pop(restore.manifest, None)

    def _copied(self, job: Job, target: Objects, restore: Checkpoint) -> int | None:
        source = self._holder(job, target, restore.manifest)
        body = None if source is None else source.get(restore.manifest)
        if source is None or body is None:
            return None
        try:
            files = Manifest.model_validate_json(body).files
        except ValidationError:
            return None
        _copy_all(source, target, [file.key for file in files])
        target.create(restore.manifest, body)
        return sum(file.size_bytes for file in files) + len(body)

    def _holder(self, job: Job, target: Objects, manifest: str) -> Objects | None:
        """Return the store that has a checkpoint: where it was saved, else any other."""
        away: StoreUnusable | None = None
        for objects in self._in_turn(job):
            if objects is target:
                continue
            try:
                if objects.size_bytes(manifest) is not None:
                    return objects
            except StoreUnusable as error:
                away = away or error
        if away is not None:
            raise away
        return None

    def _in_turn(self, job: Job) -> Iterator[Objects]:
        first = self._mailboxes.name_of("" if job.saved_from is None else job.saved_from.provider)
        for name in (first, *(one for one in self._mailboxes.names if one != first)):
            yield self._mailboxes.of(name)


def _copy_all(source: Objects, target: Objects, keys: Sequence[str]) -> None:
    """Copy objects through a file of this host; those that are there whole are left."""
    with tempfile.TemporaryDirectory(prefix="cloudwhale-") as folder:
        for key in dict.fromkeys(keys):
            size_bytes = source.size_bytes(key)
            if size_bytes is not None and target.size_bytes(key) != size_bytes:
                _copy(source, target, key, Path(folder, "object"))


def _copy(source: Objects, target: Objects, key: str, draft: Path) -> None:
    try:
        came = source.get_file(key, draft)
        if came is not None and target.put_file(key, draft) != came:
            raise StoreUnusable(f"{key} changed while it was copied", "It is copied again.")
    except (OSError, Unreadable) as error:
        raise CannotCarry(
            f"{key} cannot be copied to another mailbox: {error}",
            "Make room where TMPDIR is, or set it to another folder.",
        ) from error
    finally:
        draft.unlink(missing_ok=True)


class CannotCarry(CloudwhaleError):
    """This host has no room for what is copied."""


def brought(
    carried: Carried | None, rentals: Mapping[str, Rental], now: Instant
) -> Iterator[e.Brought]:
    """Yield that a checkpoint has left a cloud for another one; from our own it leaves none.

    What it costs was set aside with the machine that it was brought to. `rentals`: by their ids.
    """
    if carried is None or carried.left is None:
        return
    rental = rentals.get(carried.node)
    price = 0.0 if rental is None else rental.brings.get(carried.job, 0.0)
    yield e.Brought(
        at=now, job=carried.job, rental="" if rental is None else rental.id,
        checkpoint=carried.checkpoint.name, left=carried.left, size_bytes=carried.size_bytes,
        cost=cost_of(carried.size_bytes, price) if price else NOTHING,
    )  # fmt: skip
