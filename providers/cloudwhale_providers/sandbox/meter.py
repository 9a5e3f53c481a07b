"""Counts what the machines of the box cost, by itself: the same money as any ledger's, twice.

EC2 bills by the second, a minute at least (re:Post, "EC2 billing for partial hours"), and Compute
Engine too (its price page); disk and address as the terms of the offers have them. A machine is
billed from its launch, as its cloud lists it, until its end began: the seconds before it runs,
which neither charges, count, and so do machines that were taken back early. The disk of a machine
of Compute Engine that has stopped costs on until that is deleted. Each bill is rounded up to a
micro-dollar.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil, floor
from pathlib import Path

from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.spi.sandbox import Metered
from cloudwhale_providers.prices.gcp import BOOT_DISK_USD_H
from cloudwhale_providers.sandbox import record
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.fittings import LISTS, shape_of
from cloudwhale_providers.sandbox.names import NODE

LEAST_S, STEP_S = 60, 1
STAY = frozenset({"gcp"})
"""Clouds where a machine that has ended is there, with its disk, until it is deleted."""
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Line:
    """One machine on the bill; times in seconds, money in micro-dollars."""

    id: str
    node: str
    type: str
    zone: str
    market: str
    since: Instant
    until: Instant | None
    """None: it runs."""
    price_usd_h: int
    extras_usd_h: int
    """Disk and address."""
    cost: int
    """Until its end, or until the bill was written."""
    provider: str = "aws"
    disk_s: Seconds = 0.0
    """How long its disk has been there after its end."""


class Meter:
    """Keeps the bill of a box in its folder, and goes on with that of an earlier box."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / record.METER
        self._lines = {line.id: line for line in _closed(self._path)}

    def read(self, instances: Iterable[Instance], now: Instant) -> bool:
        """Count what runs and what has ended; say whether a machine has begun or ended."""
        is_new = False
        for one in instances:
            line, before = line_of(one, now), self._lines.get(one.id)
            if before is not None and before.until is not None and one.provider not in STAY:
                continue  # a bill that was closed stays as it is
            is_new = is_new or before is None or before.until != line.until
            self._lines[one.id] = line
        return is_new

    @property
    def total(self) -> int:
        """Return the cost of all machines there were, in micro-dollars."""
        return sum(line.cost for line in self._lines.values())

    def keep(self, now: Instant) -> None:
        """Write the bill; raise OSError."""
        machines = [asdict(line) for line in sorted(self._lines.values(), key=_order)]
        told = {"at": now, "total": self.total, "machines": machines}
        record.write(self._path, json.dumps(told, indent=1))


def line_of(one: Instance, now: Instant) -> Line:
    """Return the bill of a machine, in the times that its cloud lists; no price: nothing.

    EC2 lists whole seconds, Compute Engine thousandths.
    """
    extras, price = _extras(one), one.price_usd_h or 0
    since, ended = (
        _listed(one, one.launched_at),
        None if one.ended_at is None else _listed(one, one.ended_at),
    )
    until = now if ended is None else ended
    disk_s = 0.0
    if ended is not None and one.provider in STAY and one.state == "terminated":
        disk_s = max(0.0, (now if one.deleted_at is None else one.deleted_at) - ended)
    return Line(
        one.id, one.tags.get(NODE, ""), one.type, one.zone, one.market, since, ended, price, extras,
        cost(price + extras, until - since) + of_disk(disk_s), one.provider, disk_s,
    )  # fmt: skip


def _listed(one: Instance, at: Instant) -> Instant:
    return at if one.provider in STAY else floor(at)


def of_disk(kept_s: Seconds) -> int:
    """Return the micro-dollars for the disk of a machine that has stopped, rounded up."""
    return ceil(Fraction(BOOT_DISK_USD_H * ceil(kept_s), SECONDS_PER_HOUR))


def cost(usd_h: int, used_s: float) -> int:
    """Return the micro-dollars for some seconds at a price per hour, rounded up."""
    billed_s = max(LEAST_S, ceil(max(0.0, used_s) / STEP_S) * STEP_S)
    return ceil(Fraction(usd_h * billed_s, SECONDS_PER_HOUR))


def metered(folder: Path) -> Sequence[Metered]:
    """Return the bill that was written into a folder, in the order of the launches."""
    return [
        Metered(
            one.id, one.node, one.type, one.zone, one.market, one.since, one.until,
            MicroUsd(one.price_usd_h + one.extras_usd_h), MicroUsd(one.cost), one.provider,
        )
        for one in _kept(folder / record.METER)
    ]  # fmt: skip


def _kept(path: Path) -> Sequence[Line]:
    try:
        return [Line(**line) for line in json.loads(path.read_text())["machines"]]
    except (OSError, ValueError, TypeError, KeyError):
        return ()


def _closed(path: Path) -> Iterable[Line]:
    """Yield an earlier box's bill: a kill leaves lines open, but its machines ended with it."""
    try:
        at = floor(json.loads(path.read_text())["at"])
    except (OSError, ValueError, TypeError, KeyError):
        return
    for line in _kept(path):
        yield line if line.until is not None else replace(line, until=max(line.since, at))


def _extras(one: Instance) -> int:
    shape = shape_of(one.type)
    if shape is None:
        return 0
    return LISTS[one.provider].terms(shape, one.region, one.market).extras_usd_h


def _order(line: Line) -> tuple[Instant, str]:
    return line.since, line.id
