"""Which time zone days, months and nights are told in."""

import difflib
from zoneinfo import available_timezones

from cloudwhale.host.zone import zone_of_host
from cloudwhale.planning.cost_sums import zone_named
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import SettingsError


def zone_here(settings: Settings, asked: str | None = None) -> str:
    """Return the zone that was asked for, else that of the settings, else this host's.

    Raise SettingsError for a name that nobody knows.
    """
    name = settings.timezone if asked is None else asked
    if not name and asked is None:
        return zone_of_host()
    try:
        zone_named(name)
    except ValueError as error:
        origin = "setting timezone" if asked is None else "--zone"
        raise SettingsError(f"{origin}: {name!r} is no time zone", _remedy(name)) from error
    return name


def _remedy(name: str) -> str:
    by_lower = {zone.lower(): zone for zone in available_timezones()}
    last = {zone.lower().rpartition("/")[2]: zone for zone in sorted(by_lower.values())}
    word = name.strip().lower().replace(" ", "_")
    found = by_lower.get(word) or last.get(word)
    if found is None:
        close = difflib.get_close_matches(word, [*by_lower, *last], 1, 0.75)
        found = next((by_lower.get(one) or last[one] for one in close), None)
    if found is not None:
        return f"Did you mean {found}?"
    return "Write a name of the IANA list, like Europe/Berlin, or UTC."
