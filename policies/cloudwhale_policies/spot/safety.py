"""What may be chosen in a tick so that a deadline is met whatever happens after it.

A spot machine may be taken at every tick's beginning and none may come back, but on-demand can
always be had. So spot, or none, is safe while the time left after this tick covers the work left
then and the changeover of an on-demand machine.
"""

from collections.abc import Sequence

from cloudwhale.model.units import Seconds
from cloudwhale.spi.spot import Errand, Site, Standing, Use

ROUNDING_S: Seconds = 1e-6
"""Sums of floats differ by less."""


def left_s(errand: Errand, now: Standing) -> Seconds:
    """Return the time to the deadline."""
    return errand.deadline_s - now.at_s


def may_idle(errand: Errand, now: Standing) -> bool:
    """Say whether a tick without progress still lets on-demand meet the deadline."""
    after_s = left_s(errand, now) - errand.tick_s
    return after_s + ROUNDING_S >= now.work_left_s + errand.changeover_s


def may_use_spot(errand: Errand, now: Standing, *, stays: bool) -> bool:
    """Say whether a tick on spot, which may be the machine's last, still lets on-demand meet it.

    `stays`: it has that machine. A tick in which the work ends is safe.
    """
    changeover_s = now.changeover_left_s if stays else errand.changeover_s
    length_s = min(errand.tick_s, left_s(errand, now))
    work_s = now.work_left_s - max(0.0, length_s - changeover_s)
    if work_s <= ROUNDING_S and changeover_s <= length_s:
        return True
    after_s = left_s(errand, now) - errand.tick_s
    return after_s + ROUNDING_S >= work_s + errand.changeover_s


def on_demand(now: Standing, sites: Sequence[Site], errand: Errand) -> Use:
    """Return the on-demand machine to finish on: what it has, else the cheapest with egress.

    Ties end at the name. There must be a site.
    """
    if now.use is not None and now.use.market == "on-demand":
        return now.use
    hours = (now.work_left_s + errand.changeover_s) / 3600.0

    def cost(site: Site) -> tuple[float, str]:
        egress = errand.egress_usd.get((now.region, site.region), 0.0)
        return site.on_demand_usd_h * hours + (egress if now.region else 0.0), site.name

    return Use(min(sites, key=cost).name, "on-demand")
