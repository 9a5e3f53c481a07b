"""Loads entry points: the only place that knows how plugins are found."""

import difflib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from cloudwhale.spi.errors import SettingsError

PROVIDERS = "cloudwhale.providers"
ORDERS = "cloudwhale.policies.order"
SCORES = "cloudwhale.policies.score"
WAITS = "cloudwhale.policies.wait"
RENTS = "cloudwhale.policies.rent"
FILLINGS = "cloudwhale.policies.filling"
PRICES = "cloudwhale.prices"


def names(group: str) -> tuple[str, ...]:
    """Return the names of what is installed in a group, sorted."""
    return tuple(sorted(point.name for point in entry_points(group=group)))


def load(group: str, name: str) -> Any:
    """Return what an entry point names; raise SettingsError when there is none of that name."""
    found: dict[str, EntryPoint] = {point.name: point for point in entry_points(group=group)}
    if name not in found:
        close = difflib.get_close_matches(name, found, 1)
        hint = f"Did you mean {close[0]}? " if close else ""
        kind = group.rsplit(".", 1)[1]
        raise SettingsError(
            f"there is no {kind} called {name!r}",
            f"{hint}Installed: {', '.join(sorted(found)) or 'none (pip install cloudwhale)'}",
        )
    return found[name].load()
