"""S3 over HTTP, as much as a mailbox and checkpoints need; path style, all in memory."""

import base64
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.objects import Condition, Objects, Page, Stored, tag
from cloudwhale_providers.sandbox.endpoint.refused import Refused

SPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""S3 User Guide, "General purpose bucket naming rules"."""
PAGE = 1000
"""The most that S3 lists at once."""
KEPT = ("content-type", "content-encoding", "content-disposition", "cache-control")
RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")
DEPTH = 3
"""So many folders of a key tell requests apart."""


class S3:
    """Answers one request of S3."""

    def __init__(
        self, objects: Objects, now: Callable[[], Instant], foreign: frozenset[str]
    ) -> None:
        self.objects = objects
        self._now = now
        self._foreign = foreign
        self.requests: Counter[tuple[str, str]] = Counter()
        """How many there were, by method (`LIST` too) and folder of the key."""

    def answer(self, asked: Asked) -> Answer:
        """Return the answer; raise Refused."""
        bucket, _, key = asked.path.lstrip("/").partition("/")
        self._count(asked, bucket, key)
        if not bucket:
            return self._buckets()
        if bucket in self._foreign:
            raise Refused("AccessDenied", "Access Denied", 403)
        if not key:
            return self._of_bucket(asked, bucket)
        region = self.objects.bucket(bucket).region
        if (signed := asked.signed[1]) and signed != region:
            return _elsewhere(region)
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
        return _xml("ListAllMyBucketsResult", f"<Buckets>{entries}</Buckets>")

    def _of_bucket(self, asked: Asked, bucket: str) -> Answer:
        query = asked.query
        if asked.method == "PUT" and not query:
            return self._make(asked, bucket)
        region = self.objects.bucket(bucket).region
        if (signed := asked.signed[1]) and signed != region and "location" not in query:
            return _elsewhere(region)
        if asked.method == "HEAD":
            return Answer(200, {"x-amz-bucket-region": region})
        if asked.method == "DELETE" and not query:
            self.objects.unmake(bucket)
            return Answer(204)
        if asked.method == "POST" and "delete" in query:
            return self._delete_many(asked, bucket)
        if asked.method == "GET":
            return self._told(asked, bucket, region)
        raise _unknown()

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
            return _xml("LocationConstraint", "" if region == "us-east-1" else region)
        if "uploads" in query:
            entries = "".join(
                f"<Upload><Key>{escape(one.key)}</Key><UploadId>{name}</UploadId>"
                f"<Initiated>{iso(one.at)}</Initiated></Upload>"
                for name, one in sorted(self.objects.uploads(bucket).items())
            )
            return _xml("ListMultipartUploadsResult", f"<IsTruncated>false</IsTruncated>{entries}")
        if "versioning" in query:
            return _xml("VersioningConfiguration", "")
        known = {"list-type", "prefix", "delimiter", "max-keys", "start-after",
                 "continuation-token", "encoding-type", "fetch-owner", "marker"}  # fmt: skip
        if set(query) - known:
            raise _unknown()
        return self._list(query, bucket)

    def _list(self, query: dict[str, str], bucket: str) -> Answer:
        token = query.get("continuation-token")
        after = base64.urlsafe_b64decode(token).decode() if token else query.get("start-after", "")
        after = query.get("marker", after)
        most = min(int(query.get("max-keys", PAGE)), PAGE)
        page = self.objects.page(
            bucket, query.get("prefix", ""), after, query.get("delimiter", ""), most
        )
        return _xml("ListBucketResult", _listed(page, query, bucket))

    def _delete_many(self, asked: Asked, bucket: str) -> Answer:
        gone = ""
        for one in _elements(asked.body, "Object"):
            key = one["Key"]
            self.objects.delete(bucket, key)
            gone += f"<Deleted><Key>{escape(key)}</Key></Deleted>"
        return _xml("DeleteResult", gone)

    # -- objects -----------------------------------------------------------------------------

    def _of_object(self, asked: Asked, bucket: str, key: str) -> Answer:
        method, query = asked.method, asked.query
        if "uploadId" in query or "uploads" in query:
            return self._in_parts(asked, bucket, key)
        if set(query) - {"x-id"} and not asked.query.get("X-Amz-Signature"):
            raise _unknown()
        if method == "PUT":
            return self._put(asked, bucket, key)
        if method in ("GET", "HEAD"):
            return _given(asked, self.objects.get(bucket, key))
        if method == "DELETE":
            self.objects.delete(bucket, key)
            return Answer(204)
        raise _unknown()

    def _put(self, asked: Asked, bucket: str, key: str) -> Answer:
        headers, now = asked.headers, self._now()
        source = headers.get("x-amz-copy-source")
        if source is not None:
            stored = self._source(source)
            kept = stored.headers
            if headers.get("x-amz-metadata-directive", "COPY") == "REPLACE":
                kept = _kept(asked)
            stored = Stored(stored.body, stored.etag, now, kept)
            self.objects.put(bucket, key, stored, _condition(asked))
            told = f"<ETag>{stored.etag}</ETag><LastModified>{iso(now)}</LastModified>"
            return _xml("CopyObjectResult", told)
        body = body_of(asked)
        stored = Stored(body, tag(body), now, _kept(asked))
        self.objects.put(bucket, key, stored, _condition(asked))
        return Answer(200, {"ETag": stored.etag})

    def _source(self, source: str) -> Stored:
        from urllib.parse import unquote

        bucket, _, key = unquote(source).lstrip("/").partition("/")
        return self.objects.get(bucket, key)

    def _in_parts(self, asked: Asked, bucket: str, key: str) -> Answer:
        upload, method = asked.query.get("uploadId", ""), asked.method
        told = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
        if method == "POST" and not upload:
            name = self.objects.begin(bucket, key, _kept(asked), self._now())
            told += f"<UploadId>{name}</UploadId>"
            return _xml("InitiateMultipartUploadResult", told)
        if method == "PUT":
            source = asked.headers.get("x-amz-copy-source")
            body = self._source(source).body if source else body_of(asked)
            etag = self.objects.part(upload, int(asked.query["partNumber"]), body)
            if source:
                return _xml("CopyPartResult", f"<ETag>{etag}</ETag>")
            return Answer(200, {"ETag": etag})
        if method == "POST":
            wanted = [
                (int(one["PartNumber"]), one["ETag"]) for one in _elements(asked.body, "Part")
            ]
            stored = self.objects.complete(upload, wanted, _condition(asked), self._now())
            return _xml("CompleteMultipartUploadResult", f"{told}<ETag>{stored.etag}</ETag>")
        if method == "DELETE":
            self.objects.abort(upload)
            return Answer(204)
        entries = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag><Size>{len(body)}</Size></Part>"
            for number, (body, etag) in sorted(self.objects.parts(upload).items())
        )
        return _xml("ListPartsResult", f"{told}<IsTruncated>false</IsTruncated>{entries}")


def action_of(asked: Asked) -> str:
    """Return what S3 calls a request: `PutObject`, `ListObjects`."""
    key = asked.path.lstrip("/").partition("/")[2]
    query, method = asked.query, asked.method
    if "uploads" in query:
        return "CreateMultipartUpload" if method == "POST" else "ListMultipartUploads"
    if "uploadId" in query:
        return {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "GET": "ListParts"}.get(
            method, "AbortMultipartUpload"
        )
    if not key:
        return {"GET": "ListObjects", "HEAD": "HeadBucket", "POST": "DeleteObjects"}.get(
            method, f"{method.title()}Bucket"
        )
    return f"{method.title()}Object"


def body_of(asked: Asked) -> bytes:
    """Return what is stored: some clients wrap it in signed chunks (SigV4, "aws-chunked")."""
    if "aws-chunked" not in asked.headers.get("content-encoding", ""):
        return asked.body
    found, at = [], 0
    while at < len(asked.body):
        end = asked.body.index(b"\r\n", at)
        size = int(asked.body[at:end].split(b";")[0], 16)
        if not size:
            break
        found.append(asked.body[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return b"".join(found)


def iso(at: Instant) -> str:
    """Return a time as S3 lists it: whole seconds."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _given(asked: Asked, stored: Stored) -> Answer:
    headers = {
        "Content-Type": "binary/octet-stream",
        **stored.headers,
        "ETag": stored.etag,
        "Last-Modified": formatdate(int(stored.at), usegmt=True),
        "Accept-Ranges": "bytes",
    }
    match, none_match = _condition(asked)
    if match is not None and match.strip('"') != stored.etag.strip('"'):
        raise Refused("PreconditionFailed", "At least one of the pre-conditions did not hold", 412)
    if none_match is not None and none_match.strip('"') == stored.etag.strip('"'):
        return Answer(304, {"ETag": stored.etag})
    body, status = stored.body, 200
    span = RANGE.fullmatch(asked.headers.get("range", ""))
    if span is not None:
        first, last = _span(span, len(body))
        headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        body, status = body[first : last + 1], 206
    if asked.method == "HEAD":
        return Answer(status, headers, b"", len(body))
    return Answer(status, headers, body)


