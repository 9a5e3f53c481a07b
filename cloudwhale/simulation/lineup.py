"""The contestants of a trial by name: what each is in the settings of the product."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen
from cloudwhale.control.desk import policies
from cloudwhale.settings import checked
from cloudwhale.spi.errors import SettingsError

PLAIN: Mapping[str, Any] = {"hold": False, "reserve": False, "preempt": False}
"""What plain schedulers do not do."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One of the line-up."""

    says: str
    settings: Mapping[str, Any]


def _plain(order: str, says: str, score: str = "best-fit") -> Contestant:
    return Contestant(says, {**PLAIN, "order": order, "score": score})


LINE_UP: Mapping[str, Contestant] = {
    "whale": Contestant("the Whale match, as it is shipped", {"order": "whale", "score": "whale"}),
    "fifo": _plain("fifo", "first come first served, nobody passes"),
    "priority": _plain("priority", "by priority, nobody passes"),
    "fit-first": _plain("fifo", "first come first served, whoever fits passes"),
}


def names() -> tuple[str, ...]:
    """Return every name that `contestant` knows: the line-up, then policies that are installed."""
    more = (*plugins.names(plugins.ORDERS), *plugins.names(plugins.SCORES))
    return tuple(dict.fromkeys((*LINE_UP, *more)))


def contestant(name: str) -> Contestant:
    """Return a contestant; raise SettingsError for a name that neither it nor a policy has."""
    if name in LINE_UP:
        return LINE_UP[name]
    if name in plugins.names(plugins.ORDERS):
        return _plain(name, f"the order {name}, best fit")
    if name in plugins.names(plugins.SCORES):
        return _plain("fifo", f"first come first served, the score {name}", name)
    close = difflib.get_close_matches(name, names(), 1)
    hint = f"Did you mean {close[0]}? " if close else ""
    raise SettingsError(f"there is no policy called {name!r}", f"{hint}Known: {', '.join(names())}")


def chosen(name: str, shared: Mapping[str, Any], seed: int) -> Chosen:
    """Return a contestant's policies; what it does not say itself is as `shared` has it."""
    values = {"home": "/nowhere", **shared, **contestant(name).settings, "seed": seed}
    settings = checked(values, f"policy {name}")
    return Chosen(
        policies(settings), settings.order, settings.score, seed,
        wait=settings.wait, rent=settings.rent,
    )  # fmt: skip
