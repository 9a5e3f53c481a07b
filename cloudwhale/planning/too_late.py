"""Why nothing is rented for a job that no machine would be done with in time."""

from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.world import World
from cloudwhale.planning import nights
from cloudwhale.planning.leasing import landing_s
from cloudwhale.planning.stock import LONGEST_LEASE_S, Stock


def by_morning(world: World, stock: Stock, job: Job) -> Reason | None:
    """Return why a job cannot be done in its night; None: it can, or has none."""
    night = nights.night_of(world, job.run)
    if night is None:
        return None
    horizon_s = nights.horizon_s(world, job.run, landing_s([job]))
    lengths_s = (one.offer.boot_s + one.runs_s for one in stock.options(job))
    least_s = min(lengths_s, default=0.0)
    return nights.too_long(night, least_s) if least_s > horizon_s else None


def too_late(world: World, stock: Stock, job: Job) -> Reason:
    """Return why a job is left out, as its night ends, its deadline comes, or leases are bound."""
    at_night = by_morning(world, stock, job)
    if at_night is not None:
        return at_night
    options = stock.options(job)
    soonest = min(options, key=lambda one: (one.offer.boot_s + one.runs_s, one.cost), default=None)
    if soonest is None:
        return Reason(code=Code.TOO_LATE, says="nothing that can be rented suits it")
    done_s = soonest.offer.boot_s + soonest.runs_s
    deadline = job.spec.deadline
    if deadline is None or done_s > LONGEST_LEASE_S:
        says = (
            f"would run for {done_s:.0f} s on the fastest that can be rented, "
            f"{soonest.offer.id}; no machine is rented for more than {LONGEST_LEASE_S:.0f} s"
        )
        return Reason(code=Code.TOO_LATE, says=says, change="make it shorter")
    late_s = world.now + done_s - deadline
    says = (
        f"nothing that can be rented would be done by its deadline; the soonest, "
        f"{soonest.offer.id}, is {late_s:.0f} s late"
    )
    return Reason(code=Code.TOO_LATE, says=says, change=f"a deadline {late_s:.0f} s later")
