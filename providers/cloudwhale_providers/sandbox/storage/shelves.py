"""The objects of Cloud Storage: each has a generation, which conditions ask for."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.endpoint.objects import FREE, New, Objects, Page, Stored
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.storage.words import (
    GENERATION,
    TOO_SMALL,
    Match,
    generation_of,
)

LEAST_PART = 5 * 1024 * 1024
"""Cloud Storage, "XML API multipart uploads": of every part but the last."""
PER_SECOND = 1_000_000
"""Generations are microseconds, as Cloud Storage's are."""


class Shelves:
    """All buckets of a store; threads may share it."""

    def __init__(self, folder: Path | None, now: Callable[[], Instant]) -> None:
        self._objects, self._now = Objects(folder), now
        self._turn = threading.Lock()
        """A condition is looked at and what it allows is done in one step."""
        self._last = max(
            (
                generation_of(stored)
                for bucket in self._objects.buckets().values()
                for stored in bucket.objects.values()
            ),
            default=0,
        )

    # -- buckets -----------------------------------------------------------------------------

    def make(self, bucket: str, region: str) -> None:
        """Make a bucket; one that is there stays."""
        self._objects.make(bucket, region, self._now())

    def region(self, bucket: str) -> str:
        """Return where a bucket lies; raise Refused."""
        return self._objects.bucket(bucket).region

    def made_at(self, bucket: str) -> Instant:
        """Return since when there is a bucket; raise Refused."""
        return self._objects.bucket(bucket).made_at

    def buckets(self) -> Sequence[str]:
        """Return their names."""
        return sorted(self._objects.buckets())

    def unmake(self, bucket: str) -> None:
        """Delete an empty bucket; raise Refused."""
        self._objects.unmake(bucket)

    # -- objects -----------------------------------------------------------------------------

    def get(self, bucket: str, key: str) -> Stored:
        """Return an object; raise Refused."""
        return self._objects.get(bucket, key)

    def has(self, bucket: str, key: str) -> bool:
        """Say whether there is an object now."""
        found = self._objects.buckets().get(bucket)
        return found is not None and key in found.objects

    def page(self, bucket: str, prefix: str, after: str, delimiter: str, most: int) -> Page:
        """Return what begins with a prefix, from behind a key on, at most so much."""
        return self._objects.page(bucket, prefix, after, delimiter, most)

    def put(self, bucket: str, key: str, new: New, match: Match) -> Stored:
        """Keep an object, if the condition holds; raise Refused."""
        new = replace(new, tag=new.etag)  # before the lock: a large body takes its time
        with self._turn:
            match.check(self._there(bucket, key))
            headers = {**new.headers, GENERATION: self._next()}
            return self._objects.put(bucket, key, replace(new, headers=headers), FREE)

    def delete(self, bucket: str, key: str, match: Match) -> None:
        """Delete an object; raise Refused when there is none, unlike S3, or another."""
        with self._turn:
            match.check(self._objects.get(bucket, key))
            self._objects.delete(bucket, key)

    def _there(self, bucket: str, key: str) -> Stored | None:
        return self._objects.bucket(bucket).objects.get(key)

    def _next(self) -> str:
        self._last = max(self._last + 1, int(self._now() * PER_SECOND))
        return str(self._last)

    # -- in parts ----------------------------------------------------------------------------

    def begin(self, bucket: str, key: str, headers: dict[str, str]) -> str:
        """Begin an object in parts; return what it is called until it is whole."""
        return self._objects.begin(bucket, key, headers, self._now())

    def part(self, upload: str, number: int, body: bytes) -> str:
        """Keep a part; return its tag. Raise Refused."""
        return self._objects.part(upload, number, body)

    def complete(self, bucket: str, upload: str, wanted: Sequence[tuple[int, str]]) -> Stored:
        """Put an object together; raise Refused. There are no conditions for it."""
        parts = self._objects.parts(upload)
        for number, _ in wanted[:-1]:
            if number in parts and parts[number][0].size < LEAST_PART:
                raise TOO_SMALL
        with self._turn:
            begun = self._objects.uploads(bucket).get(upload)
            if begun is None:
                raise Refused("NoSuchUpload", "The requested upload was not found.", 404)
            begun.headers[GENERATION] = self._next()  # not before: of two the later is the newer
            return self._objects.complete(upload, wanted, FREE, self._now())

    def abort(self, upload: str) -> None:
        """Throw parts away; raise Refused when there are none."""
        self._objects.abort(upload)

    def parts(self, upload: str) -> Sequence[tuple[int, int, str]]:
        """Return number, size and tag of the parts that are there; raise Refused."""
        found = sorted(self._objects.parts(upload).items())
        return [(number, body.size, etag) for number, (body, etag) in found]
