"""A shape that a provider would rent now."""

from typing import Literal

from cloudwhale.model.node import Facts
from cloudwhale.model.units import MicroUsd, Seconds
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
