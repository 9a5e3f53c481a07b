"""Parts of jobs: what one night can do of a job that no machine would be done with by morning.

A part is begun where the rest is not lost: the job saves what it does, and is carried over to the
next night, which goes on with it. And where most of the machine's time goes into work: what the
rest of the night does of it takes longer than starting it once more. On the machine whose work is
the cheapest; where the money does not hold all of the night, a half or a quarter of it. So is a
job begun that the hours of a night would hold, and the whole of its budget never does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.units import NOTHING, MicroUsd, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning import ledger, nights
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.leasing import landing_s, tail, worst_case
from cloudwhale.planning.renting import quotes
from cloudwhale.planning.speeds import work_s
from cloudwhale.planning.started import Started
from cloudwhale.planning.stock import RESTORES_S, Option, Stock
from cloudwhale.planning.too_late import again_s
from cloudwhale.spi.waiting import Quote

SHARES = (1.0, 0.5, 0.25)  # of what is left of the night, where money for all of it is lacking
STEP_S: Seconds = 300.0
"""A night's rest is taken in whole steps, or each round's times would be worked out anew."""

TRIES = 4
ALMOST = 0.999
"""Where a machine may be taken away, work takes more than in proportion: so often it is cut."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a round, and what machines for them would cost."""

    jobs: Mapping[str, Job]
    """By id: as if no more of it were to be done."""
    quotes: Mapping[str, Quote]
    shares: Mapping[str, float]
    """How much each is of what is left of its job."""

    def of(self, jobs: Sequence[Job]) -> tuple[Job, ...]:
        """Return jobs, each as what of it can be done tonight."""
        return tuple(self.jobs.get(job.id, job) for job in jobs)

    def told(self, step: p.Step, world: World, durations: Durations) -> p.Step:
        """Return a step; one that gets a machine for a part says how much of its job it is."""
        if not isinstance(step, p.Rent | p.Join):
            return step
        names = step.rental.jobs if isinstance(step, p.Rent) else (step.job,)
        says = "".join(
            f"; {_says(self.jobs[name], world, durations)}" for name in names if name in self.jobs
        )
        if not says:
            return step
        reason = step.reason.but(says=f"{step.reason.says}{says}")
        return step.model_copy(update={"reason": reason})


NO_PARTS = Parts({}, {}, {})


def parts(
    world: World, jobs: Sequence[Job], durations: Durations, stock: Stock, started: Started
) -> Parts:
    """Return what of some jobs, for which nothing in time can be had, could be done tonight."""
    jobs = [job for job in jobs if _may(world, job)]
    found: dict[str, Job] = {}
    quoted: dict[str, Quote] = {}
    for share in SHARES if jobs else ():
        open_ones = [job for job in jobs if job.id not in quoted]
        made = dict(_made(world, open_ones, durations, stock, share))
        had = quotes(world, list(made.values()), durations, stock, started)
        quoted |= had
        # Who has money for none is told what all of the night would cost.
        found |= {name: part for name, part in made.items() if name in had or name not in found}
    left = {job.id: work_s(job, durations) for job in jobs}
    shares = {name: work_s(part, durations) / left[name] for name, part in found.items()}
    return Parts(found, quoted, shares)


def _made(
    world: World, jobs: Sequence[Job], durations: Durations, stock: Stock, share: float
) -> Iterator[tuple[str, Job]]:
    """Yield what some share of the night does of jobs, by id; of those alike one is looked at."""
    known: dict[object, Seconds | None] = {}
    for job in jobs:
        spec, work = job.spec, work_s(job, durations)
        alike = (
            job.demand, work, spec.reference, tuple(spec.speeds.items()), spec.market, spec.nodes,
            spec.checkpoint, spec.data, job.saved_from, job.checkpoint, job.run,
        )  # fmt: skip
        if alike not in known:
            known[alike] = _part_s(world, job, work, stock, share)
        part_s = known[alike]
        if part_s is not None:
            yield job.id, _doing(job, part_s)


def _may(world: World, job: Job) -> bool:
    """Say whether a job may be done in parts: it loses nothing, and its deadline is later."""
    night = nights.night_of(world, job.run)
    if night is None or night.unfinished != "carry-over" or job.spec.checkpoint is None:
        return False
    deadline = job.spec.deadline
    return deadline is None or deadline > night.closes_at


def _part_s(world: World, job: Job, work: Seconds, stock: Stock, share: float) -> Seconds | None:
    """Return what some share of its night does of a job's work; None: all, or it is not begun."""
    rest_s = nights.horizon_s(world, job.run, landing_s([job])) // STEP_S * STEP_S
    lengths = ((one, _most_s(one, rest_s, share)) for one in stock.options(job))
    option, most_s = next((one for one in lengths if _pays(job, *one)), (None, 0.0))
    if option is None or most_s >= option.runs_s:
        return None
    if option.offer.boot_s + option.runs_s <= rest_s and _holds(world, job, option):
        return None  # it waits for its turn, and is done then
    part_s = work * most_s / option.runs_s
    for _ in range(TRIES):
        made = _doing(job, part_s)
        runs_s = float(stock.runs_s(made)[stock.position[option.offer.id]])
        if runs_s <= most_s:
            return part_s if _pays(job, option, runs_s) else None
        part_s *= ALMOST * most_s / runs_s
    return None


def _most_s(option: Option, rest_s: Seconds, share: float) -> Seconds:
    """Return how long a share of a job runs at most, of what it takes or the night leaves of it."""
    boot_s = option.offer.boot_s
    return share * min(rest_s, boot_s + option.runs_s) - boot_s


def _holds(world: World, job: Job, option: Option) -> bool:
    """Say whether the budget of a whole night, with nothing spent, holds a machine for a job."""
    account = world.accounts.get(job.run)
    needed_s = option.offer.boot_s + option.runs_s
    worst = worst_case(option.offer, needed_s, [job], world.now)
    if account is None or account.limit is None or worst is None:
        return True
    fresh, many = account.but(spent=NOTHING, reserved=NOTHING), job.spec.nodes
    late = MicroUsd(many * tail(option.offer, needed_s))
    return ledger.refusal(fresh, MicroUsd(many * (worst + option.brings)), late) is None


def _doing(job: Job, part_s: Seconds) -> Job:
    """Return a job as if so much of its work were left."""
    before_s = 0.0 if job.checkpoint is None else job.kept_s
    return job.but(spec=job.spec.but(duration_s=before_s + part_s))


def _pays(job: Job, option: Option, runs_s: Seconds) -> bool:
    """Say whether a job does more in so much time there than starting it once more takes."""
    return runs_s - RESTORES_S >= again_s(job, option)


def _says(part: Job, world: World, durations: Durations) -> str:
    whole, night = world.jobs[part.id], nights.night_of(world, part.run)
    if night is None:
        return ""
    does, left = work_s(part, durations), work_s(whole, durations)
    return (
        f"it does {does:.0f} of the {left:.0f} s that are left of it before its night closes, "
        f"{nights.clock(night, night.closes_at)}, and the next night of {night.name} goes on from "
        "its checkpoint"
    )
