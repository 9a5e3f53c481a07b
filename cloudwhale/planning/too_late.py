"""Why nothing is rented for a job that no machine would be done with in time."""

from collections.abc import Iterator

from cloudwhale.model.job import Job
from cloudwhale.model.night import Night
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Seconds
from cloudwhale.model.world import World
from cloudwhale.planning import nights
from cloudwhale.planning.leasing import landing_s
from cloudwhale.planning.stock import LONGEST_LEASE_S, RESTORES_S, Option, Stock


def by_morning(world: World, stock: Stock, job: Job) -> Reason | None:
    """Return why a job cannot be done in its night; None: it can, or has none."""
    night = nights.night_of(world, job.run)
    if night is None:
        return None
    horizon_s = nights.horizon_s(world, job.run, landing_s([job]))
    soonest = min(stock.options(job), key=_lasts_s, default=None)
    if soonest is None or _lasts_s(soonest) <= horizon_s:
        return None
    says = (
        f"it would run for {_lasts_s(soonest):.0f} s, its start included, and is not done "
        f"when its night closes, {nights.clock(night, night.closes_at)}"
    )
    why, change = next(_lacks(night, job, soonest, horizon_s))
    return Reason(code=Code.NIGHT, says=f"{says}; {why}", change=change)


def _lasts_s(option: Option) -> Seconds:
    return option.offer.boot_s + option.runs_s


def _lacks(night: Night, job: Job, option: Option, horizon_s: Seconds) -> Iterator[tuple[str, str]]:
    """Yield why no part of it is begun, and what would change that."""
    longer = "a longer window, or a shorter job"
    if job.spec.checkpoint is None:
        says = "without `checkpoint` it would begin anew every night"
        yield says, f"`checkpoint`, with which it does a part each night; {longer}"
    if night.unfinished != "carry-over":
        says = f"with `unfinished: {night.unfinished}` no other night goes on with it"
        yield says, f"`unfinished: carry-over`, with which it does a part each night; {longer}"
    if job.spec.deadline is not None and job.spec.deadline <= night.closes_at:
        yield "its deadline comes before another night", f"a later deadline; {longer}"
    if horizon_s <= option.offer.boot_s:
        yield "what is left of the night is too short to start it", f"the next night; {longer}"
    works_s = max(0.0, horizon_s - option.offer.boot_s - RESTORES_S)
    says = (
        f"the {works_s:.0f} s of work that the rest of the night holds are less than the "
        f"{again_s(job, option):.0f} s that starting it once more may take"
    )
    yield says, f"the next night of {night.name}; a longer window"


def again_s(job: Job, option: Option) -> Seconds:
    """Return what going on in another night takes: a boot, a restore, and what is done again."""
    rule = job.spec.checkpoint
    lost_s = 0.0 if rule is None else rule.every_s
    return option.offer.boot_s + RESTORES_S + lost_s


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
