"""What other budgets would come to: another 5 USD, and one with which no job lacks money."""

import math
from bisect import bisect
from collections.abc import Mapping
from dataclasses import replace

from cloudwhale.control.preview_machines import rents_of
from cloudwhale.control.preview_places import Places
from cloudwhale.control.previewed import More
from cloudwhale.control.trying import MANY, Trial
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, micro_usd, usd
from cloudwhale.planning.leasing import tail
from cloudwhale.planning.ledger import FOR_MONEY
from cloudwhale.planning.payers import account_in, account_name, called, month_of
from cloudwhale.reporting.figures import span

ADDED = micro_usd(5)
"""What is asked about: the price of a lunch."""

ENOUGH = micro_usd(10_000_000)
"""No file of jobs costs so much."""

CENT = 10_000
MINUTE_S = 60

TRIED = (1.0, 1.05, 1.15, 1.4, 2.0)
"""Times what a plan needs: with a bound, others may come first and need more."""

HALVINGS = 8
"""Of few jobs: a smaller budget is sought so many times, between enough and half of that.

With a bound, machines may be chosen whose worst case is less.
"""


def is_lacking(trial: Trial, made: p.Plan) -> bool:
    """Say whether some job got no machine for want of money."""
    return any(_lacking(trial, made, part.payer) for part in trial.parts)


def more_of(trial: Trial, made: p.Plan) -> More:
    """Return what another 5 USD would change: asked by planning again with them."""
    made = trial.as_asked(made)
    limits = {
        part.payer: MicroUsd(part.budget + ADDED)
        for part in trial.parts
        if part.budget is not None and _lacking(trial, made, part.payer)
    }
    richer = trial.with_limits(limits)
    jobs = len(_helped(trial, richer)) - len(_helped(trial, made))
    sooner_s = 0.0
    if not jobs:
        ends, then = _last_end(trial, made), _last_end(trial, richer)
        sooner_s = 0.0 if ends is None or then is None else max(0.0, ends - then)
    return More(
        added=ADDED,
        jobs=max(0, jobs),
        sooner_s=sooner_s,
        cost=MicroUsd(_cost(trial, richer) - _cost(trial, made)),
    )


def least_budgets(trial: Trial, made: p.Plan) -> MicroUsd | None:
    """Return budgets, summed over the files, with which nobody lacks money; None: there are none.

    What is set aside for the plan without any bound, and what admits it, which is then tried as a
    bound. It works; a smaller one, with other machines, may work too.
    """
    poor = [part.payer for part in trial.parts if _lacking(trial, made, part.payer)]
    free = trial.with_limits(dict.fromkeys(poor, ENOUGH), quickly=True)
    if any(_lacking(trial, free, payer) for payer in poor):
        return None  # it is not the budget of the run that is too small
    needs = {payer: _needs(trial, free, payer) for payer in poor}
    enough: Mapping[str, MicroUsd] | None = None
    for times in TRIED:
        enough = _enough(trial, needs, times)
        if enough is not None:
            break
    if enough is None:
        return None
    if len(trial.jobs) <= MANY:
        enough = _least(trial, enough)
    return _in_all(trial, enough)


def _least(trial: Trial, enough: Mapping[str, MicroUsd]) -> Mapping[str, MicroUsd]:
    """Return what is still enough, found by halving what lies between that and too little."""
    half = _enough(trial, enough, 0.5)
    while half is not None and half != enough:
        enough, half = half, _enough(trial, half, 0.5)
    found, too_little, least = enough, 0.5, 1.0
    for _ in range(HALVINGS):
        if (least - too_little) * sum(enough.values()) < CENT:
            break
        times = (too_little + least) / 2
        less = _enough(trial, enough, times)
        if less is None:
            too_little = times
        else:
            least, found = times, less
    return found


