"""Loads entry points: the only place that knows how plugins are found."""

import difflib
from functools import cache
from importlib.metadata import EntryPoint, distributions
from typing import Any

from cloudwhale.spi.errors import SettingsError

PROVIDERS = "cloudwhale.providers"
ORDERS = "cloudwhale.policies.order"
SCORES = "cloudwhale.policies.score"
WAITS = "cloudwhale.policies.wait"
RENTS = "cloudwhale.policies.rent"
FILLINGS = "cloudwhale.policies.filling"
PRICES = "cloudwhale.prices"
OWN_PRICES = "cloudwhale.own_prices"
"""Price lists of clouds whose prices stand in their own table of the settings."""
SANDBOXES = "cloudwhale.sandboxes"
NOTICES = "cloudwhale.notices"
STORES = "cloudwhale.stores"


@cache
def _installed() -> tuple[EntryPoint, ...]:
    """Return what installed packages offer us; to look through all of them takes 20 ms."""
    found: dict[tuple[str, str], EntryPoint] = {}
    for package in distributions():
        for point in package.entry_points:
            if point.group.startswith("cloudwhale."):
                found.setdefault((point.group, point.name), point)
    return tuple(found.values())


def _of(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in _installed() if point.group == group}


def names(group: str) -> tuple[str, ...]:
    """Return the names of what is installed in a group, sorted."""
    return tuple(sorted(_of(group)))


def load(group: str, name: str) -> Any:
    """Return what an entry point names; raise SettingsError when there is none of that name."""
    found = _of(group)
    if name not in found:
        close = difflib.get_close_matches(name, found, 1)
        hint = f"Did you mean {close[0]}? " if close else ""
        kind = group.rsplit(".", 1)[1]
        raise SettingsError(
            f"there is no {kind} called {name!r}",
            f"{hint}Installed: {', '.join(sorted(found)) or 'none (pip install cloudwhale)'}",
        )
    return found[name].load()
