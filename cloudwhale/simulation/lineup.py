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

PLAIN: Mapping[str, Any] = {
    "score": "best-fit", "wait": "never", "hold": False, "reserve": False, "preempt": False,
}  # fmt: skip
"""What plain schedulers do not do; which of the places that fit is taken, hardly any says."""
STOPS: Mapping[str, Any] = {**PLAIN, "preempt": True, "preempt_after_s": 0.0}
"""Those that stop jobs for others do so at any time."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One of the line-up."""

    says: str
    settings: Mapping[str, Any]


def _plain(says: str, **settings: Any) -> Contestant:
    return Contestant(says, {**PLAIN, **settings})


LINE_UP: Mapping[str, Contestant] = {
    "whale": Contestant("the Whale match, as it is shipped", {"order": "whale", "score": "whale"}),
    "fifo": _plain("first come first served, nobody passes", order="fifo", strict=True),
    "priority": _plain("by priority, nobody passes", order="priority", strict=True),
    "fit-first": _plain("first come first served, whoever fits passes", order="fifo"),
    "easy-backfill": _plain(
        "passes who does not delay the first that waits", order="fifo", wait="easy"
    ),
    "conservative-backfill": _plain(
        "passes who delays nobody before it", order="fifo", wait="conservative"
    ),
    "sjf": _plain("shortest first", order="sjf"),
    "sgf": _plain("smallest GPU-time first", order="sgf"),
    "srtf": Contestant("shortest remaining time first, stops others", {**STOPS, "order": "srtf"}),
    "srsf": Contestant("least remaining GPU-time first, stops others", {**STOPS, "order": "srsf"}),
    "las": Contestant("least attained GPU-time first, stops others", {**STOPS, "order": "las"}),
    "no-wait": _plain("rents for whoever does not fit at once", order="fifo", wait="no-wait"),
    "constant-wait": _plain("rents after a fixed wait", order="fifo", wait="constant-wait"),
    "star-wait": _plain("rents after a wait by GPUs", order="fifo", wait="star-wait"),
    "compute-wait": _plain(
        "rents after a wait by GPU-time (Starburst)", order="fifo", wait="compute-wait"
    ),
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
        return _plain(f"the order {name}, best fit", order=name)
    if name in plugins.names(plugins.SCORES):
        return _plain(f"first come first served, the score {name}", order="fifo", score=name)
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
