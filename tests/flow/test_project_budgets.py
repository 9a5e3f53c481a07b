"""Budgets of projects from end to end: set aside, split, bounded, free again, month by month."""

from typing import Any

from clouding import (
    a_cloudy_stage,
    account_of,
    adds_up,
    an_offer,
    cloud_of,
    rentals_of,
    settles,
)
from makers import a_job, wants
from staging import jobs_of

from cloudwhale.model import event as e
from cloudwhale.model.budget import Budget
from cloudwhale.model.job import CheckpointRule, JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.world import Account
from cloudwhale.planning.payers import account_name, month_of
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage


def queued(stage: Stage, name: str, project: str, **fields: Any) -> str:
    """Queue one more job of the run."""
    now = stage.scenery.clock.now()
    base: dict[str, Any] = {
        "name": name, "project": project, "resources": wants(cpu=4), "duration_s": 30.0,
        "checkpoint": CheckpointRule(every_s=5.0, grace_s=10.0),
    }  # fmt: skip
    job = a_job(f"{name}-{project}", **(base | fields)).but(submitted_at=now + 5.0)
    stage.scenery.store.append([e.Submitted(at=now, job=job.id, first=job)])
    return job.id


def bounded(stage: Stage, project: str, amount: str | None) -> None:
    now = stage.scenery.clock.now()
    month = None if amount is None else micro_usd(amount)
    budget = Budget(project=project, month=month, set_at=now)
    stage.scenery.store.append([e.BudgetSet(at=now, budget=budget)])


def account(stage: Stage, project: str) -> Account:
    month = month_of(stage.scenery.clock.now())
    found = {one.payer: one for one in stage.scenery.store.accounts()}
    return found[account_name(project, month)]


def played(stage: Stage) -> Stage:
    if stage.controller is None:
        stage.raise_controller()
    assert settles(stage), {job.id: (job.state, job.reason) for job in jobs_of(stage).values()}
    adds_up(stage)
    assert stage.controller is not None and stage.controller.incident == ""
    return stage


def told(stage: Stage, job: str) -> set[Code]:
    events = [one.event for one in stage.scenery.store.events(job)]
    return {event.reason.code for event in events if isinstance(event, e.Waits)}


def test_what_projects_pay_adds_up_to_what_their_run_pays_and_the_cloud_bills() -> None:
    stage = a_cloudy_stage(("quick", "quick"), project="nlp")
    queued(stage, "quick", "vision")
    played(stage)
    nlp, vision = account(stage, "nlp"), account(stage, "vision")
    assert nlp.reserved == vision.reserved == 0
    assert nlp.spent + vision.spent == account_of(stage).spent == cloud_of(stage).bill()
    assert nlp.limit is None and nlp.spent > vision.spent > 0


def test_a_project_whose_money_is_spent_rents_nothing_more_and_others_do() -> None:
    stage = a_cloudy_stage((), budget="10")
    bounded(stage, "nlp", "0.30")
    first = queued(stage, "quick", "nlp")
    other = queued(stage, "quick", "vision")
    stage.raise_controller()
    assert stage.play(lambda: jobs_of(stage)[other].state is JobState.COMPLETED, 600.0)
    assert jobs_of(stage)[first].state is JobState.PENDING
    assert Code.OVER_BUDGET in told(stage, first)
    says = [
        one.event.reason.says + one.event.reason.change
        for one in stage.scenery.store.events(first)
        if isinstance(one.event, e.Waits)
    ]
    assert any("project nlp in 1970-01" in text for text in says)
    bounded(stage, "nlp", "5")
    played(stage)
    assert 0 < account(stage, "nlp").spent <= micro_usd("5")


def test_a_budget_that_is_lifted_lets_the_job_go() -> None:
    stage = a_cloudy_stage((), budget="10")
    bounded(stage, "nlp", "0")
    job = queued(stage, "quick", "nlp")
    stage.raise_controller()
    assert not stage.play(lambda: bool(rentals_of(stage)), 120.0)
    bounded(stage, "nlp", None)
    played(stage)
    assert jobs_of(stage)[job].state is JobState.COMPLETED


def test_a_project_never_has_more_taken_than_its_budget_whatever_comes_of_its_leases() -> None:
    dear = Shelf(an_offer(boot_s=5.0))
    stage = a_cloudy_stage((), (dear,), budget="50")
    bounded(stage, "nlp", "1.2")
    for name in ("quick", "saving", "failing"):
        queued(stage, name, "nlp", duration_s=20.0)
    stage.raise_controller()
    settles(stage, 1500.0)
    taken = spent = reserved = 0
    for one in stage.scenery.store.since(0, 100_000):
        match one.event:
            case e.Reserved(projects=some):
                reserved += sum(some.values())
            case e.Charged(amount=amount, account=of) if of:
                reserved, spent = reserved - amount, spent + amount
            case e.Released(projects=some):
                reserved -= sum(some.values())
            case _:
                continue
        taken = max(taken, reserved + spent)
    assert 0 < taken <= micro_usd("1.2")


def test_a_lease_that_a_project_cannot_lengthen_lands_its_job() -> None:
    stage = a_cloudy_stage((), budget="50")
    job = queued(stage, "saving", "nlp", duration_s=600.0)
    stage.raise_controller()
    running = JobState.RUNNING
    assert stage.play(lambda: jobs_of(stage)[job].state is running, 200.0)
    held = account(stage, "nlp").reserved
    now = stage.scenery.clock.now()
    less = Budget(project="nlp", month=MicroUsd(held), set_at=now)
    stage.scenery.store.append([e.BudgetSet(at=now, budget=less)])
    settles(stage, 2500.0)
    spent = account(stage, "nlp").spent
    assert 0 < spent <= held


def test_a_budget_that_is_raised_while_the_controller_runs_is_rented_with_in_the_next_round() -> (
    None
):
    stage = a_cloudy_stage((), budget="10")
    bounded(stage, "nlp", "0.01")
    job = queued(stage, "quick", "nlp")
    stage.raise_controller()
    assert not stage.play(lambda: bool(rentals_of(stage)), 120.0)
    assert Code.OVER_BUDGET in told(stage, job)
    before, raised_at = stage.controller, stage.scenery.clock.now()
    assert before is not None
    rounds = before.rounds
    bounded(stage, "nlp", "5")
    assert stage.play(lambda: bool(rentals_of(stage)), 5.0)
    assert stage.controller is before and before.rounds == rounds + 1
    [story] = rentals_of(stage).values()
    assert story[0].reserved_at - raised_at <= 5.0
