"""The words of S3: headers, XML and times, as its API Reference has them."""

import base64
import re
from datetime import UTC, datetime
from email.utils import formatdate
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.objects import Condition, Page, Stored
from cloudwhale_providers.sandbox.endpoint.refused import Refused

SPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
PAGE = 1000
"""The most that S3 lists at once."""
KEPT = ("content-type", "content-encoding", "content-disposition", "cache-control")
RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")


def body_of(asked: Asked) -> bytes:
    """Return what is stored: some clients wrap it in signed chunks (SigV4, "aws-chunked")."""
    if "aws-chunked" not in asked.headers.get("content-encoding", ""):
        return asked.body
    found: list[bytes] = []
    at = 0
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


def given(asked: Asked, stored: Stored) -> Answer:
    """Return an object, or the part that is asked for; raise Refused."""
    headers = {
        "content-type": "binary/octet-stream",
        **stored.headers,
        "ETag": stored.etag,
        "Last-Modified": formatdate(int(stored.at), usegmt=True),
        "Accept-Ranges": "bytes",
    }
    match, none_match = condition(asked)
    if match is not None and match.strip('"') != stored.etag.strip('"'):
        raise Refused("PreconditionFailed", "At least one of the pre-conditions did not hold", 412)
    if none_match is not None and none_match.strip('"') == stored.etag.strip('"'):
        return Answer(304, {"ETag": stored.etag})
    body, status = stored.body, 200
    first, last = 0, body.size - 1
    span = RANGE.fullmatch(asked.headers.get("range", ""))
    if span is not None:
        first, last = _span(span, body.size)
        headers["Content-Range"] = f"bytes {first}-{last}/{body.size}"
        status = 206
    if asked.method == "HEAD":
        return Answer(status, headers, b"", last + 1 - first)
    stretch = body.stretch(first, last)
    if stretch is not None:
        return Answer(status, headers, stretch=stretch)
    return Answer(status, headers, body.read(first, last))


def _span(span: re.Match[str], size: int) -> tuple[int, int]:
    if not span[1]:  # the last bytes of it
        first, last = max(0, size - int(span[2])), size - 1
    else:
        first, last = int(span[1]), min(int(span[2] or size), size - 1)
    if first > last:
        raise Refused("InvalidRange", "The requested range is not satisfiable", 416)
    return first, last


def listed(page: Page, query: dict[str, str], bucket: str) -> str:
    """Return the inside of a list."""
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
        f"<ETag>{one.etag}</ETag><Size>{one.body.size}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
        for key, one in page.found
    )
    return told + "".join(
        f"<CommonPrefixes><Prefix>{shown(one)}</Prefix></CommonPrefixes>" for one in page.folders
    )


def _coded(text: str) -> str:
    return quote(text, safe="/")


def kept_headers(asked: Asked) -> dict[str, str]:
    """Return the headers that are given back with an object."""
    kept = {
        name: value
        for name, value in asked.headers.items()
        if name in KEPT or name.startswith("x-amz-meta-")
    }
    if "aws-chunked" in kept.get("content-encoding", ""):
        del kept["content-encoding"]
    return kept


def condition(asked: Asked) -> Condition:
    """Return what must hold for a request to be done."""
    return asked.headers.get("if-match"), asked.headers.get("if-none-match")


def elements(body: bytes, name: str) -> list[dict[str, str]]:
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


def elsewhere(region: str) -> Answer:
    """Return where a bucket lies that was looked for in another region."""
    says = "The bucket you are attempting to access must be addressed using the specified endpoint."
    body = f"<Error><Code>PermanentRedirect</Code><Message>{says}</Message></Error>"
    headers = {"Content-Type": "application/xml", "x-amz-bucket-region": region}
    return Answer(301, headers, body.encode())


def unknown() -> Refused:
    """Return what is said to a request that is not known here."""
    return Refused("NotImplemented", "The sandbox does not know this request of S3", 501)


def xml(name: str, told: str) -> Answer:
    """Return an answer in XML."""
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} {SPACE}>{told}</{name}>'
    return Answer(200, {"Content-Type": "application/xml"}, text.encode())
