"""Cloud Storage's XML API, as much as a mailbox and checkpoints need."""

import base64
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import unquote
from xml.sax.saxutils import escape

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.objects import New
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.s3_words import PAGE, elements, given, iso, listed
from cloudwhale_providers.sandbox.storage.shelves import Shelves
from cloudwhale_providers.sandbox.storage.words import (
    COPY_SOURCE,
    DIRECTIVE,
    GENERATION,
    kept_headers,
    match_of,
    told_of,
    xml,
)

UNKNOWN = Refused("NotImplemented", "The sandbox does not know this request of Storage.", 501)
LISTS = frozenset({
    "list-type", "prefix", "delimiter", "max-keys", "start-after", "continuation-token",
    "encoding-type", "fetch-owner", "marker",
})  # fmt: skip
DEPTH = 3
"""So many folders of a key tell requests apart."""


class XmlApi:
    """Answers one request."""

    def __init__(self, shelves: Shelves, now: Callable[[], Instant]) -> None:
        self._shelves, self._now = shelves, now
        self.requests: Counter[tuple[str, str]] = Counter()
        """How many there were, by method (`LIST` too) and folder of the key."""

    def answer(self, asked: Asked) -> Answer:
        """Return the answer; raise Refused."""
        bucket, _, key = asked.path.lstrip("/").partition("/")
        self._count(asked, bucket, key)
        if not bucket:
            raise UNKNOWN
        if not key:
            return self._of_bucket(asked, bucket)
        self._shelves.region(bucket)  # a bucket that is not there is said before anything else
        if "uploadId" in asked.query or "uploads" in asked.query:
            return self._in_parts(asked, bucket, key)
        if asked.query:
            raise UNKNOWN
        return self._of_object(asked, bucket, key)

    def _count(self, asked: Asked, bucket: str, key: str) -> None:
        is_list = asked.method == "GET" and not key
        folder = (asked.query.get("prefix", "") if is_list else key).split("/")[:-1]
        method = "LIST" if is_list else asked.method
        self.requests[method, "/".join([bucket, *folder[:DEPTH]])] += 1

    def _of_bucket(self, asked: Asked, bucket: str) -> Answer:
        query = asked.query
        region = self._shelves.region(bucket)
        if asked.method == "HEAD":
            return Answer(200)
        if asked.method == "GET" and set(query) == {"location"}:
            return xml("LocationConstraint", escape(region.upper()))
        if asked.method != "GET" or set(query) - LISTS:
            raise UNKNOWN
        token = query.get("continuation-token")
        after = base64.urlsafe_b64decode(token).decode() if token else query.get("start-after", "")
        after = query.get("marker", after)
        most = min(int(query.get("max-keys", PAGE)), PAGE)
        page = self._shelves.page(
            bucket, query.get("prefix", ""), after, query.get("delimiter", ""), most
        )
        return xml("ListBucketResult", listed(page, query, bucket))

    # -- objects -----------------------------------------------------------------------------

    def _of_object(self, asked: Asked, bucket: str, key: str) -> Answer:
        if asked.method == "PUT":
            return self._put(asked, bucket, key)
        if asked.method in ("GET", "HEAD"):
            return self._read(asked, bucket, key)
        if asked.method == "DELETE":
            self._shelves.delete(bucket, key, match_of(asked.headers))
            return Answer(204)
        raise UNKNOWN

    def _read(self, asked: Asked, bucket: str, key: str) -> Answer:
        stored = self._shelves.get(bucket, key)
        match_of(asked.headers).check(stored)
        try:
            answer = given(asked, stored)
        except FileNotFoundError:  # another object has just taken its place
            stored = self._shelves.get(bucket, key)
            answer = given(asked, stored)
        return replace(answer, headers={**answer.headers, **told_of(stored)})

    def _put(self, asked: Asked, bucket: str, key: str) -> Answer:
        match, now = match_of(asked.headers), self._now()
        source = asked.headers.get(COPY_SOURCE)
        if source is None:
            new = New(asked.body, now, kept_headers(asked))
            stored = self._shelves.put(bucket, key, new, match)
            named = {"ETag": stored.etag, GENERATION: stored.headers[GENERATION]}
            return Answer(200, named | told_of(stored))
        from_bucket, _, from_key = unquote(source).lstrip("/").partition("/")
        there = self._shelves.get(from_bucket, from_key)
        is_new = asked.headers.get(DIRECTIVE, "COPY") == "REPLACE"
        kept = kept_headers(asked) if is_new else there.headers
        copy = New(there.body.read(), now, dict(kept), there.etag)
        stored = self._shelves.put(bucket, key, copy, match)
        told = f"<ETag>{stored.etag}</ETag><LastModified>{iso(now)}</LastModified>"
        return xml("CopyObjectResult", told, {GENERATION: stored.headers[GENERATION]})

    # -- in parts ----------------------------------------------------------------------------

    def _in_parts(self, asked: Asked, bucket: str, key: str) -> Answer:
        upload, method = asked.query.get("uploadId", ""), asked.method
        told = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
        if method == "POST" and not upload:
            name = self._shelves.begin(bucket, key, kept_headers(asked))
            return xml("InitiateMultipartUploadResult", f"{told}<UploadId>{name}</UploadId>")
        if method == "PUT":
            number = int(asked.query.get("partNumber", "0"))
            return Answer(200, {"ETag": self._shelves.part(upload, number, asked.body)})
        if method == "POST":
            wanted = [(int(one["PartNumber"]), one["ETag"]) for one in elements(asked.body, "Part")]
            stored = self._shelves.complete(bucket, upload, wanted)
            named = {GENERATION: stored.headers[GENERATION]}
            return xml("CompleteMultipartUploadResult", f"{told}<ETag>{stored.etag}</ETag>", named)
        if method == "DELETE":
            self._shelves.abort(upload)
            return Answer(204)
        entries = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag><Size>{size}</Size></Part>"
            for number, size, etag in self._shelves.parts(upload)
        )
        return xml("ListPartsResult", f"{told}<IsTruncated>false</IsTruncated>{entries}")
