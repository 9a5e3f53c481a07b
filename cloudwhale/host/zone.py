"""The time zone of this host, by its IANA name."""

import os
from pathlib import Path
from zoneinfo import ZoneInfo

LOCALTIME = Path("/etc/localtime")
NAMED = Path("/etc/timezone")


def zone_of_host(localtime: Path = LOCALTIME, named: Path = NAMED) -> str:
    """Return the name of this host's zone, `UTC` where nothing names one.

    What is looked at, first first: $TZ, where /etc/localtime leads (systemd and macOS), what
    /etc/timezone says (Debian).
    """
    leads_to = str(localtime.resolve()).rpartition("/zoneinfo/")[2]
    found = (os.environ.get("TZ", "").removeprefix(":"), leads_to, _line_of(named))
    return next((name for name in found if _is_zone(name)), "UTC")


def _line_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _is_zone(name: str) -> bool:
    try:
        return bool(name) and bool(ZoneInfo(name))
    except (KeyError, OSError, ValueError):
        return False
