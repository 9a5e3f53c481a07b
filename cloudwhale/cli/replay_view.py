"""A round that was run again, as a document."""

from collections.abc import Mapping
from typing import Any

from cloudwhale.control.replay import ReplayResult
from cloudwhale.control.solved import Side
from cloudwhale.model.units import usd


def replay_keys(result: ReplayResult) -> Mapping[str, Any]:
    """Return the document; `solved` is empty unless it was solved again."""
    return {
        "round": result.round.number,
        "agrees": result.agrees,
        "differences": list(result.differences),
        "notes": list(result.notes),
        "solved": [
            {
                "payer": one.payer,
                "jobs": list(one.jobs),
                "same": one.is_same,
                "then": _side(one.then),
                "now": _side(one.now),
            }
            for one in result.solved
        ],
    }


def _side(side: Side) -> Mapping[str, Any]:
    return {
        "cost_usd": None if side.cost is None else usd(side.cost),
        "bound_usd": None if side.bound is None else usd(side.bound),
        "machines": dict(sorted(side.machines.items())),
        "how": side.how,
    }
