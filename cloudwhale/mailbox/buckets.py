"""Where a bucket lies: who asks a store of another region is sent away without an answer.

S3 says it in the header `x-amz-bucket-region` of whatever it answers, a refusal too (S3 API
Reference, "HeadBucket").
"""

import os
from contextlib import suppress
from datetime import timedelta
from functools import cache
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

HEADER = "x-amz-bucket-region"
PUBLIC = "https://{bucket}.s3.amazonaws.com"
ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT")
ANSWERS_WITHIN_S = 5.0
SIGNED_FOR = timedelta(minutes=1)
ELSEWHERE = ("incorrectly configured region", "AuthorizationHeaderMalformed", "301 ")
"""What a client says that has asked in the wrong region."""


@cache
def region_of(bucket: str) -> str:
    """Return the region of an S3 bucket; empty: nobody says."""
    endpoint = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")
    where = f"{endpoint.rstrip('/')}/{bucket}" if endpoint else PUBLIC.format(bucket=bucket)
    return _told(where) or (_told(_signed(bucket)) if _has_keys() else "")


def _has_keys() -> bool:
    """Say whether there are keys to sign with that need not be asked for."""
    return bool(os.environ.get("AWS_ACCESS_KEY_ID"))


def _signed(bucket: str) -> str:
    with suppress(BaseError, ValueError):
        return obstore.sign(S3Store(bucket), "HEAD", "-", SIGNED_FOR)
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
