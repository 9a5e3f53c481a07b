"""Jobs of a dry run that come after others: whether something will do then, and for how much."""

from collections.abc import Sequence

from cloudwhale.control.preview_machines import called
from cloudwhale.control.preview_misses import missing
from cloudwhale.control.preview_places import Places
from cloudwhale.control.previewed import Later, PreviewJob, State
from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import MicroUsd
from cloudwhale.planning.renting import told


def fate_later(places: Places, job: Job, reason: Reason) -> tuple[State, Reason]:
    """Return what becomes of a job that comes after others and that no owned node could run.

    It waits if something could be rented for it then, with the money that there is now.
    """
    refusals: list[Reason] = []
    account = places.trial.world.accounts.get(job.run)
    for option in places.options(job):
        no = places.till.refusal(job, option, account)
        if no is None:
            return "waits", reason
        refusals.append(told(no, called(option.offer)))
    if refusals:
        return "over-budget", refusals[0]
    no = places.not_at_home(job)
    lacks = "no node is there" if no is None else no.says
    base = reason.but(code=Code.NOTHING_FITS, says=lacks, change="ask for what is there")
    return "impossible", missing(places, job, base)


def later(places: Places, found: Sequence[PreviewJob]) -> Later | None:
    """Return who waits for others and is rented for then, and what that costs about; or None."""
    costs = [
        one.runner_up.cost
        for job, one in zip(places.trial.jobs, found, strict=True)
        if (one.state, one.reason.code) == ("waits", Code.WAITS_FOR_JOB)
        and not places.homes(job)
        and one.runner_up is not None
        and one.runner_up.cost is not None
    ]
    return Later(jobs=len(costs), cost=MicroUsd(sum(costs))) if costs else None
