"""Whether a request is signed as it says: Signature Version 4, of headers or of an address.

AWS General Reference, "Create a signed AWS API request"; IAM User Guide, "Elements of an AWS API
request signature". Times are not looked at: the box's clock may go faster than the clients', who
sign by their own.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from posixpath import normpath
from urllib.parse import parse_qsl, quote

from cloudwhale_providers.sandbox.endpoint.messages import Asked

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
STREAMING = "STREAMING-"
"""Begins the words for bodies that are sent in chunks: their own signatures are not looked at."""
CONTENT = "x-amz-content-sha256"
SAFE = "-_.~"
SPACES = re.compile(r" +")


@dataclass(frozen=True, slots=True)
class Signed:
    """What a request says of its own signature."""

    key: str
    """Access key id."""
    scope: tuple[str, str, str]
    """Day, region, service."""
    headers: Sequence[str]
    """Names of those that are signed, in lower case."""
    signature: str
    token: str
    """Session token; empty: none is shown."""
    at: str
    """When it was signed, `20261130T110000Z`."""
    is_address: bool
    """Whether the address itself carries it, made by somebody beforehand."""


def read(asked: Asked) -> Signed | None:
    """Return how a request is signed; None: it is not, or not in a way that is known."""
    said = asked.headers.get("authorization", "")
    if said:
        name, _, words = said.partition(" ")
        fields = dict(_pair(word) for word in words.split(","))
        token, at = asked.headers.get("x-amz-security-token", ""), _date(asked)
    else:
        query = asked.query
        name = query.get("X-Amz-Algorithm", "")
        fields = {word: query.get(f"X-Amz-{word}", "") for word in ("Credential", "SignedHeaders")}
        fields["Signature"] = query.get("X-Amz-Signature", "")
        token, at = query.get("X-Amz-Security-Token", ""), query.get("X-Amz-Date", "")
    scope = fields.get("Credential", "").rsplit("/", 4)
    if name != ALGORITHM or len(scope) != 5:
        return None
    return Signed(
        scope[0], (scope[1], scope[2], scope[3]), fields.get("SignedHeaders", "").split(";"),
        fields.get("Signature", ""), token, at, not said,
    )  # fmt: skip


def is_right(asked: Asked, signed: Signed, secret: str) -> bool:
    """Say whether a request was signed with a secret, and its body is the one that was signed."""
    service = signed.scope[2]
    payload = _payload(asked, signed)
    if payload is None:
        return False
    lines = [
        asked.method,
        _path(asked, service),
        _query(asked, signed.is_address),
        *(f"{name}:{_clean(asked.headers.get(name, ''))}" for name in signed.headers),
        "",
        ";".join(signed.headers),
        payload,
    ]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    said = f"{ALGORITHM}\n{signed.at}\n{'/'.join(signed.scope)}/aws4_request\n{digest}"
    found = hmac.digest(_key(secret, signed.scope), said.encode(), "sha256").hex()
    return hmac.compare_digest(found, signed.signature)


@lru_cache(maxsize=1024)
def _key(secret: str, scope: tuple[str, str, str]) -> bytes:
    key = f"AWS4{secret}".encode()
    for word in (*scope, "aws4_request"):
        key = hmac.digest(key, word.encode(), "sha256")
    return key


def _payload(asked: Asked, signed: Signed) -> str | None:
    """Return the word for the body; None when the body is another than is said."""
    if signed.is_address and signed.scope[2] == "s3":
        return UNSIGNED
    said = asked.headers.get(CONTENT, "")
    if said == UNSIGNED or said.startswith(STREAMING):
        return said
    found = hashlib.sha256(asked.body).hexdigest()
    return found if said in ("", found) else None


def _path(asked: Asked, service: str) -> str:
    """Return the path as it is signed: S3's as it came, those of others cleaned and coded again."""
    path = asked.target.partition("?")[0] or "/"
    if service == "s3":
        return path
    slash = "/" if path.endswith("/") and path != "/" else ""
    return quote(normpath(path) + slash, safe="/~")


def _query(asked: Asked, is_address: bool) -> str:
    text = asked.target.partition("?")[2]
    if not text:
        return ""
    pairs = [
        (quote(name, safe=SAFE), quote(value, safe=SAFE))
        for name, value in parse_qsl(text, keep_blank_values=True)
        if not (is_address and name == "X-Amz-Signature")
    ]
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _clean(value: str) -> str:
    return SPACES.sub(" ", value.strip())


def _pair(word: str) -> tuple[str, str]:
    name, _, value = word.strip().partition("=")
    return name, value


def _date(asked: Asked) -> str:
    headers: Mapping[str, str] = asked.headers
    return headers.get("x-amz-date", "")
