"""Whether what was seen of the nodes has changed enough to decide anew."""

import json
from collections.abc import Mapping

from cloudwhale.model.units import GiB
from cloudwhale.model.world import Sighting

MATTERS_GIB: GiB = 1.0  # less more or less in others' hands changes no place that is worth a round


def differ(before: Mapping[str, Sighting], now: Mapping[str, Sighting]) -> bool:
    """Say whether an agent has come or gone, or others use notably more or less of a GPU.

    Asked at every tick. A value that only trembles is no news: it is compared with the one that was
    planned with, not with the one before.
    """
    if before.keys() != now.keys():
        return True
    return any(_differs(before[name], seen) for name, seen in now.items())


def _differs(before: Sighting, now: Sighting) -> bool:
    if before is now:
        return False
    if before.agent_alive != now.agent_alive:
        return True
    if before.measured is now.measured:
        return False
    old, new = _foreign(before), _foreign(now)
    if old.keys() != new.keys():
        return True
    return any(abs(new[device] - old[device]) >= MATTERS_GIB for device in new)


def _foreign(seen: Sighting) -> Mapping[str, GiB]:
    if seen.measured is None:
        return {}
    return {name: use.foreign_gib for name, use in seen.measured.devices.items()}


def as_json(sightings: Mapping[str, Sighting]) -> str:
    """Return sightings as a round keeps them."""
    rows = {name: seen.model_dump(mode="json") for name, seen in sorted(sightings.items())}
    return json.dumps(rows, separators=(",", ":"), sort_keys=True)
