"""What kinds cost in a bound, and how long and how often jobs run there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.areas import Areas

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloudwhale_policies.renting.arrays import Floats, Tables


@dataclass(frozen=True, slots=True)
class Costs:
    """What kinds cost for a bound: what any plan pays at least."""

    usd_h: Floats
    """Of an hour of use, boot left out, by kind."""
    start_usd: Floats
    """Of a machine's boot, by kind."""
    extra_usd: Floats
    hours: Floats
    """Machine hours of a job, all machines of a gang together; a row a lot, a column a kind."""
    able: NDArray[np.bool_]
    most: Floats
    """How many jobs of a lot a machine can run one after another and side by side."""

    @classmethod
    def of(cls, tables: Tables, areas: Areas) -> Costs:
        """Return the costs of a problem's kinds."""
        usd_h, boots = tables.of_kinds("usd_h"), tables.boot_s
        nodes = np.array(tables.nodes, dtype=np.float64)[:, None]
        able = np.isfinite(tables.own_usd)
        runs_s = np.where(able, tables.runs_s, 1.0)
        counts = np.array([len(jobs) for jobs in tables.members], dtype=np.float64)[:, None]
        most = np.broadcast_to(counts, able.shape)
        if (counts > 1).any():
            side = np.stack([areas.shape(at).side for at in range(len(tables.kinds))], axis=1)
            room_s = np.where(able, tables.latest_s - boots, 0.0)
            in_turn = np.where(np.isinf(room_s), np.inf, np.floor(room_s / runs_s + 1e-6) + 1.0)
            most = np.minimum(most, side * in_turn)
        return cls(
            usd_h=usd_h,
            start_usd=usd_h * boots / 3600.0,
            extra_usd=np.where(able, tables.extra_usd, 0.0),
            hours=nodes * np.where(able, tables.runs_s, 0.0) / 3600.0,
            able=able,
            most=most / nodes,
        )
