"""Asks EC2's metadata service, from the machine itself, whether it will be taken away.

What it answers: EC2 User Guide, "Spot Instance interruption notices" (`spot/instance-action`, two
minutes before, and none before a hibernation), "EC2 instance rebalance recommendations"
(`events/recommendations/rebalance`), "Scheduled events for your instances"
(`events/maintenance/scheduled`); the first two are 404 until there is one. Tokens: "Use the
Instance Metadata Service" (IMDSv2).
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, cast
from urllib.parse import urlsplit

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.notices import Notice

ENDPOINT = "AWS_EC2_METADATA_SERVICE_ENDPOINT"  # as the AWS SDKs name it
USUAL = "http://169.254.169.254"
TOKEN_LASTS_S = 21_600
WITHIN_S: Seconds = 2.0
EVERY_S: Seconds = 0.5
"""The User Guide recommends five seconds; each is one in which nobody looks for another machine."""
OTHERS_EVERY = 10
"""Every so many looks all is asked for: what comes hours ahead, or says nothing certain."""
TAKEN = "/latest/meta-data/spot/instance-action"
MAY_BE_TAKEN = "/latest/meta-data/events/recommendations/rebalance"
SCHEDULED = "/latest/meta-data/events/maintenance/scheduled"
ENDS_IT = ("instance-stop", "instance-retirement", "instance-reboot", "system-reboot")
"""Events after which no agent is there: user data runs at the first boot alone."""
OVER = ("completed", "canceled")


class AwsNotices:
    """Hears of interruptions, of rebalance recommendations and of maintenance, for one thread."""

    every_s: Seconds = EVERY_S

    def __init__(self, endpoint: str = "") -> None:
        self._endpoint = urlsplit(endpoint or os.environ.get(ENDPOINT) or USUAL)
        self._token = ""
        self._looks = 0

    def look(self) -> tuple[Notice, ...]:
        """See Notices; takes as long as five requests may, when nobody answers."""
        taken = _interruption(self._document(TAKEN))
        if taken is not None:
            return (taken,)
        self._looks += 1
        if self._looks % OTHERS_EVERY != 1:
            return ()
        scheduled = sorted(_scheduled(self._document(SCHEDULED)), key=_goes_at)
        if self._document(MAY_BE_TAKEN) is not None:
            says = "AWS recommends to move: it may soon take this machine"
            return (*scheduled, Notice(goes_at=None, says=says))
        return tuple(scheduled)

    def _document(self, path: str) -> Any:
        """Return a document as JSON has it; None: there is none, or nobody answers with one."""
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
            return json.loads(body)
        except ValueError:
            return None

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


def _interruption(document: Any) -> Notice | None:
    """Return what `instance-action` says; None for what cannot be read."""
    told = _table(document)
    goes_at = _instant(told.get("time"))
    if goes_at is None:
        return None
    action = str(told.get("action", "terminate"))
    when = f"{datetime.fromtimestamp(goes_at, UTC):%H:%M:%S UTC}"
    return Notice(
        goes_at=goes_at,
        says=f"AWS takes this machine back ({action}) at {when}",
        at_once=action == "hibernate",
    )


def _scheduled(document: Any) -> Iterator[Notice]:
    """Yield the events that end the machine; others, and what cannot be read, are left out."""
    events = cast(Sequence[object], document) if isinstance(document, list) else ()
    for told in map(_table, events):
        code = str(told.get("Code", ""))
        if code not in ENDS_IT or str(told.get("State", "")).lower() in OVER:
            continue
        try:
            said = str(told.get("NotBefore")).replace("GMT", "+0000")
            begins = datetime.strptime(said, "%d %b %Y %H:%M:%S %z")
        except ValueError:
            continue
        says = f"AWS has scheduled {code} for this machine at {begins:%Y-%m-%d %H:%M:%S UTC}"
        yield Notice(goes_at=begins.timestamp(), says=says)


def _goes_at(notice: Notice) -> Instant:
    return notice.goes_at or 0.0


def _table(document: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], document) if isinstance(document, dict) else {}


def _instant(text: Any) -> Instant | None:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
