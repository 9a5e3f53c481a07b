"""How a machine asks a store that speaks S3: where its objects are, and what proves who asks.

A part of the program whose first is machine_asking.py.
"""

import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from cloudwhale_providers.machine_asking import (
    OFF,
    SAID,
    now,
)


def url_of(key: str) -> str:
    """Return where an object of the mailbox is."""
    bucket, _, prefix = SAID["CLOUDWHALE_MAILBOX"].removeprefix("s3://").partition("/")
    path = quote("/".join(part for part in (prefix.strip("/"), key) if part), safe="/-_.~")
    endpoint = SAID.get("AWS_ENDPOINT_URL", "").rstrip("/")
    host = f"s3.{SAID['CLOUDWHALE_REGION']}.amazonaws.com"
    if not endpoint and "." not in bucket:
        return f"https://{bucket}.{host}/{path}"
    return f"{endpoint or f'https://{host}'}/{bucket}/{path}"


def signed(
    method: str, url: str, headers: Mapping[str, str], body: bytes, role: Mapping[str, Any]
) -> dict[str, str]:
    """Return headers with a signature: AWS Signature Version 4, of S3."""
    to, at = urlsplit(url), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now() + OFF[0]))
    scope = [at[:8], SAID["CLOUDWHALE_REGION"], "s3", "aws4_request"]
    digest = hashlib.sha256(body).hexdigest()
    own = {"host": to.netloc, "x-amz-content-sha256": digest, "x-amz-date": at, **headers}
    if role.get("Token"):
        own["x-amz-security-token"] = role["Token"]
    names = ";".join(sorted(own))
    lines = [f"{name}:{own[name]}" for name in sorted(own)]
    asked = "\n".join([method, to.path, "", *lines, "", names, digest]).encode()
    text = ["AWS4-HMAC-SHA256", at, "/".join(scope), hashlib.sha256(asked).hexdigest()]
    key = f"AWS4{role['SecretAccessKey']}".encode()
    for word in [*scope, "\n".join(text)]:
        key = hmac.new(key, word.encode(), "sha256").digest()
    own["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={role['AccessKeyId']}/{'/'.join(scope)}, "
        f"SignedHeaders={names}, Signature={key.hex()}"
    )
    return own
