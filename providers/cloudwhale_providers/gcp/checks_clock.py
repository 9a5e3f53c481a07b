"""How far this host's clock is from that of Cloud Storage, which agents compare theirs with."""

import os
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from cloudwhale.model.units import Instant, Seconds
from cloudwhale_providers.rows import Found

STORAGE = "https://storage.googleapis.com"
EMULATOR = "STORAGE_EMULATOR_HOST"
ANSWERS_S: Seconds = 5.0
WARNS_S: Seconds = 30.0  # as agents do: leases and stops are counted in seconds
MOST_S: Seconds = 300.0  # Google's sign-in refuses what is signed further off
NTP = "Set this host's clock: `timedatectl set-ntp true`."


def look(now: Callable[[], Instant]) -> Found | None:
    """Return how far it is off; None: nobody says what time it is."""
    said = os.environ.get(EMULATOR, "") or STORAGE
    theirs = _date(said if "://" in said else f"http://{said}")
    if theirs is None:
        return None
    off_s = now() - theirs
    if abs(off_s) <= WARNS_S:
        return Found("ok", "within seconds of Google's")
    way = "ahead of" if off_s > 0 else "behind"
    says = f"this host is {abs(off_s):.0f} s {way} Google"
    return Found("failed" if abs(off_s) > MOST_S else "warning", says, NTP)


def _date(url: str) -> Instant | None:
    to = urlsplit(url)
    kind = HTTPSConnection if to.scheme == "https" else HTTPConnection
    try:
        link = kind(to.netloc, timeout=ANSWERS_S)
    except HTTPException:
        return None
    try:
        link.request("GET", "/")  # whatever it answers, it has a date
        return parsedate_to_datetime(link.getresponse().headers.get("Date", "")).timestamp()
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        link.close()