def _span(span: re.Match[str], size: int) -> tuple[int, int]:
    if not span[1]:  # the last bytes of it
        first, last = max(0, size - int(span[2])), size - 1
    else:
        first, last = int(span[1]), min(int(span[2] or size), size - 1)
    if first > last:
        raise Refused("InvalidRange", "The requested range is not satisfiable", 416)
    return first, last


def _listed(page: Page, query: dict[str, str], bucket: str) -> str:
    is_coded = query.get("encoding-type") == "url"
    shown = _coded if is_coded else escape
    told = f"<Name>{bucket}</Name><Prefix>{shown(query.get('prefix', ''))}</Prefix>"
    told += f"<MaxKeys>{query.get('max-keys', PAGE)}</MaxKeys>"
    told += f"<KeyCount>{len(page.found) + len(page.folders)}</KeyCount>"
    if is_coded:
        told += "<EncodingType>url</EncodingType>"
    told += f"<IsTruncated>{'true' if page.more_after is not None else 'false'}</IsTruncated>"
    if page.more_after is not None:
        token = base64.urlsafe_b64encode(page.more_after.encode()).decode()
        told += f"<NextContinuationToken>{token}</NextContinuationToken>"
    told += "".join(
        f"<Contents><Key>{shown(key)}</Key><LastModified>{iso(one.at)}</LastModified>"
        f"<ETag>{one.etag}</ETag><Size>{len(one.body)}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
        for key, one in page.found
    )
    return told + "".join(
        f"<CommonPrefixes><Prefix>{shown(one)}</Prefix></CommonPrefixes>" for one in page.folders
    )