def project_lacks(places: Places, job: Job) -> Reason | None:
    """Return that it is a project's month that others of the plan use up, and not the run's money.

    None: the project has no budget, or it would hold the cheapest machine for the job.
    """
    trial, project = places.trial, job.spec.project
    month = account_in(trial.world, account_name(project, month_of(trial.world.now)))
    option = next(places.options(job), None)
    worst = None if option is None else places.worst(job, option)
    if month.limit is None or worst is None:
        return None
    mine = {one.id for one in trial.jobs if one.spec.project == project}
    taken = sum(
        step.rental.reserved
        for step in rents_of(trial, places.made)
        if not mine.isdisjoint(step.rental.jobs)
    )
    left = month.limit - month.reserved - month.spent - taken
    if not taken or worst <= left:
        return None
    name = called(month.payer)
    says = (
        f"what others of its project that come first need leaves {usd(MicroUsd(max(0, left))):.2f} "
        f"of the {usd(month.limit):.2f} USD of {name}, and it could cost {usd(worst):.2f} USD"
    )
    return Reason(code=Code.OVER_BUDGET, says=says, change=f"raise the budget of {name}")


def what_fits(places: Places, job: Job) -> str:
    """Say what of a job that lacks money its budgets would hold as they are; empty: nothing.

    Asked of the machine that is the cheapest for it alone, before others of the plan take any.
    """
    option = next(places.options(job), None)
    account = places.trial.world.accounts.get(job.run)
    if option is None:
        return ""

    def holds(minutes: int) -> bool:
        runs_s = min(option.runs_s, MINUTE_S * minutes)
        return places.till.refusal(job, replace(option, runs_s=runs_s), account) is None

    whole = math.ceil(option.runs_s / MINUTE_S)
    if holds(whole):
        return "without the jobs that come first, it would fit"
    fits = bisect(range(1, whole + 1), 0, key=lambda minutes: not holds(minutes))
    if not fits:
        return ""
    return f"as it is, the budget holds a job that runs {span(MINUTE_S * fits)} there"


def _enough(
    trial: Trial, needs: Mapping[str, MicroUsd], times: float
) -> Mapping[str, MicroUsd] | None:
    """Return so many times what payers need, or None when somebody still lacks money with it."""
    limits = {payer: _cents_up(times * need) for payer, need in needs.items()}
    tried = trial.with_limits(limits, quickly=True)
    return None if any(_lacking(trial, tried, payer) for payer in limits) else limits


def _in_all(trial: Trial, limits: Mapping[str, MicroUsd]) -> MicroUsd:
    return MicroUsd(sum(limits.get(part.payer, part.budget or 0) for part in trial.parts))


def _lacking(trial: Trial, made: p.Plan, payer: str) -> bool:
    mine = {job.id for job in trial.jobs if job.run == payer}
    return any(
        isinstance(step, p.Explain) and step.job in mine and step.reason.code in FOR_MONEY
        for step in made.steps
    )


def _needs(trial: Trial, made: p.Plan, payer: str) -> MicroUsd:
    """Return the least limit that admits a plan's machines one after another.

    All of them fit in it with what their jobs may need when they run late, and those before the
    last one leave it below its soft line.
    """
    steps = [step for step in rents_of(trial, made) if step.rental.payer == payer]
    taken = [step.rental.reserved for step in steps]
    before_last = sum(taken[:-1]) / trial.world.accounts[payer].soft
    return _cents_up(max(sum(taken) + sum(_late(step) for step in steps), before_last + CENT))


def _late(step: p.Rent) -> MicroUsd:
    """Return what the jobs of a machine may need beyond its lease."""
    offer, begins_at = step.rental.taken, step.rental.reserved_at
    if offer is None:
        return NOTHING
    return tail(offer, max((seat.ends_at for seat in step.seats), default=begins_at) - begins_at)


def _cents_up(amount: float) -> MicroUsd:
    return MicroUsd(-(-math.ceil(amount) // CENT) * CENT)


def _helped(trial: Trial, made: p.Plan) -> frozenset[str]:
    """Return the jobs that run here now or are rented for."""
    mine = {job.id for job in trial.jobs}
    places = {step.job for step in made.steps if isinstance(step, p.Place)}
    machines = {job for step in rents_of(trial, made) for job in step.rental.jobs}
    return frozenset(mine & (places | machines))


def _last_end(trial: Trial, made: p.Plan) -> Instant | None:
    ends = [seat.ends_at for step in rents_of(trial, made) for seat in step.seats]
    return max(ends, default=None)


def _cost(trial: Trial, made: p.Plan) -> int:
    return sum(step.cost or 0 for step in rents_of(trial, made))
