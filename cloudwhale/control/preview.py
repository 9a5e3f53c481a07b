"""A dry run: what the next round would do with some jobs, without storing or starting anything."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cloudwhale.control import desk as desks
from cloudwhale.control.preview_machines import Rented, rented
from cloudwhale.control.preview_money import least_budgets, more_of
from cloudwhale.control.preview_rivals import Choices
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
from cloudwhale.model.units import NOTHING, Instant, MicroUsd
from cloudwhale.model.world import Account
from cloudwhale.planning.releases import run_s

MONEY = frozenset({Code.OVER_BUDGET, Code.SOFT_LINE, Code.WOULD_STRAND_STARTED_WORK})

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
    choices = Choices(trial, made, supply)
    return _Previewing(trial, made, choices, rented(trial, made)).preview(supply)


def _trial(desk: desks.Desk, parts: Sequence[Part], now: Instant, supply: Supply) -> Trial:
    world = with_this_host(desk, desk.store.world(now))
    jobs: list[Job] = []
    accounts = dict(world.accounts)
    for part in parts:
        jobs += _as_jobs(part, len(jobs), now)
        accounts[part.payer] = Account(
            payer=part.payer, limit=part.budget, soft=desk.settings.budget_soft_share
        )
    world = replace(
        world,
        jobs={**world.jobs, **{job.id: job for job in jobs}},
        accounts=accounts,
        offers=supply.offers,
        seed=desk.settings.seed,
    )
    settings = desk.settings
    policies = desks.policies(settings, desk.clock)
    quicker = QUICKER.get(settings.rent)
    quick = policies
    if quicker is not None:
        quick = desks.policies(settings.but(rent=quicker), desk.clock)
    return Trial(world, tuple(jobs), tuple(parts), policies, quick)


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

    trial: Trial
    made: p.Plan
    choices: Choices
    rented: Rented

    def preview(self, supply: Supply) -> Preview:
        jobs = self._jobs()
        budgets = [part.budget for part in self.trial.parts if part.budget is not None]
        lacking = any(job.reason.code in MONEY for job in jobs)
        few = len(jobs) <= ASKED_OF
        machines = self.rented.machines
        return Preview(
            jobs=jobs,
            gives_way=tuple(
                step.job
                for step in self.made.steps
                if isinstance(step, p.AskToStop) and step.wish == "give-way"
            ),
            machines=machines,
            cost_usd=MicroUsd(sum(one.cost for one in machines)),
            bound_usd=self.rented.bound,
            gap=self.rented.gap,
            one_each_usd=self.rented.one_each,
            worst_case_usd=MicroUsd(sum(one.worst for one in machines)),
            budget_usd=MicroUsd(sum(budgets)) if budgets else None,
            more=more_of(self.trial, self.made) if lacking and budgets and few else None,
            least_budget_usd=least_budgets(self.trial, self.made) if lacking else None,
            can_launch=supply.can_launch or not machines,
            is_simpler=self.rented.is_simpler,
            prices=supply.notes,
            made_at=self.trial.world.now,
        )

    def _jobs(self) -> tuple[PreviewJob, ...]:
        decisions = {decision.job: decision for decision in self.made.decisions}
        fates = {step.job: step for step in self.made.steps if isinstance(step, _FATES)}
        return tuple(
            self._one(job, fates.get(job.id), decisions.get(job.id)) for job in self.trial.jobs
        )

    def _one(self, job: Job, fate: Fate | None, decision: p.Decision | None) -> PreviewJob:
        seat = self.rented.seats.get(job.id)
        reason = fate.reason if fate is not None else None
        if seat is not None:
            reason = seat.reason
        assert reason is not None, "a round says something of every job that is new"
        state = "rented" if seat is not None else self._state(job, fate)
        made = PreviewJob(
            name=job.spec.name,
            project=job.spec.project,
            state=state,
            node=None,
            devices=(),
            reason=reason,
            expected=self.trial.durations.of(job.spec),
            runner_up=None,
        )
        if seat is not None:
            return made.but(
                **seat.fields,
                runner_up=self.choices.runner_up(job, seat),
                binding=self.choices.binding(job, seat),
            )
        if isinstance(fate, p.Place):
            return self._here(made, job, fate, decision)
        held_until = fate.until if isinstance(fate, p.Hold) else None
        too_late = self._too_late(job, state)
        if too_late is not None:
            made = made.but(reason=too_late)
        if state == "impossible" and (miss := self.choices.miss(job)) is not None:
            made = made.but(reason=reason.but(says=f"{reason.says}; {miss}"))
        return made.but(held_until=held_until, runner_up=self.choices.instead(job))

    def _here(
        self, made: PreviewJob, job: Job, fate: p.Place, decision: p.Decision | None
    ) -> PreviewJob:
        place = fate.placement
        free = self.trial.empty[place.node]
        now = self.trial.world.now
        ends_at = now + run_s(job, place, free, self.trial.durations)
        rivals = decision.rivals if decision is not None else ()
        runner_up = self.choices.instead(job)
        if rivals:
            node, total = rivals[0].placement.node, rivals[0].total
            runner_up = Rival(where=node, says=f"scores {total:.3f}")
        here = made.but(
            node=place.node,
            devices=place.devices,
            runner_up=runner_up,
            starts_at=now,
            ends_at=ends_at,
            cost=NOTHING,
        )
        too_late = self._too_late(job, made.state)
        return here if too_late is None else here.but(state="too-late", reason=too_late)

    def _state(self, job: Job, fate: Fate | None) -> State:
        if isinstance(fate, p.Place):
            return "runs-now"
        code = fate.reason.code if fate is not None else None
        if code is Code.DEADLINE_PASSED or self._too_late(job, "waits") is not None:
            return "too-late"
        if isinstance(fate, p.Hold) or job.id in self.choices.at_home:
            return "waits"
        if code in MONEY:
            return "over-budget"
        if code is Code.TOO_LATE:
            return "too-late"
        if isinstance(fate, p.Explain) and code is not Code.NOTHING_FITS:
            return "waits"
        return "impossible"

    def _too_late(self, job: Job, state: State) -> Reason | None:
        """Return why nothing at all could have done a job by its deadline; None: something could.

        Not of one whose length nobody knows: a guess refuses nothing.
        """
        return None if state == "impossible" else self.choices.too_late(job)