def _coded(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="/")


def _kept(asked: Asked) -> dict[str, str]:
    """Return the headers that are given back with an object."""
    kept = {
        name: value
        for name, value in asked.headers.items()
        if name in KEPT or name.startswith("x-amz-meta-")
    }
    if "aws-chunked" in kept.get("content-encoding", ""):
        del kept["content-encoding"]
    return kept


def _condition(asked: Asked) -> Condition:
    return asked.headers.get("if-match"), asked.headers.get("if-none-match")


def _elements(body: bytes, name: str) -> list[dict[str, str]]:
    """Return the elements of a name that a body lists, each as texts by tag."""
    try:
        tree = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise Refused("MalformedXML", "The XML you provided was not well-formed") from error
    return [
        {child.tag.rpartition("}")[2]: child.text or "" for child in one}
        for one in tree.iter()
        if one.tag.rpartition("}")[2] == name
    ]


def _elsewhere(region: str) -> Answer:
    says = "The bucket you are attempting to access must be addressed using the specified endpoint."
    body = f"<Error><Code>PermanentRedirect</Code><Message>{says}</Message></Error>"
    headers = {"Content-Type": "application/xml", "x-amz-bucket-region": region}
    return Answer(301, headers, body.encode())


def _unknown() -> Refused:
    return Refused("NotImplemented", "The sandbox does not know this request of S3", 501)


def _xml(name: str, told: str) -> Answer:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} {SPACE}>{told}</{name}>'
    return Answer(200, {"Content-Type": "application/xml"}, text.encode())
