"""Where a bucket of Cloud Storage lies, by its JSON API."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import quote

SCOPE = "https://www.googleapis.com/auth/devstorage.read_only"
ANSWERS_WITHIN_S = 5.0
LIBRARIES = ("google.auth", "httplib2", "google_auth_httplib2")
"""Of the extra `gcp`; without them nobody says where a bucket lies."""


@cache
def region_of(endpoint: str, bucket: str) -> str:
    """Return the region of a bucket; empty: nobody says, or it lies in several.

    Cloud Storage JSON API, `buckets.get`: `location` is `US-CENTRAL1` of one region, and `US` or
    `NAM4` of several, which machines in any of them have near.
    """
    said = _told(f"{endpoint}/storage/v1/b/{quote(bucket, safe='')}?fields=location,locationType")
    is_one = said.get("locationType", "region") == "region"
    return str(said.get("location", "")).lower() if is_one else ""


def _told(url: str) -> Mapping[str, Any]:
    try:
        auth, httplib2, bearing = (import_module(name) for name in LIBRARIES)
    except ImportError:
        return {}
    try:
        credentials, _ = auth.default(scopes=[SCOPE])
        http = bearing.AuthorizedHttp(credentials, http=httplib2.Http(timeout=ANSWERS_WITHIN_S))
        answer, body = http.request(url)
        return dict(json.loads(body)) if answer.status == 200 else {}
    except (auth.exceptions.GoogleAuthError, httplib2.HttpLib2Error, OSError, ValueError):
        return {}
