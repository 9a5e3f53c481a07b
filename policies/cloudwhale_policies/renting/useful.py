"""Which kinds are worth a try: for the plan alone; a bound must ask all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.arrays import Tables

if TYPE_CHECKING:
    from cloudwhale.spi.renting import RentalProblem
    from cloudwhale_policies.renting.arrays import Flags, Floats

NEAR = 1.3
"""A kind is tried that could be so much dearer for some job than its cheapest, both well filled."""
ALONE = 1.05
"""The same for a machine of its own."""


def kept_kinds(tables: Tables, used: Iterable[int] = (), near: float = NEAR) -> Sequence[int]:
    """Return the kinds that could be cheap for some job, and those that are used already.

    Of kinds that differ in price and place alone one stays for each job; kinds of which only so
    many can be had do not displace others.
    """
    if not tables.kinds or not tables.members:
        return range(len(tables.kinds))
    filled, own, scarce = filled_usd(tables), tables.own_usd, _scarce(tables)
    keep = _least_of_alike(tables, (filled, own)) | scarce
    keep &= _close(filled, near, scarce) | _close(own, ALONE, scarce)
    keep[list(used)] = True
    kinds: list[int] = np.flatnonzero(keep).tolist()
    return kinds


def narrowed(tables: Tables, kept: Sequence[int]) -> Tables:
    """Return the same problem, in the same lots, with some of its kinds alone."""
    if len(kept) == len(tables.kinds):
        return tables
    return Tables(_sliced(tables, kept), tables.weight, like=tables)


def filled_usd(tables: Tables) -> Floats:
    """Return what each lot's job costs on each kind when others pay for what it leaves free."""
    rows = [tables.parts(lot).max(axis=0) for lot in range(len(tables.members))]
    able = np.isfinite(tables.own_usd)
    rates = tables.of_kinds("usd_h") / 3600.0
    used = np.stack(rows) * np.where(able, tables.runs_s, 0.0)
    nodes = np.array(tables.nodes, dtype=np.float64)[:, None]
    return np.where(able, used * rates * nodes + tables.extra_usd, np.inf)


def _scarce(tables: Tables) -> Flags:
    quotas = tables.problem.quotas
    limited = [kind.at_most is not None or kind.quota in quotas for kind in tables.kinds]
    return np.array(limited, dtype=bool)


def _close(usd: Floats, factor: float, scarce: Flags) -> Flags:
    """Return the kinds that are nearly the cheapest of those without limit for some job."""
    least = np.where(scarce, np.inf, usd).min(axis=1)[:, None]
    near: Flags = (np.isfinite(usd) & ((usd <= factor * least) | np.isinf(least))).any(axis=0)
    return near


def _least_of_alike(tables: Tables, costs: tuple[Floats, ...]) -> Flags:
    groups: dict[object, list[int]] = {}
    for column, kind in enumerate(tables.kinds):
        shape = (kind.model, kind.devices, kind.device_gib, kind.cpu, kind.memory_gib)
        key = (*shape, kind.disk_gib, kind.market, kind.boot_s)
        groups.setdefault(key, []).append(column)
    keep = np.zeros(len(tables.kinds), dtype=bool)
    for columns in groups.values():
        for usd in costs:
            part = usd[:, columns]
            found = part.argmin(axis=1)[np.isfinite(part.min(axis=1))]
            keep[np.array(columns)[found]] = True
    return keep


def _sliced(tables: Tables, columns: Sequence[int]) -> RentalProblem:
    problem = tables.problem
    return replace(
        problem,
        kinds=[problem.kinds[column] for column in columns],
        runs_s=problem.runs_s[:, columns],
        late_s=problem.late_s[:, columns],
        extra_usd=problem.extra_usd[:, columns],
    )
