"""Asks EC2's metadata service, from the machine itself, whether it will be taken away.

What it answers: EC2 User Guide, "Spot Instance interruption notices" (`spot/instance-action`, two
minutes before) and "EC2 instance rebalance recommendations" (`events/recommendations/rebalance`);
both are 404 until there is one. Tokens: "Use the Instance Metadata Service" (IMDSv2).
"""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, cast
from urllib.parse import urlsplit

from cloudwhale.model.units import Seconds
from cloudwhale.spi.notices import Notice

ENDPOINT = "AWS_EC2_METADATA_SERVICE_ENDPOINT"  # as the AWS SDKs name it
USUAL = "http://169.254.169.254"
TOKEN_LASTS_S = 21_600
WITHIN_S: Seconds = 2.0
EVERY_S: Seconds = 5.0  # as the User Guide recommends
TAKEN = "/latest/meta-data/spot/instance-action"
MAY_BE_TAKEN = "/latest/meta-data/events/recommendations/rebalance"


class AwsNotices:
    """Hears of interruptions and of rebalance recommendations; asked by one thread."""

    every_s: Seconds = EVERY_S

    def __init__(self, endpoint: str = "") -> None:
        self._endpoint = urlsplit(endpoint or os.environ.get(ENDPOINT) or USUAL)
        self._token = ""

    def look(self) -> Notice | None:
        """See Notices; takes as long as four requests may, when nobody answers."""
        taken = self._document(TAKEN)
        if taken is not None and (goes_at := _instant(taken.get("time"))) is not None:
            action = str(taken.get("action", "terminate"))
            when = datetime.fromtimestamp(goes_at, UTC).strftime("%H:%M:%S UTC")
            return Notice(goes_at=goes_at, says=f"AWS takes this machine back ({action}) at {when}")
        if self._document(MAY_BE_TAKEN) is not None:
            return Notice(
                goes_at=None, says="AWS recommends to move: it may soon take this machine"
            )
        return None

    def _document(self, path: str) -> Mapping[str, Any] | None:
        """Return a document, or None when there is none, or nobody answers with one."""
        status, body = self._asked("GET", path)
        if status == 401:
            status, token = self._asked("PUT", "/latest/api/token")
            if status != 200:
                return None
            self._token = token
            status, body = self._asked("GET", path)
        if status != 200:
            return None
        try:
            found: object = json.loads(body)
        except ValueError:
            return None
        return cast(Mapping[str, Any], found) if isinstance(found, dict) else None

    def _asked(self, verb: str, path: str) -> tuple[int, str]:
        """Return status and text of an answer; 0 when there was none."""
        where = self._endpoint
        kind = HTTPSConnection if where.scheme == "https" else HTTPConnection
        connection = kind(where.hostname or "", where.port, timeout=WITHIN_S)
        headers = (
            {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_LASTS_S)}
            if verb == "PUT"
            else {"X-aws-ec2-metadata-token": self._token}
        )
        try:
            connection.request(verb, where.path.rstrip("/") + path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except (OSError, HTTPException):
            return 0, ""
        finally:
            connection.close()


def _instant(text: Any) -> float | None:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
