"""The objects of the sandbox's S3: buckets with the conditions of the real one."""

import hashlib
import threading
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.endpoint.bodies import Bodies, Body
from cloudwhale_providers.sandbox.endpoint.refused import Refused

Condition = tuple[str | None, str | None]
"""What `If-Match` and `If-None-Match` say; None: nothing."""
FREE: Condition = (None, None)
LAST = "\U0010ffff"
"""Sorts behind every other character of a key."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One object."""

    body: Body
    etag: str
    """With its quotes, as everywhere."""
    at: Instant
    headers: dict[str, str]
    """Content type and the user's own, as they are given back."""

    def head(self, bucket: str, key: str) -> dict[str, Any]:
        """Return what is written before it."""
        return {
            "bucket": bucket, "key": key, "etag": self.etag, "at": self.at, "headers": self.headers
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class New:
    """An object that is to be kept."""

    data: bytes
    at: Instant
    headers: dict[str, str]
    tag: str = ""
    """Of an object that is copied; empty: as its bytes say."""

    @property
    def etag(self) -> str:
        """Return what tells it from others."""
        return self.tag or tag(self.data)


@dataclass(slots=True)
class Upload:
    """Parts of an object that has not been put together."""

    bucket: str
    key: str
    at: Instant
    headers: dict[str, str]
    parts: dict[int, tuple[Body, str]] = field(default_factory=dict[int, tuple[Body, str]])


@dataclass(slots=True)
class Bucket:
    """Objects by key; the keys are sorted, as they are listed that way."""

    region: str
    made_at: Instant
    objects: dict[str, Stored] = field(default_factory=dict[str, Stored])
    keys: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list."""

    found: Sequence[tuple[str, Stored]]
    folders: Sequence[str]
    """Common prefixes."""
    more_after: str | None
    """Ask again from behind here; None: that was all."""


class Objects:
    """All buckets of the sandbox; threads may share it."""

    def __init__(self, folder: Path | None = None) -> None:
        self._bodies = Bodies(folder)
        self._turn = threading.Lock()
        self._buckets = {name: Bucket(**told) for name, told in self._bodies.buckets().items()}
        for head, body in self._bodies.found():
            stored = Stored(body, head["etag"], head["at"], head["headers"])
            self._place(self.bucket(head["bucket"]), head["key"], stored)
        self._uploads: dict[str, Upload] = {}
        self._number = 0

    # -- buckets -----------------------------------------------------------------------------

    def make(self, bucket: str, region: str, now: Instant) -> None:
        """Make a bucket; one that is there stays."""
        with self._turn:
            self._buckets.setdefault(bucket, Bucket(region, now))
            self._keep_buckets()

    def buckets(self) -> dict[str, Bucket]:
        """Return them by name."""
        with self._turn:
            return dict(self._buckets)

    def bucket(self, name: str) -> Bucket:
        """Return a bucket; raise Refused."""
        found = self._buckets.get(name)
        if found is None:
            raise Refused("NoSuchBucket", "The specified bucket does not exist", 404)
        return found

    def unmake(self, name: str) -> None:
        """Delete an empty bucket; raise Refused."""
        with self._turn:
            if self.bucket(name).keys:
                raise Refused("BucketNotEmpty", "The bucket is not empty", 409)
            del self._buckets[name]
            self._keep_buckets()

    # -- objects -----------------------------------------------------------------------------

    def get(self, bucket: str, key: str) -> Stored:
        """Return an object; raise Refused."""
        found = self.bucket(bucket).objects.get(key)
        if found is None:
            raise Refused("NoSuchKey", "The specified key does not exist.", 404)
        return found

    def put(self, bucket: str, key: str, new: New, condition: Condition = FREE) -> Stored:
        """Keep an object, if the condition holds; raise Refused."""
        with self._turn:
            shelf = self.bucket(bucket)
            _check(shelf.objects.get(key), condition)
            stored = Stored(Body(0), new.etag, new.at, new.headers)
            stored = replace(stored, body=self._bodies.keep(new.data, stored.head(bucket, key)))
            self._place(shelf, key, stored)
            return stored

    def _place(self, shelf: Bucket, key: str, stored: Stored) -> None:
        before = shelf.objects.get(key)
        if before is None:
            insort(shelf.keys, key)
        else:
            self._bodies.drop(before.body)
        shelf.objects[key] = stored

    def _keep_buckets(self) -> None:
        told = {
            name: {"region": one.region, "made_at": one.made_at}
            for name, one in self._buckets.items()
        }
        self._bodies.keep_buckets(told)

    def delete(self, bucket: str, key: str) -> None:
        """Delete an object; one that is not there is fine. Raise Refused without the bucket."""
        with self._turn:
            shelf = self.bucket(bucket)
            gone = shelf.objects.pop(key, None)
            if gone is not None:
                del shelf.keys[bisect_left(shelf.keys, key)]
                self._bodies.drop(gone.body)

    def page(self, bucket: str, prefix: str, after: str, delimiter: str, most: int) -> Page:
        """Return what begins with a prefix, from behind a key on, at most so much."""
        with self._turn:
            return _page(self.bucket(bucket), prefix, after, (delimiter, most))

    # -- in parts ----------------------------------------------------------------------------

    def begin(self, bucket: str, key: str, headers: dict[str, str], now: Instant) -> str:
        """Begin an object in parts; return what it is called until it is whole."""
        with self._turn:
            self.bucket(bucket)
            self._number += 1
            name = f"upload-{self._number:08d}"
            self._uploads[name] = Upload(bucket, key, now, headers)
            return name

    def uploads(self, bucket: str) -> dict[str, Upload]:
        """Return what is not whole yet, by name."""
        with self._turn:
            return {name: one for name, one in self._uploads.items() if one.bucket == bucket}

    def part(self, upload: str, number: int, body: bytes) -> str:
        """Keep a part; return its tag. Raise Refused."""
        etag = tag(body)
        with self._turn:
            parts = self._upload(upload).parts
            if number in parts:
                self._bodies.drop(parts[number][0])
            parts[number] = (self._bodies.keep(body), etag)
        return etag

    def parts(self, upload: str) -> dict[int, tuple[Body, str]]:
        """Return the parts that are there; raise Refused."""
        with self._turn:
            return dict(self._upload(upload).parts)

    def complete(
        self, upload: str, wanted: Sequence[tuple[int, str]], condition: Condition, now: Instant
    ) -> Stored:
        """Put an object together and keep it; raise Refused."""
        with self._turn:
            one = self._upload(upload)
            parts = [one.parts.get(number) for number, _ in wanted]
            if not parts or any(
                part is None or part[1].strip('"') != etag.strip('"')
                for part, (_, etag) in zip(parts, wanted, strict=True)
            ):
                raise Refused("InvalidPart", "One or more of the specified parts is missing.")
            there = [part for part in parts if part is not None]
            sums = b"".join(bytes.fromhex(etag.strip('"')) for _, etag in there)
            etag = f'"{hashlib.md5(sums, usedforsecurity=False).hexdigest()}-{len(there)}"'
            shelf = self.bucket(one.bucket)
            _check(shelf.objects.get(one.key), condition)
            stored = Stored(Body(0), etag, now, one.headers)
            head = stored.head(one.bucket, one.key)
            stored = replace(stored, body=self._bodies.join([body for body, _ in there], head))
            self._place(shelf, one.key, stored)
            self._forget(upload)
        return stored

    def abort(self, upload: str) -> None:
        """Throw parts away; raise Refused when there are none."""
        with self._turn:
            self._forget(upload)

    def _forget(self, upload: str) -> None:
        for body, _ in self._upload(upload).parts.values():
            self._bodies.drop(body)
        del self._uploads[upload]

    def _upload(self, name: str) -> Upload:
        found = self._uploads.get(name)
        if found is None:
            raise Refused("NoSuchUpload", "The specified upload does not exist.", 404)
        return found


def tag(body: bytes) -> str:
    """Return the tag that S3 gives to an object in one piece."""
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _check(there: Stored | None, condition: Condition) -> None:
    """See S3 User Guide, "Conditional writes": 412, and 404 where what must match is gone."""
    match, none_match = condition
    if match is not None and there is None:
        raise Refused("NoSuchKey", "The specified key does not exist.", 404)
    if none_match is not None and none_match != "*":
        raise Refused("NotImplemented", "A header you provided is not implemented", 501)
    differs = match is not None and there is not None and match.strip('"') != there.etag.strip('"')
    if differs or (none_match is not None and there is not None):
        says = "At least one of the pre-conditions you specified did not hold"
        raise Refused("PreconditionFailed", says, 412)


def _page(shelf: Bucket, prefix: str, after: str, how: tuple[str, int]) -> Page:
    delimiter, most = how
    found: list[tuple[str, Stored]] = []
    folders: list[str] = []
    at = max(bisect_left(shelf.keys, prefix), bisect_left(shelf.keys, after + "\0") if after else 0)
    last = after
    while at < len(shelf.keys) and shelf.keys[at].startswith(prefix):
        if len(found) + len(folders) >= most:
            return Page(found, folders, last)
        key = shelf.keys[at]
        head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        if cut:
            folders.append(prefix + head + cut)
            last = prefix + head + cut + LAST
            at = bisect_left(shelf.keys, last)
        else:
            found.append((key, shelf.objects[key]))
            last, at = key, at + 1
    return Page(found, folders, None)
