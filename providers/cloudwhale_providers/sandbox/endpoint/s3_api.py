"""S3 over HTTP, as much as a mailbox and checkpoints need; path style."""

import base64
import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import unquote
from xml.sax.saxutils import escape

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.endpoint import needs_s3, s3_told
from cloudwhale_providers.sandbox.endpoint.callers import Caller
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.objects import New, Objects, Stored
from cloudwhale_providers.sandbox.endpoint.permits import Permits
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.s3_words import (
    PAGE,
    body_of,
    condition,
    elements,
    elsewhere,
    given,
    iso,
    kept_headers,
    listed,
    unknown,
    xml,
)
from cloudwhale_providers.sandbox.names import ACCOUNT

NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""S3 User Guide, "General purpose bucket naming rules"."""
DEPTH = 3
"""So many folders of a key tell requests apart."""


class S3:
    """Answers one request of S3."""

    def __init__(
        self,
        objects: Objects,
        now: Callable[[], Instant],
        foreign: frozenset[str],
        permits: Permits,
    ) -> None:
        self.objects = objects
        self._now = now
        self._foreign = foreign
        self._permits = permits
        self._told_of = s3_told.Told()
        self.requests: Counter[tuple[str, str]] = Counter()
        """How many there were, by method (`LIST` too) and folder of the key."""

    def answer(self, asked: Asked, caller: Caller) -> Answer:
        """Return the answer; raise Refused, also for who may not ask."""
        bucket, _, key = asked.path.lstrip("/").partition("/")
        self._count(asked, bucket, key)
        if not self._permits.is_held(caller):
            return self._answered(asked, bucket, key)
        self._permits.check("s3", caller, needs_s3.needs(asked))
        if asked.method == "POST" and not key and "delete" in asked.query:
            return self._delete_many(asked, bucket, lambda one: self._may_delete(caller, one))
        try:
            return self._answered(asked, bucket, key)
        except Refused as refused:
            if refused.code == "NoSuchKey":  # only who may list may hear that
                self._permits.check("s3", caller, [needs_s3.existence(bucket, key)])
            raise

    def _may_delete(self, caller: Caller, at: tuple[str, str]) -> bool:
        return self._permits.may(caller, needs_s3.of_object("DeleteObject", *at))

    def _answered(self, asked: Asked, bucket: str, key: str) -> Answer:
        if not bucket:
            return self._buckets()
        owner = asked.headers.get("x-amz-expected-bucket-owner", ACCOUNT)
        if bucket in self._foreign or (owner != ACCOUNT and bucket):
            raise Refused("AccessDenied", "Access Denied", 403)
        if not key:
            return self._of_bucket(asked, bucket)
        region = self.objects.bucket(bucket).region
        if (signed := asked.signed[1]) and signed != region:
            return elsewhere(region)
        return self._of_object(asked, bucket, key)

    def _count(self, asked: Asked, bucket: str, key: str) -> None:
        is_list = asked.method == "GET" and not key
        folder = (asked.query.get("prefix", "") if is_list else key).split("/")[:-1]
        method = "LIST" if is_list else asked.method
        self.requests[method, "/".join([bucket, *folder[:DEPTH]])] += 1

    # -- buckets -----------------------------------------------------------------------------

    def _buckets(self) -> Answer:
        entries = "".join(
            f"<Bucket><Name>{name}</Name><CreationDate>{iso(one.made_at)}</CreationDate></Bucket>"
            for name, one in sorted(self.objects.buckets().items())
        )
        return xml("ListAllMyBucketsResult", f"<Buckets>{entries}</Buckets>")

    def _of_bucket(self, asked: Asked, bucket: str) -> Answer:
        query = asked.query
        if asked.method == "PUT" and not query:
            return self._make(asked, bucket)
        region = self.objects.bucket(bucket).region
        if (signed := asked.signed[1]) and signed != region and "location" not in query:
            return elsewhere(region)
        if word := s3_told.word_of(asked):
            return self._told_of.answer(asked, bucket, word)
        if asked.method == "HEAD":
            return Answer(200, {"x-amz-bucket-region": region})
        if asked.method == "DELETE" and not query:
            self.objects.unmake(bucket)
            return Answer(204)
        if asked.method == "POST" and "delete" in query:
            return self._delete_many(asked, bucket, lambda one: True)
        if asked.method == "GET":
            return self._told(asked, bucket, region)
        raise unknown()

    def _make(self, asked: Asked, bucket: str) -> Answer:
        if NAME.fullmatch(bucket) is None:
            raise Refused("InvalidBucketName", "The specified bucket is not valid.")
        if bucket in self.objects.buckets():
            says = (
                "Your previous request to create the named bucket succeeded and you already own it."
            )
            raise Refused("BucketAlreadyOwnedByYou", says, 409)
        self.objects.make(bucket, asked.signed[1] or "us-east-1", self._now())
        return Answer(200, {"Location": f"/{bucket}"})

    def _told(self, asked: Asked, bucket: str, region: str) -> Answer:
        query = asked.query
        if "location" in query:
            return xml("LocationConstraint", "" if region == "us-east-1" else region)
        if "uploads" in query:
            entries = "".join(
                f"<Upload><Key>{escape(one.key)}</Key><UploadId>{name}</UploadId>"
                f"<Initiated>{iso(one.at)}</Initiated></Upload>"
                for name, one in sorted(self.objects.uploads(bucket).items())
            )
            return xml("ListMultipartUploadsResult", f"<IsTruncated>false</IsTruncated>{entries}")
        if "versioning" in query:
            return xml("VersioningConfiguration", "")
        known = {"list-type", "prefix", "delimiter", "max-keys", "start-after",
                 "continuation-token", "encoding-type", "fetch-owner", "marker"}  # fmt: skip
        if set(query) - known:
            raise unknown()
        return self._list(query, bucket)

    def _list(self, query: dict[str, str], bucket: str) -> Answer:
        token = query.get("continuation-token")
        after = base64.urlsafe_b64decode(token).decode() if token else query.get("start-after", "")
        after = query.get("marker", after)
        most = min(int(query.get("max-keys", PAGE)), PAGE)
        page = self.objects.page(
            bucket, query.get("prefix", ""), after, query.get("delimiter", ""), most
        )
        return xml("ListBucketResult", listed(page, query, bucket))

    def _delete_many(
        self, asked: Asked, bucket: str, may: Callable[[tuple[str, str]], bool]
    ) -> Answer:
        gone = ""
        for one in elements(asked.body, "Object"):
            key = one["Key"]
            if not may((bucket, key)):
                told = f"<Key>{escape(key)}</Key><Code>AccessDenied</Code>"
                gone += f"<Error>{told}<Message>Access Denied</Message></Error>"
                continue
            self.objects.delete(bucket, key)
            gone += f"<Deleted><Key>{escape(key)}</Key></Deleted>"
        return xml("DeleteResult", gone)

    # -- objects -----------------------------------------------------------------------------

    def _of_object(self, asked: Asked, bucket: str, key: str) -> Answer:
        method, query = asked.method, asked.query
        if "uploadId" in query or "uploads" in query:
            return self._in_parts(asked, bucket, key)
        if set(query) - {"x-id"} and not asked.query.get("X-Amz-Signature"):
            raise unknown()
        if method == "PUT":
            return self._put(asked, bucket, key)
        if method in ("GET", "HEAD"):
            return self._read(asked, bucket, key)
        if method == "DELETE":
            self.objects.delete(bucket, key)
            return Answer(204)
        raise unknown()

    def _read(self, asked: Asked, bucket: str, key: str) -> Answer:
        try:
            return given(asked, self.objects.get(bucket, key))
        except FileNotFoundError:  # another object has just taken its place
            return given(asked, self.objects.get(bucket, key))

    def _put(self, asked: Asked, bucket: str, key: str) -> Answer:
        headers, now = asked.headers, self._now()
        source = headers.get("x-amz-copy-source")
        if source is not None:
            there = self._source(source)
            kept = there.headers
            if headers.get("x-amz-metadata-directive", "COPY") == "REPLACE":
                kept = kept_headers(asked)
            new = New(there.body.read(), now, kept, there.etag)
            stored = self.objects.put(bucket, key, new, condition(asked))
            told = f"<ETag>{stored.etag}</ETag><LastModified>{iso(now)}</LastModified>"
            return xml("CopyObjectResult", told)
        new = New(body_of(asked), now, kept_headers(asked))
        stored = self.objects.put(bucket, key, new, condition(asked))
        return Answer(200, {"ETag": stored.etag})

    def _source(self, source: str) -> Stored:
        bucket, _, key = unquote(source).lstrip("/").partition("/")
        return self.objects.get(bucket, key)

    def _in_parts(self, asked: Asked, bucket: str, key: str) -> Answer:
        upload, method = asked.query.get("uploadId", ""), asked.method
        told = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
        if method == "POST" and not upload:
            name = self.objects.begin(bucket, key, kept_headers(asked), self._now())
            told += f"<UploadId>{name}</UploadId>"
            return xml("InitiateMultipartUploadResult", told)
        if method == "PUT":
            source = asked.headers.get("x-amz-copy-source")
            body = self._source(source).body.read() if source else body_of(asked)
            etag = self.objects.part(upload, int(asked.query["partNumber"]), body)
            if source:
                return xml("CopyPartResult", f"<ETag>{etag}</ETag>")
            return Answer(200, {"ETag": etag})
        if method == "POST":
            wanted = [(int(one["PartNumber"]), one["ETag"]) for one in elements(asked.body, "Part")]
            stored = self.objects.complete(upload, wanted, condition(asked), self._now())
            return xml("CompleteMultipartUploadResult", f"{told}<ETag>{stored.etag}</ETag>")
        if method == "DELETE":
            self.objects.abort(upload)
            return Answer(204)
        entries = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag><Size>{body.size}</Size></Part>"
            for number, (body, etag) in sorted(self.objects.parts(upload).items())
        )
        return xml("ListPartsResult", f"{told}<IsTruncated>false</IsTruncated>{entries}")
