"""What is S3's own among object stores: for whoever meets in a bucket of `s3://`, agents too.

Where a bucket lies S3 says in the header `x-amz-bucket-region` of whatever it answers, a refusal
too (S3 API Reference, "HeadBucket"); who asks in another region is sent away without an answer.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from xml.sax.saxutils import unescape

HEADER = "x-amz-bucket-region"
PUBLIC = "https://{bucket}.s3.amazonaws.com"
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
ANSWERS_WITHIN_S = 5.0
SIGNED_FOR = timedelta(minutes=1)
ELSEWHERE = ("incorrectly configured region", "AuthorizationHeaderMalformed", "301 ")
"""What a client says that has asked in the wrong region."""
TOKEN = "/latest/api/token"
"""Where a client asks for a machine's own credentials when the environment has none."""
MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")


class S3Store:
    """See spi.stores.StoreKind."""

    variables = "AWS_"
    credentials_at = ("169.254.169.254", "fd00:ec2::254")
    """EC2 User Guide, "Access instance metadata for an EC2 instance"."""
    to_read = "s3:ListBucket and s3:GetObject"

    def endpoint(self) -> str:
        """See StoreKind."""
        return next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")

    def options(self) -> Mapping[str, str]:
        """See StoreKind: obstore reads all of it by itself."""
        return {}

    def client(self) -> Mapping[str, str]:
        """See StoreKind."""
        return {}

    def region_of(self, bucket: str) -> str:
        """See StoreKind."""
        return region_of(bucket)

    def is_elsewhere(self, says: str) -> bool:
        """See StoreKind."""
        return any(word in says for word in ELSEWHERE)

    def lacks_credentials(self, says: str) -> bool:
        """See StoreKind."""
        return TOKEN in says

    def refusal(self, says: str) -> str:
        """See StoreKind."""
        found = MESSAGE.search(says)
        return unescape(found[1]) if found else ""


@cache
def region_of(bucket: str) -> str:
    """Return the region of a bucket; empty: nobody says."""
    endpoint = S3Store().endpoint().rstrip("/")
    where = f"{endpoint}/{bucket}" if endpoint else PUBLIC.format(bucket=bucket)
    return _told(where) or (_told(_signed(bucket)) if _has_keys() else "")


def _has_keys() -> bool:
    """Say whether there are keys to sign with that need not be asked for."""
    return bool(os.environ.get("AWS_ACCESS_KEY_ID"))


def _signed(bucket: str) -> str:
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store as Bucket

    with suppress(BaseError, ValueError):
        return obstore.sign(Bucket(bucket), "HEAD", "-", SIGNED_FOR)
    return ""


def _told(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        return ""
    try:
        with urlopen(Request(url, method="HEAD"), timeout=ANSWERS_WITHIN_S) as answer:
            return str(answer.headers.get(HEADER) or "")
    except HTTPError as error:
        with error:
            return str(error.headers.get(HEADER) or "")
    except (OSError, HTTPException):
        return ""
