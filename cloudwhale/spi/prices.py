"""What the house asks of those who know what a cloud's machines cost."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from cloudwhale.model.units import NOTHING, GiB, Instant, MicroUsd, Seconds

Market = Literal["spot", "on-demand"]


class Shape(NamedTuple):
    """A machine type: what one such machine has, wherever it stands."""

    provider: str
    type: str
    """What the provider calls it, `g5.xlarge`."""
    gpu: str = ""
    """Canonical model of its GPUs; empty: it has none."""
    gpus: int = 0
    gpu_gib: GiB = 0.0
    """Memory of each that a driver shows; 0: the nominal memory of the model."""
    cpu: float = 0.0
    memory_gib: GiB = 0.0
    disk_gib: GiB = 0.0
    """Local disks that come with it, formatted or not; 0: it has none."""


class Price(NamedTuple):
    """What a machine costs per hour, who said so, and when."""

    usd_h: MicroUsd
    at: Instant
    source: str
    estimated: bool = False
    """Whether it was worked out from others, as the source gives none."""
    zones: tuple[tuple[str, MicroUsd], ...] = ()
    """Where zones differ: theirs, by name; `usd_h` is then the least of them, and a zone without
    one is unknown."""


class Listing(NamedTuple):
    """One machine type in one region; a tuple, as there are tens of thousands."""

    shape: Shape
    region: str
    zones: tuple[str, ...] = ()
    """Those that have the type; empty: nobody has said, so the provider chooses."""
    on_demand: Price | None = None
    """None: unknown, and then it is not rented."""
    spot: Price | None = None
    hazard_per_h: float | None = None
    """Preemptions per hour that are expected of spot machines; None: nobody has said."""

    def price(self, market: Market) -> Price | None:
        """Return the price of a market; None when it is unknown."""
        return self.spot if market == "spot" else self.on_demand


class Terms(NamedTuple):
    """What a provider adds to a price: how it bills, warns and counts."""

    boot_s: Seconds
    """From the launch until a job can start."""
    notice_s: Seconds
    """Between the word that a spot machine goes and its going."""
    billing_step_s: Seconds
    billing_least_s: Seconds
    extras_usd_h: MicroUsd = NOTHING
    """The disk that is rented with it, and its address."""
    disk_gib: GiB = 0.0
    """What that disk leaves for jobs."""
    memory_share: float = 1.0
    """Which part of the memory jobs can have; firmware and kernel keep the rest."""
    egress_usd_gb: float | None = None
    """Price of a GB that leaves for the internet; None: nobody has said."""
    egress_near_usd_gb: float | None = None
    """Price of a GB that leaves for another region of the same provider; None: nobody has said."""
    quota: str = ""
    """The quota that a machine counts against, `CLOUD/us-east-1/spot/G`; empty: none is known."""
    quota_units: float = 0.0
    is_sold: bool = True
    """Whether it can be had in this market at all: some types have a price there and are not."""
    stop_moves: bool = True
    """Whether the provider can move its own stop of a machine that is there; else a lease holds
    as it was at the launch."""
    address_usd_h: MicroUsd = NOTHING
    """What of the extras is for addresses."""


Told = Callable[[str], None]
"""Takes a few words on what is being done, for somebody who waits; called with all that comes.

Raises Unreachable when whoever waits has waited long enough.
"""


class Reading(NamedTuple):
    """What live sources said."""

    listings: Sequence[Listing]
    regions: frozenset[str] = frozenset()
    """Those that were read whole: what is missing there is not offered any more."""
    notes: Sequence[str] = ()
    """Sentences: what could not be read, and what was taken in its place."""


class PriceList(Protocol):
    """A cloud's prices and terms.

    Entry points of `cloudwhale.prices` make one of nothing; those of `cloudwhale.own_prices` of a
    cloud's name, its table of the settings, and now, for clouds whose prices stand there.
    """

    def shipped(self) -> Sequence[Listing]:
        """Return the list that was installed: dated, and known without a network."""
        ...

    def read(self, regions: Sequence[str], now: Instant, told: Told) -> Reading:
        """Return what live sources say now of some regions; none: of those that are shipped.

        Regions may be patterns, `us-*`, and begin with the cloud, `CLOUD/us-*`; those of other
        clouds are passed over, and where only such are asked for, nothing is read. Takes minutes at
        most. Raises Unreachable when no source of prices answers with what can be read, Denied when
        the one that is there refuses us.
        """
        ...

    def terms(self, shape: Shape, region: str, market: Market) -> Terms:
        """Return what holds for a machine of this shape; called for each shape in each region."""
        ...

    def cap(self, listing: Listing, market: Market) -> MicroUsd | None:
        """Return the most that an hour can cost without our consent; None when unknown."""
        ...

    def region_of(self, location: str) -> str:
        """Return the region of a zone, by its name; of a region itself, or of others, the same."""
        ...
