"""What such a machine asks while it boots: its own text, and its mailbox in S3 with a key.

The last part of a program whose others are machine_asking.py and machine_s3.py.
"""

import sys
from collections.abc import Mapping

from cloudwhale_providers.machine_asking import (
    SAID,
    Desk,
    Trouble,
)
from cloudwhale_providers.machine_s3 import (
    signed,
    url_of,
)


class KeyDesk(Desk):
    """See Desk: the machine was told all of itself in its user data."""

    only_new = {"if-none-match": "*"}

    def tag(self, name: str) -> str:
        """Return what the user data says of the machine."""
        return SAID.get(f"TOLD_{name.upper()}", "")

    def called(self, name: str) -> str:
        """Return what the user data calls it."""
        return f"TOLD_{name.upper()} in its user data"

    def launched_at(self) -> float | None:
        """Return when the launch was asked for."""
        at = SAID.get("TOLD_AT", "")
        return float(at) if at else None

    def url_of(self, key: str) -> str:
        """Return where an object of the mailbox is."""
        return url_of(key)

    def headers(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> dict[str, str]:
        """Return headers with a signature by the key that the machine was given."""
        role = {
            "AccessKeyId": SAID.get("AWS_ACCESS_KEY_ID", ""),
            "SecretAccessKey": SAID.get("AWS_SECRET_ACCESS_KEY", ""),
            "Token": SAID.get("AWS_SESSION_TOKEN", ""),
        }
        if not role["AccessKeyId"] or not role["SecretAccessKey"]:
            raise Trouble("this machine was given no key: `machine_environment` names what it gets")
        return signed(method, url, headers, body, role)


DESK = KeyDesk()

if __name__ == "__main__":
    sys.exit(DESK.main(sys.argv[1:]))
