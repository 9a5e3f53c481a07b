"""A dry run: what the next round would do with some jobs, without storing or starting anything."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cloudwhale.control import desk as desks
from cloudwhale.control.preview_bindings import Bindings
from cloudwhale.control.preview_deadlines import (
    beyond_means,
    earliest,
    late_here,
    too_late,
    too_long,
)
from cloudwhale.control.preview_later import fate_later, later
from cloudwhale.control.preview_machines import Rented, Seated, called, rented
from cloudwhale.control.preview_misses import missing
from cloudwhale.control.preview_money import (
    is_lacking,
    least_budgets,
    more_of,
    project_lacks,
    what_fits,
)
from cloudwhale.control.preview_places import Places
from cloudwhale.control.preview_rivals import instead, runner_up
from cloudwhale.control.preview_switches import switch_fields
from cloudwhale.control.previewed import Preview as Preview
from cloudwhale.control.previewed import PreviewJob as PreviewJob
from cloudwhale.control.previewed import Rival, State
from cloudwhale.control.submission import FILE_ORDER_S
from cloudwhale.control.supply import NO_SUPPLY, Supply
from cloudwhale.control.this_host import with_this_host
from cloudwhale.control.trying import Part, Trial
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.run import Run
from cloudwhale.model.units import NOTHING, Instant, MicroUsd
from cloudwhale.model.world import Account
from cloudwhale.planning.ledger import FOR_MONEY
from cloudwhale.planning.releases import run_s
from cloudwhale.planning.sizing import size, sized

QUICKER = {"whale-rent": "greedy"}
"""Policies that rent for no more jobs than another, and are done in a fraction of its time."""

ASKED_OF = 300
"""For more jobs than these it is not asked what 5 USD more would change: of so many, nothing."""

_FATES = (p.Place, p.Hold, p.GiveUp, p.Park, p.Explain)
Fate = p.Place | p.Hold | p.GiveUp | p.Park | p.Explain


def preview(
    desk: desks.Desk, parts: Sequence[Part], now: Instant, supply: Supply = NO_SUPPLY
) -> Preview:
    """Plan the jobs together with all that waits and runs; change nothing.

    Each part is paid for by its own budget, and shares machines with no other.
    """
    trial = _trial(desk, parts, now, supply)
    made = trial.plan()
    places = Places(trial, made, supply)
    return _Previewing(places, Bindings(places), rented(trial, made)).preview()


def _trial(desk: desks.Desk, parts: Sequence[Part], now: Instant, supply: Supply) -> Trial:
    world = with_this_host(desk, desk.store.world(now))
    jobs: list[Job] = []
    accounts, runs = dict(world.accounts), dict(world.runs)
    for part in parts:
        runs[part.payer] = Run(
            id=part.payer, opened_at=now, user="", folder="", budget=part.budget, night=part.night
        )
        jobs += _as_jobs(part, len(jobs), now)
        accounts[part.payer] = Account(
            payer=part.payer, limit=part.budget, soft=desk.settings.budget_soft_share
        )
    world = replace(
        world,
        jobs={**world.jobs, **{job.id: job for job in jobs}},
        accounts=accounts,
        runs=runs,
        offers=supply.offers,
        seed=desk.settings.seed,
    )
    settings = desk.settings
    world = sized(world, settings.auto_size)
    policies = desks.policies(settings, desk.clock)
    quicker = QUICKER.get(settings.rent)
    quick = policies
    if quicker is not None and supply.offers:
        quick = desks.policies(settings.but(rent=quicker), desk.clock)
    return Trial(world, tuple(world.jobs[job.id] for job in jobs), tuple(parts), policies, quick)


def _as_jobs(part: Part, before: int, now: Instant) -> list[Job]:
    """Return jobs as they would be stored; `before`: how many those of other files are."""
    ids: dict[str, list[str]] = {}
    for number, spec in enumerate(part.specs, before):
        ids.setdefault(spec.name, []).append(f"{spec.name}#{number}")
    return [
        Job(
            id=f"{spec.name}#{number}",
            run=part.payer,
            # Secrets are sealed at submit; a place that cannot take them yet is not a refusal.
            spec=spec.but(secrets=()),
            submitted_at=now + number * FILE_ORDER_S,
            after=tuple(other for name in spec.after for other in ids.get(name, ())),
        )
        for number, spec in enumerate(part.specs, before)
    ]


@dataclass(frozen=True, slots=True)
class _Previewing:
    """Puts together what a plan comes to for some jobs."""

    places: Places
    bindings: Bindings
    rented: Rented

    def preview(self) -> Preview:
        trial, made, supply = self.places.trial, self.places.made, self.places.supply
        jobs, machines = self._jobs(trial, made), self.rented.machines
        budgets = [part.budget for part in trial.parts if part.budget is not None]
        lacking = is_lacking(trial, made)
        asks = lacking and bool(budgets) and len(jobs) <= ASKED_OF
        return Preview(
            jobs=jobs,
            gives_way=tuple(
                step.job
                for step in made.steps
                if isinstance(step, p.AskToStop) and step.wish == "give-way"
            ),
            machines=machines,
            cost_usd=MicroUsd(sum(one.cost for one in machines)),
            bound_usd=self.rented.bound,
            gap=self.rented.gap,
            one_each_usd=self.rented.one_each,
            worst_case_usd=MicroUsd(sum(one.worst for one in machines)),
            budget_usd=MicroUsd(sum(budgets)) if budgets else None,
            more=more_of(trial, made) if asks else None,
            least_budget_usd=least_budgets(trial, made) if lacking else None,
            later=later(self.places, jobs),
            can_launch=supply.can_launch or not machines,
            is_simpler=self.rented.is_simpler,
            prices=supply.notes,
            made_at=trial.world.now,
        )

    def _jobs(self, trial: Trial, made: p.Plan) -> tuple[PreviewJob, ...]:
        decisions = {decision.job: decision for decision in made.decisions}
        fates = {step.job: step for step in made.steps if isinstance(step, _FATES)}
        return tuple(
            self._seated(job, seat)
            if (seat := self.rented.seats.get(job.id)) is not None
            else self._settled(job, fates[job.id], decisions.get(job.id))
            for job in trial.jobs
        )

    def _line(self, job: Job, state: State, reason: Reason) -> PreviewJob:
        return PreviewJob(
            name=job.spec.name,
            project=job.spec.project,
            state=state,
            node=None,
            devices=(),
            reason=reason,
            expected=self.places.trial.durations.of(job.spec),
            runner_up=None,
            sized=self._sized(job),
        )

    def _sized(self, job: Job) -> str:
        known = self.places.trial.world.peaks.get(job.family, ())
        found = None if job.sized is None else size(job.spec.resources, known)
        return "" if found is None else found.says

    def _seated(self, job: Job, seat: Seated) -> PreviewJob:
        return self._line(job, "rented", seat.reason).but(
            **seat.fields,
            runner_up=runner_up(self.places, job, seat),
            binding=self.bindings.of(job, seat),
            **switch_fields(self.places, job, seat.offer),
        )

    def _settled(self, job: Job, fate: Fate, decision: p.Decision | None) -> PreviewJob:
        if isinstance(fate, p.Place):
            return self._here(job, fate, decision)
        state, reason = self._left(job, fate)
        held_until = fate.until if isinstance(fate, p.Hold) else None
        return self._line(job, state, reason).but(
            held_until=held_until,
            binding=self.bindings.not_here(job) if state == "over-budget" else None,
            runner_up=None if state == "impossible" else instead(self.places, job),
        )

    def _here(self, job: Job, fate: p.Place, decision: p.Decision | None) -> PreviewJob:
        place, trial = fate.placement, self.places.trial
        now = trial.world.now
        ends_at = now + run_s(job, place, trial.empty[place.node], trial.durations)
        second = instead(self.places, job)
        if decision is not None and decision.rivals:
            rival = decision.rivals[0]
            second = Rival(where=rival.placement.node, says=f"scores {rival.total:.3f}")
        late = late_here(self.places, job, place.node, ends_at)
        return self._line(job, "runs-now" if late is None else "too-late", late or fate.reason).but(
            node=place.node,
            devices=place.devices,
            runner_up=second,
            starts_at=now,
            ends_at=ends_at,
            cost=NOTHING,
        )

    def _named(self, job: Job, says: str) -> str:
        """Return a sentence in which the cheapest offer for a job is called what people call it."""
        option = next(self.places.options(job), None)
        return says if option is None else says.replace(option.offer.id, called(option.offer))

    def _late(self, job: Job, code: Code) -> Reason | None:
        """Return why nothing would be in time; None: something would."""
        late = too_late(self.places, job)
        return beyond_means(self.places, job) if late is None and code in FOR_MONEY else late

    def _left(self, job: Job, fate: Fate) -> tuple[State, Reason]:
        """Return what becomes of a job that gets no place, and why."""
        reason, code = fate.reason, fate.reason.code
        late = self._late(job, code)
        if late is not None:
            return "too-late", late
        if code is Code.TOO_LATE:
            long = too_long(self.places, job)
            if long is not None:
                return "impossible", long
        if code is Code.GANG:
            return "impossible", reason
        if code in (Code.DEADLINE_PASSED, Code.TOO_LATE):
            return "too-late", earliest(self.places, job) or reason
        if isinstance(fate, p.Hold) or self.places.homes(job):
            return "waits", reason
        if code in FOR_MONEY:
            told = project_lacks(self.places, job) or reason
            says = "; ".join(filter(None, (told.says, what_fits(self.places, job))))
            return "over-budget", told.but(says=self._named(job, says))
        if code is Code.WAITS_FOR_JOB:
            return fate_later(self.places, job, reason)
        if isinstance(fate, p.Explain) and code is not Code.NOTHING_FITS:
            return "waits", reason
        return "impossible", missing(self.places, job, reason)
