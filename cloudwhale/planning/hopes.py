"""Where jobs would fit in some songs, asked for many jobs at once: `fit` without the reasons."""

from collections.abc import Sequence

from cloudwhale.model.job import JobSpec
from cloudwhale.planning.fit import refused
from cloudwhale.planning.inventory import Free
from cloudwhale.planning.needs import Need, models_of
from cloudwhale.planning.scoring import Song

FEW = 256
"""Pairs of a job and a node that are looked at one by one sooner than numpy is imported."""

BLOCK = 256
"""Jobs that are looked at in one go."""


def nodes_of_each(specs: Sequence[JobSpec], rooms: Sequence[Free]) -> list[tuple[str, ...]]:
    """Return the ids of the nodes where each fits, in the order of the rooms."""
    if len(specs) * len(rooms) <= FEW:
        return [_nodes_of(spec, rooms) for spec in specs]
    return _nodes_of_many(specs, rooms)


def _nodes_of(spec: JobSpec, rooms: Sequence[Free]) -> tuple[str, ...]:
    return tuple(room.node.id for room in rooms if refused(spec, room) is None)


def _nodes_of_many(specs: Sequence[JobSpec], rooms: Sequence[Free]) -> list[tuple[str, ...]]:
    import numpy as np

    from cloudwhale.planning.asks import Asks
    from cloudwhale.planning.columns import Columns, listed
    from cloudwhale.planning.openings import Openings, RulesHere

    devices = models_of(room.node for room in rooms)
    needs, songs = [Need(spec, 1.0) for spec in specs], [Song(room) for room in rooms]
    asks, columns = Asks(needs, devices), Columns(songs, devices)
    openings, rules = Openings(asks, columns), RulesHere(needs, songs)
    every, ids = np.arange(len(rooms)), [room.node.id for room in rooms]
    found: list[tuple[str, ...]] = []
    for start in range(0, len(specs), BLOCK):
        some = np.arange(start, min(start + BLOCK, len(specs)))
        fits = openings.fits(some, every) & rules.allowed.take(rules.allowed_row[some], axis=0)
        found += [tuple(ids[node] for node in listed(np.flatnonzero(row))) for row in fits]
    return found
