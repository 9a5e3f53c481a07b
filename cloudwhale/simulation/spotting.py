"""Plays a spot policy on recorded availability, tick by tick, and adds up what it came to.

The rules are those of Wu et al., "Can't Be Late" (NSDI 2024): at the beginning of a tick whose
availability is 0 a spot machine is taken, and what was done until then is kept; every start on
another machine takes the changeover, billed and without progress; on-demand can always be had.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloudwhale.model.units import Seconds
from cloudwhale.spi.spot import Errand, Market, Sight, Site, SpotPlayer, SpotPolicy, Standing, Use

Flags: TypeAlias = NDArray[np.bool_]
Prices: TypeAlias = NDArray[np.float64]

HOUR_S: Seconds = 3600.0
NOTHING_S: Seconds = 1e-6
"""Less than this is nothing: sums of floats."""


class Stubborn(ValueError):
    """A policy asked twice in a tick for what could not be had, or for what there is not."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """What happened at some sites; the first tick is when the job starts."""

    names: tuple[str, ...]
    regions: tuple[str, ...]
    """By site."""
    is_on: Flags
    """Ticks by sites: spot can be had, and stays for this tick."""
    spot_usd_h: Prices
    """Ticks by sites, or one row for all ticks."""
    on_demand_usd_h: tuple[float, ...]
    """By site."""

    def since(self, tick: int) -> "Record":
        """Return what happened from a tick on."""
        prices = self.spot_usd_h if len(self.spot_usd_h) == 1 else self.spot_usd_h[tick:]
        return Record(self.names, self.regions, self.is_on[tick:], prices, self.on_demand_usd_h)

    def sights(self, tick_s: Seconds, ticks: range, now: int) -> tuple[Sight, ...]:
        """Return what somebody saw who looked at every site in these ticks, `now` being time 0."""
        rows = self.is_on[ticks.start : ticks.stop : ticks.step].tolist()
        return tuple(
            Sight(name, (tick - now) * tick_s, is_on)
            for tick, row in zip(ticks, rows, strict=False)
            for name, is_on in zip(self.names, row, strict=True)
        )


def one_site(is_on: Sequence[bool] | Flags, spot_usd_h: float, on_demand_usd_h: float) -> Record:
    """Return a record of one site, called `here`, whose prices stay."""
    flags = np.asarray(is_on, dtype=np.bool_).reshape(-1, 1)
    return Record(("here",), ("here",), flags, np.array([[spot_usd_h]]), (on_demand_usd_h,))


@dataclass(frozen=True, slots=True)
class Beat:
    """A tick as it was played."""

    at_s: Seconds
    use: Use | None
    is_start: bool
    """The machine is another than before."""
    work_s: Seconds
    """Work done in it."""
    usd: float
    """Machine and egress."""


@dataclass(frozen=True, slots=True)
class Ridden:
    """What an errand came to."""

    usd: float
    egress_usd: float
    """Part of `usd`."""
    hours: Mapping[Market, float]
    """On machines that were paid for, by market."""
    starts: int
    losses: int
    """Spot machines that were taken."""
    ended_s: Seconds | None
    """None: the deadline came first."""
    work_left_s: Seconds
    beats: tuple[Beat, ...]

    @property
    def missed(self) -> bool:
        """Say whether the deadline came before the end of the work."""
        return self.ended_s is None


def played(
    errand: Errand, record: Record, policy: SpotPolicy, past: Sequence[Sight] = ()
) -> Ridden:
    """Play an errand to its end or deadline; raise ValueError when the record ends before that."""
    ticks = int(np.ceil(errand.deadline_s / errand.tick_s - 1e-9))
    if len(record.is_on) < ticks:
        raise ValueError(f"the record has {len(record.is_on)} ticks, the deadline needs {ticks}")
    outlook = _Outlook(errand, record, ticks)
    ride = _Ride(errand, outlook, policy.begin(errand, outlook.sites(0), past))
    for tick in range(ticks):
        if ride.ended_s is not None:
            break
        ride.play(tick)
    return ride.ridden()


class _Outlook:
    """What a record shows at a tick."""

    def __init__(self, errand: Errand, record: Record, ticks: int) -> None:
        self.names = record.names
        self.region = dict(zip(record.names, record.regions, strict=True))
        self.on_demand = dict(zip(record.names, record.on_demand_usd_h, strict=True))
        self._record = record
        self._rows: list[list[bool]] = record.is_on[:ticks].tolist()
        prices = record.spot_usd_h[:ticks]
        self._prices: list[list[float]] = prices.tolist()
        changed = np.any(prices[1:] != prices[:-1], axis=1) if len(prices) > 1 else np.zeros(0)
        since = np.concatenate(([0], np.cumsum(changed))).astype(int)
        self._version: list[int] = since.tolist() if len(prices) > 1 else [0] * ticks
        self._sites: tuple[int, tuple[Site, ...]] = (-1, ())
        every = errand.probes_every_s
        at = np.arange(ticks) * errand.tick_s
        probed = np.ones(ticks, dtype=np.bool_)
        if every is not None:
            turn = np.floor(at / every + 1e-9)
            probed[1:] = turn[1:] > turn[:-1]
        self._probed: list[bool] = probed.tolist()
        self._unseen: dict[str, bool | None] = dict.fromkeys(record.names)

    def price(self, tick: int, site: str) -> float:
        """Return the spot price of a site in USD an hour."""
        row = self._prices[tick] if len(self._prices) > 1 else self._prices[0]
        return row[self.names.index(site)]

    def is_on(self, tick: int, site: str) -> bool:
        """Say whether spot can be had."""
        return self._rows[tick][self.names.index(site)]

    def seen(self, tick: int) -> dict[str, bool | None]:
        """Return what is seen of every site without trying or being there."""
        if self._probed[tick]:
            return dict(zip(self.names, self._rows[tick], strict=True))
        return self._unseen.copy()

    def sites(self, tick: int) -> tuple[Site, ...]:
        """Return the sites at this tick's prices."""
        version = self._version[tick]
        if self._sites[0] != version:
            row = self._prices[tick] if len(self._prices) > 1 else self._prices[0]
            self._sites = (
                version,
                tuple(
                    Site(name, self.region[name], price, self.on_demand[name])
                    for name, price in zip(self.names, row, strict=True)
                ),
            )
        return self._sites[1]


