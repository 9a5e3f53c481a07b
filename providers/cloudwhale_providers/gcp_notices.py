"""Asks Compute Engine's metadata server, from the machine itself, whether it will be taken away.

What it answers: Compute Engine docs, "Handle preemption with Spot VMs" (`instance/preempted`,
TRUE once it goes: 30 s later at the latest, or 120 s where that was asked for when it was made and
granted) and "Monitor and plan for a host maintenance event" (`instance/maintenance-event`, an hour
ahead for machines with GPUs and a minute for others). Who has the ETag of an answer may wait for
the next one: "Query VM metadata", `wait_for_change`.
"""

import os
from http.client import HTTPConnection, HTTPException

from cloudwhale.model.units import Seconds
from cloudwhale.spi.notices import Notice

ENDPOINT = "GCE_METADATA_HOST"  # HOST:PORT, as Google's own clients name it
USUAL = "metadata.google.internal"
FLAVOR = {"Metadata-Flavor": "Google"}
WAITS_S = 2
"""How long an answer may wait for a change, so that a look takes seconds."""
WITHIN_S: Seconds = 2.0
EVERY_S: Seconds = 0.2  # a look is itself a wait for the word
OTHERS_EVERY = 10
"""Every so many looks the maintenance is asked for, which is told of long before."""
USUAL_S: Seconds = 30.0
MAINTAINED_S: Seconds = 60.0
GPUS_MAINTAINED_S: Seconds = 3600.0
TAKEN = "instance/preempted"
MAINTENANCE = "instance/maintenance-event"
ENDS_IT = "TERMINATE_ON_HOST_MAINTENANCE"
NOTICE_S = "instance/attributes/cloudwhale-notice-s"
"""Seconds of notice that were granted when the machine was made; none: the usual ones."""
GPUS = "instance/attributes/cloudwhale-gpus"


class GcpNotices:
    """Hears of preemption and of maintenance, for one thread."""

    every_s: Seconds = EVERY_S

    def __init__(self, endpoint: str = "") -> None:
        self._host = endpoint or os.environ.get(ENDPOINT) or USUAL
        self._etag = ""
        self._looks = 0
        self._attributes: dict[str, str] = {}
        """What was made known with the machine and never changes."""

    def look(self) -> tuple[Notice, ...]:
        """See Notices; waits for the word for two seconds, and as long for who does not answer."""
        notice_s = _number(self._attribute(NOTICE_S), USUAL_S)  # while there is time to ask
        if self._taken() == "TRUE":
            return (
                Notice(
                    goes_at=None, goes_in_s=notice_s,
                    says=f"Google takes this machine back within {notice_s:g} s",
                ),
            )  # fmt: skip
        self._looks += 1
        if self._looks % OTHERS_EVERY != 1 or self._asked(MAINTENANCE)[1] != ENDS_IT:
            return ()
        has_gpus = _number(self._attribute(GPUS), 0.0) > 0
        goes_in_s = GPUS_MAINTAINED_S if has_gpus else MAINTAINED_S
        says = f"Google ends this machine within {goes_in_s:g} s, to maintain its host"
        return (Notice(goes_at=None, goes_in_s=goes_in_s, says=says),)

    def _taken(self) -> str:
        """Return whether it goes, as the service says it; after a change, or some seconds."""
        waits = f"?wait_for_change=true&timeout_sec={WAITS_S}&last_etag={self._etag}"
        status, text, etag = self._answer(TAKEN + (waits if self._etag else ""))
        self._etag = etag if status == 200 else ""
        return text.upper() if status == 200 else ""

    def _attribute(self, path: str) -> str:
        """Return what was said when the machine was made; empty: nothing, or nobody answers."""
        if path not in self._attributes:
            status, text = self._asked(path)
            if status not in (200, 404):
                return ""
            self._attributes[path] = text if status == 200 else ""
        return self._attributes[path]

    def _asked(self, path: str) -> tuple[int, str]:
        return self._answer(path)[:2]

    def _answer(self, path: str) -> tuple[int, str, str]:
        """Return status, text and ETag of an answer; 0 when there was none."""
        try:
            connection = HTTPConnection(self._host, timeout=WAITS_S + WITHIN_S)
        except HTTPException:  # no port that is a number
            return 0, "", ""
        try:
            connection.request("GET", f"/computeMetadata/v1/{path}", headers=FLAVOR)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace").strip()
            return answer.status, text, answer.headers.get("ETag", "")
        except (OSError, HTTPException):
            return 0, "", ""
        finally:
            connection.close()


def _number(text: str, otherwise: Seconds) -> Seconds:
    try:
        return float(text)
    except ValueError:
        return otherwise
