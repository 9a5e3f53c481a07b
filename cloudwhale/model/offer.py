"""A shape that a provider would rent now."""

from typing import Literal

from cloudwhale.model.node import Facts
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds
from cloudwhale.model.value import Value


class Offer(Value):
    """One (type, zone, market) of one provider."""

    id: str
    provider: str
    region: str
    zone: str
    market: Literal["spot", "on-demand"]
    facts: Facts
    price_usd_h: MicroUsd | None
    """Price per hour now; None when the provider gave none, and then it is not rented."""
    cap_usd_h: MicroUsd | None
    """Highest price per hour that can be charged during a lease without our consent."""
    boot_s: Seconds
    notice_s: Seconds = 0.0
    billing_step_s: Seconds = 1.0
    billing_least_s: Seconds = 60.0
    hazard_per_h: float | None = None
    """Expected preemptions per hour; 0 for on-demand, None when unknown."""
    type: str = ""
    """What the provider calls the shape, `g5.xlarge`; empty where it has no such name."""
    extras_usd_h: MicroUsd = NOTHING
    """Disks and addresses of the machine, per hour, on top of its price."""
    address_usd_h: MicroUsd = NOTHING
    """What of that is for addresses."""
    egress_usd_gb: float | None = None
    """Price of a GB that leaves for the internet; None: nobody has said."""
    egress_near_usd_gb: float | None = None
    """Price of a GB that leaves for another region of the same provider; None: nobody has said."""
    quota: str = ""
    """What its vCPUs or GPUs count against, `CLOUD/us-east-1/spot/G`; empty: nothing known."""
    quota_units: float = 0.0
    """How much one machine takes of that."""
    quota_left: float | None = None
    """What is left of it; None: nobody has said, and it is tried."""
    capacity: int | None = None
    """Machines that can be had at once; None: nobody has said."""
    priced_at: Instant | None = None
    """When the price was read; None: just now, by the provider itself."""
    source: str = ""
    """Who said the price; empty: the provider itself."""
    estimated: bool = False
    """Whether the price was worked out from others, as its source gives none."""
    stop_moves: bool = True
    """Whether the provider can move its own stop of a machine that is there; else a lease is as
    long as it was at the launch, and who needs longer goes on on another machine."""

    @property
    def usd_h(self) -> MicroUsd | None:
        """Return what an hour costs now, disks and addresses included; None when unknown."""
        return None if self.price_usd_h is None else MicroUsd(self.price_usd_h + self.extras_usd_h)

    @property
    def most_usd_h(self) -> MicroUsd | None:
        """Return the most that an hour can cost, disks and addresses included; None: unknown."""
        return None if self.cap_usd_h is None else MicroUsd(self.cap_usd_h + self.extras_usd_h)
