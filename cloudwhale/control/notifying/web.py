"""Sends a message over HTTP: signed as Standard Webhooks says, or as Slack takes it.

The names of headers, `id.timestamp.body` as what is signed, and `whsec_` before a secret in base64
are those of https://www.standardwebhooks.com. Redirects are not followed: who is named gets it, or
nobody.
"""

import base64
import binascii
import hashlib
import hmac
import http.client
import urllib.request
from collections.abc import Mapping
from contextlib import closing
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

from cloudwhale.clock import dated
from cloudwhale.control.notifying.addresses import is_loopback
from cloudwhale.control.notifying.limits import cut_after
from cloudwhale.control.notifying.message import Answer, Message
from cloudwhale.control.notifying.reaching import trusting, why
from cloudwhale.control.notifying.targets import Target
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import SettingsError

AGENT = "cloudwhale"
HEARD_MOST_S: Seconds = 3600.0
"""A target that wants to be left alone for longer is asked again all the same."""

_PREFIX = "whsec_"
_OVER = frozenset({http.client.NOT_FOUND, http.client.GONE})
_LATER = frozenset({http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE})
_TARGETS = frozenset({401, 403, 407, 408, 429})
"""Refusals that say nothing of the message."""


def sent(message: Message, target: Target, now: Instant, limit_s: Seconds) -> Answer:
    """Send it and return the answer; it takes `limit_s` at most, but for a name's look-up."""
    url, real = target.address(), dated(now)
    if target.way == "slack":
        body, headers = message.slack(), dict[str, str]()
    else:
        body = message.body()
        headers = signed(message.id, int(real), body, _secret(target))
    try:
        status, reason, later = _posted(
            _connection(target, urlsplit(url), limit_s), urlsplit(url), body, headers, limit_s
        )
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Answer("again", f"{_shown(url)} does not answer: {why(error)}")
    return _judged(status, f"{_shown(url)} answers {status} {reason}".strip(), later, real)


def signed(key: str, at_s: int, body: bytes, secret: str) -> dict[str, str]:
    """Return the headers of a webhook; without a secret it has no signature."""
    headers = {"webhook-id": key, "webhook-timestamp": str(at_s)}
    if secret:
        content = f"{key}.{at_s}.".encode() + body
        digest = hmac.new(_bytes_of(secret), content, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers


def _bytes_of(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SettingsError(
            f"a secret that begins with {_PREFIX} goes on in base64, and one does not",
            "Copy it anew, whole.",
        ) from error


def _secret(target: Target) -> str:
    return target.secret.read() if target.secret.is_given else ""


def _posted(
    made: http.client.HTTPConnection,
    parts: SplitResult,
    body: bytes,
    headers: Mapping[str, str],
    limit_s: Seconds,
) -> tuple[int, str, str]:
    """Return the status, what stands behind it, and how long to wait, if that is said."""
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    whole = {"Content-Type": "application/json", "User-Agent": AGENT, **headers}
    with closing(made) as connection, cut_after(limit_s, lambda: made.sock):
        connection.request("POST", path, body, whole)
        answer = connection.getresponse()
        words = "".join(c for c in answer.reason if c.isprintable())[:60]
        return answer.status, words, answer.getheader("Retry-After") or ""


def _connection(target: Target, parts: SplitResult, limit_s: Seconds) -> http.client.HTTPConnection:
    """Return a connection that is not open yet, by way of the environment's proxy if there is."""
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    proxy = "" if is_loopback(host) else urllib.request.getproxies().get(parts.scheme, "")
    if proxy and urllib.request.proxy_bypass(host):
        proxy = ""
    by = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    near = (by.hostname or host, (by.port or 3128) if by.hostname else port)
    if not is_secure:  # of this host only, and so without a proxy
        return http.client.HTTPConnection(host, port, timeout=limit_s)
    made = http.client.HTTPSConnection(*near, timeout=limit_s, context=trusting(target))
    if by.hostname:
        made.set_tunnel(host, port)
    return made


def _judged(status: int, says: str, later: str, now: Instant) -> Answer:
    if 200 <= status < 300:
        return Answer("told", says)
    if status in _OVER:
        return Answer("never", says)
    if 300 <= status < 400:
        return Answer("again", f"{says}: write the address that it redirects to")
    after_s = _left_alone_s(later, now) if status in _LATER else None
    return Answer("again", says, after_s, only_this=400 <= status < 500 and status not in _TARGETS)


def _left_alone_s(later: str, now: Instant) -> Seconds | None:
    """Return how long a target wants to be left alone: seconds, or until a date."""
    try:
        after_s = (
            float(later) if later.isdigit() else parsedate_to_datetime(later).timestamp() - now
        )
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, after_s), HEARD_MOST_S)


def _shown(url: str) -> str:
    """Return whom an address is of; the rest of it may be a secret."""
    return urlsplit(url).hostname or "it"