class _Ride:
    """Where a job is, and what it has cost."""

    def __init__(self, errand: Errand, outlook: _Outlook, player: SpotPlayer) -> None:
        self.ended_s: Seconds | None = 0.0 if errand.work_s <= NOTHING_S else None
        self._errand, self._outlook, self._player = errand, outlook, player
        self._work_left = errand.work_s
        self._changeover_left = 0.0
        self._use: Use | None = None
        self._region = ""
        self._usd = self._egress = 0.0
        self._seconds: dict[Market, Seconds] = {"spot": 0.0, "on-demand": 0.0}
        self._starts = self._losses = 0
        self._beats: list[Beat] = []

    def play(self, tick: int) -> None:
        """Play one tick."""
        seen = self._outlook.seen(tick)
        self._look(tick, seen)
        before, egress = self._use, self._egress
        self._choose(tick, seen)
        is_start = self._use is not before and self._use not in (None, before)
        work, usd = self._run(tick)
        usd += self._egress - egress
        self._usd += usd
        at_s = tick * self._errand.tick_s
        self._beats.append(Beat(at_s, self._use, is_start, work, usd))

    def _look(self, tick: int, seen: dict[str, bool | None]) -> None:
        """See what becomes of the spot machine that it has."""
        use = self._use
        if use is not None and use.market == "spot":
            stays = seen[use.site] = self._outlook.is_on(tick, use.site)
            if not stays:
                self._losses += 1
                self._use, self._changeover_left = None, 0.0

    def _choose(self, tick: int, seen: dict[str, bool | None]) -> None:
        """Ask the policy until it stays, idles, or gets what it asks for."""
        refused: set[Use] = set()
        while True:
            use = self._player.choose(
                Standing(
                    tick * self._errand.tick_s, self._work_left, self._changeover_left, self._use,
                    self._region, self._outlook.sites(tick), seen,
                )
            )  # fmt: skip
            if use is self._use or use == self._use:
                return
            if use is None:
                self._use, self._changeover_left = None, 0.0
                return
            if use in refused or use.site not in self._outlook.region:
                raise Stubborn(f"{use} cannot be had in this tick")
            if use.market == "on-demand" or self._outlook.is_on(tick, use.site):
                self._start(use)
                return
            refused.add(use)
            seen = {**seen, use.site: False}

    def _start(self, use: Use) -> None:
        region = self._outlook.region[use.site]
        if self._region and region != self._region:
            self._egress += self._errand.egress_usd.get((self._region, region), 0.0)
            self._region = region
        self._use, self._changeover_left = use, self._errand.changeover_s
        self._starts += 1

    def _run(self, tick: int) -> tuple[Seconds, float]:
        """Run for a tick; return the work done and what the machine cost."""
        use, errand = self._use, self._errand
        if use is None:
            return 0.0, 0.0
        at_s = tick * errand.tick_s
        length_s = min(errand.tick_s, errand.deadline_s - at_s)
        lost = min(self._changeover_left, length_s)
        work = min(self._work_left, length_s - lost)
        self._changeover_left -= lost
        self._work_left -= work
        if work > 0.0:
            self._region = self._outlook.region[use.site]
        if self._work_left <= NOTHING_S and self._changeover_left <= NOTHING_S:
            length_s = lost + work
            self._work_left, self.ended_s = 0.0, at_s + length_s
        is_spot = use.market == "spot"
        price = (
            self._outlook.price(tick, use.site) if is_spot else self._outlook.on_demand[use.site]
        )
        self._seconds[use.market] += length_s
        return work, price * length_s / HOUR_S

    def ridden(self) -> Ridden:
        """Return what it came to."""
        hours: dict[Market, float] = {m: s / HOUR_S for m, s in self._seconds.items()}
        return Ridden(
            self._usd, self._egress, hours, self._starts, self._losses, self.ended_s,
            self._work_left, tuple(self._beats),
        )  # fmt: skip
