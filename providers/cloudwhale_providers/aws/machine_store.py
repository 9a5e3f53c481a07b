"""What a machine of EC2 asks while it boots: its tags, the keys of its role, its mailbox in S3.

The second half of a program whose first is machine_asking.py.
"""

import json
import sys
import time
from calendar import timegm
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

from cloudwhale_providers.machine_asking import (
    SAID,
    Again,
    Desk,
    ask,
    patience,
    repeated,
)
from cloudwhale_providers.machine_s3 import (
    signed,
    url_of,
)

METADATA = "http://169.254.169.254"


@cache
def session(base: str) -> str:
    """Return the word that the metadata service wants to be shown."""
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    answer = ask("PUT", f"{base}/latest/api/token", ttl)
    if answer.status != 200:
        raise Again(f"the metadata service answers {answer.status}")
    return answer.body.decode("latin-1")


def told(path: str) -> bytes:
    """Return what the metadata service says at a path; empty where it has nothing."""
    base = SAID.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", METADATA).rstrip("/")

    def once() -> bytes:
        try:
            shown = {"X-aws-ec2-metadata-token": session(base)}
            found = ask("GET", f"{base}/latest/{quote(path)}", shown)
        except OSError as error:
            raise Again(f"the metadata service does not answer: {error}") from error
        if found.status not in (200, 404):
            raise Again(f"the metadata service answers {found.status}")
        return found.body if found.status == 200 else b""

    return repeated(once, patience())


@cache
def keys() -> dict[str, Any]:
    """Return the credentials of the machine's role."""
    folder = "meta-data/iam/security-credentials/"

    def once() -> bytes:
        role = told(folder).decode().strip()
        found = told(folder + role) if role else b""
        if not found:
            raise Again("this machine has no role: `instance_profile` of [clouds.aws] names one")
        return found

    found: dict[str, Any] = json.loads(repeated(once, patience()))
    return found


class S3Desk(Desk):
    """See Desk: tags as EC2's metadata service shows them, requests that are signed."""

    only_new = {"if-none-match": "*"}

    def tag(self, name: str) -> str:
        """Return one of the machine's tags; empty: it has none of that name."""
        return told(f"meta-data/tags/instance/cloudwhale:{name}").decode().strip()

    def called(self, name: str) -> str:
        """Return what a tag is called."""
        return f"tag cloudwhale:{name}"

    def door(self) -> str:
        """Return the role and the machine: IAM knows it by both, as `aws:userid`."""
        role = self.tag("role")
        return f"{role}:{told('meta-data/instance-id').decode()}" if role else ""

    def launched_at(self) -> float | None:
        """Return when EC2 took the launch."""
        document = told("dynamic/instance-identity/document")
        launched = json.loads(document or b"{}").get("pendingTime")
        return timegm(time.strptime(launched, "%Y-%m-%dT%H:%M:%SZ")) if launched else None

    def url_of(self, key: str) -> str:
        """Return where an object of the mailbox is."""
        return url_of(key)

    def headers(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> dict[str, str]:
        """Return headers with a signature by the keys of the machine's role."""
        return signed(method, url, headers, body, keys())


DESK = S3Desk()

if __name__ == "__main__":
    sys.exit(DESK.main(sys.argv[1:]))
