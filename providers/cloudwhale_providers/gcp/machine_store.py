"""What a machine of Compute Engine asks while it boots: its attributes, its token, its bucket.

The second half of a program whose first is machine_asking.py. The bucket is asked as Cloud
Storage's XML API has it, and an object is created once by `x-goog-if-generation-match: 0`.
"""

import json
import sys
from collections.abc import Mapping
from functools import cache
from urllib.parse import quote

from cloudwhale_providers.machine_asking import (
    SAID,
    Again,
    Desk,
    Trouble,
    ask,
    patience,
    repeated,
)

METADATA = "metadata.google.internal"
STORAGE = "https://storage.googleapis.com"


def told(path: str) -> bytes:
    """Return what the metadata server says of the instance; empty where it has nothing."""
    host = SAID.get("GCE_METADATA_HOST") or METADATA
    url = f"http://{host}/computeMetadata/v1/instance/{path}"

    def once() -> bytes:
        try:
            found = ask("GET", url, {"Metadata-Flavor": "Google"})
        except OSError as error:
            raise Again(f"the metadata service does not answer: {error}") from error
        if found.status not in (200, 404):
            raise Again(f"the metadata service answers {found.status}")
        return found.body if found.status == 200 else b""

    return repeated(once, patience())


@cache
def token() -> str:
    """Return the word by which the machine's service account is known to Google."""

    def once() -> bytes:
        found = told("service-accounts/default/token")
        if not found:
            raise Again(
                "this machine has no service account: `service_account` of [clouds.gcp] names one"
            )
        return found

    return str(json.loads(repeated(once, patience()))["access_token"])


class BucketDesk(Desk):
    """See Desk: attributes as the metadata server shows them, requests with a token."""

    only_new = {"x-goog-if-generation-match": "0"}

    def tag(self, name: str) -> str:
        """Return one of the machine's attributes; empty: it has none of that name."""
        return told(f"attributes/cloudwhale-{name}").decode().strip()

    def called(self, name: str) -> str:
        """Return what an attribute is called."""
        return f"attribute cloudwhale-{name}"

    def launched_at(self) -> float | None:
        """Return when it was asked for, as whoever did that has noted."""
        said = self.tag("launched-at")
        try:
            return float(said) if said else None
        except ValueError:
            raise Trouble(f"its attribute cloudwhale-launched-at is no time but {said!r}") from None

    def url_of(self, key: str) -> str:
        """Return where an object of the mailbox is."""
        bucket, _, prefix = SAID["CLOUDWHALE_MAILBOX"].removeprefix("gs://").partition("/")
        path = quote("/".join(part for part in (prefix.strip("/"), key) if part), safe="/-_.~")
        host = SAID.get("STORAGE_EMULATOR_HOST", "").rstrip("/") or STORAGE
        return f"{host if '://' in host else f'http://{host}'}/{bucket}/{path}"

    def headers(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> dict[str, str]:
        """Return headers with the machine's token."""
        return {**headers, "authorization": f"Bearer {token()}"}


DESK = BucketDesk()

if __name__ == "__main__":
    sys.exit(DESK.main(sys.argv[1:]))
