"""What a dry run says of deadlines on machines that may be taken away, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest
from previewing import HOUR, L4, L4_SPOT, NOW, a_desk, a_gpu_job, looked, only

from cloudwhale.cli.plan_keys import plan_keys
from cloudwhale.cli.plan_view import plan_sheet
from cloudwhale.control.intake.file import read_jobs
from cloudwhale.model.job import CheckpointRule, JobSpec
from cloudwhale.model.reason import Code
from cloudwhale.model.units import micro_usd, usd
from cloudwhale.reporting.figures import cents, hour
from cloudwhale.spi.errors import DeadlineImpossible

RULE = CheckpointRule(every_s=600.0, grace_s=30.0)
BOTH = (L4, L4_SPOT)
CHANGES = 30.0 + L4.boot_s + 60.0 + 60.0
"""Tick, boot, restore, landing."""


def due_in(hours: float, **of: Any) -> JobSpec:
    """Make a job of an hour with so much time to its deadline."""
    return a_gpu_job(deadline=NOW + hours * HOUR, checkpoint=RULE, **of)


def test_a_plan_says_when_it_switches_at_the_latest_and_for_how_much(tmp_path: Path) -> None:
    spec = due_in(4.0)
    made = looked(a_desk(tmp_path), spec, offers=BOTH)
    job = only(made)
    assert job.state == "rented" and job.offer == "l4s"
    at, worst = job.switches_at, job.switch_worst
    assert at is not None and worst is not None
    assert at == pytest.approx(NOW + 3 * HOUR - CHANGES)
    assert 1.5 < usd(worst) < 2.0  # an hour and a half at 1 USD, boot, landing and stop
    says = f"switches to on-demand at {hour(at, NOW)} at the latest, for up to {cents(worst)} USD"
    assert job.deadline_says == says
    shown = "".join(str(cell) for row in plan_sheet(made, [spec]).rows for cell in row)
    assert says in shown


def test_programs_read_it_too(tmp_path: Path) -> None:
    keys = plan_keys(looked(a_desk(tmp_path), due_in(4.0), offers=BOTH))
    (job,) = keys["jobs"]
    assert job["switches_at"] is not None and job["switch_worst_case_usd"] > 0


@pytest.mark.parametrize("spec", [a_gpu_job(checkpoint=RULE), due_in(4.0, market="on-demand")])
def test_nothing_is_said_where_nothing_switches(tmp_path: Path, spec: JobSpec) -> None:
    job = only(looked(a_desk(tmp_path), spec, offers=BOTH))
    assert (job.switches_at, job.deadline_says) == (None, "")


def test_who_wants_spot_alone_is_told_that_nothing_switches(tmp_path: Path) -> None:
    job = only(looked(a_desk(tmp_path), due_in(4.0, market="spot"), offers=BOTH))
    assert job.state == "rented" and job.switches_at is None
    assert "wants spot alone" in job.deadline_says and "90 %" in job.deadline_says


def test_a_gang_is_told_that_nothing_switches(tmp_path: Path) -> None:
    job = only(looked(a_desk(tmp_path), due_in(4.0, nodes=2), offers=BOTH))
    assert job.state == "rented" and job.switches_at is None
    assert "it is a gang" in job.deadline_says


def test_spot_alone_that_would_risk_its_deadline_is_refused(tmp_path: Path) -> None:
    risky = L4_SPOT.but(hazard_per_h=0.5)
    made = looked(a_desk(tmp_path), due_in(1.2, market="spot"), offers=(L4, risky))
    assert only(made).state == "too-late"
    free = looked(a_desk(tmp_path), due_in(1.2), offers=(L4, risky))
    assert only(free).state == "rented"


def test_a_budget_for_one_of_both_goes_to_on_demand_and_for_none_is_refused(
    tmp_path: Path,
) -> None:
    desk = a_desk(tmp_path)
    assert only(looked(desk, due_in(4.0), offers=BOTH, budget="5")).offer == "l4s"
    assert only(looked(desk, due_in(4.0), offers=BOTH, budget="2.2")).offer == "l4"
    none = only(looked(desk, due_in(4.0), offers=BOTH, budget="1"))
    assert (none.state, none.reason.code) == ("over-budget", Code.OVER_BUDGET)


def test_a_budget_that_only_spot_without_its_switch_would_fit_is_refused_for_the_deadline(
    tmp_path: Path,
) -> None:
    dear = L4.but(price_usd_h=micro_usd(4), cap_usd_h=micro_usd(4))
    desk = a_desk(tmp_path)
    made = looked(desk, due_in(4.0), offers=(dear, L4_SPOT), budget="3")
    job = only(made)
    assert (job.state, job.reason.code) == ("too-late", Code.TOO_LATE)
    assert "that switching to on-demand for its deadline could cost" in job.reason.says
    free = looked(desk, a_gpu_job(checkpoint=RULE), offers=(dear, L4_SPOT), budget="3")
    assert only(free).state == "rented"


def test_a_deadline_that_no_machine_meets_is_refused(tmp_path: Path) -> None:
    job = only(looked(a_desk(tmp_path), due_in(0.9), offers=BOTH))
    assert (job.state, job.reason.code) == ("too-late", Code.TOO_LATE)


def test_a_deadline_in_the_past_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: train\ncommand: python train.py\ndeadline: 2020-01-01T00:00Z\n")
    with pytest.raises(DeadlineImpossible) as caught:
        read_jobs(file, now=NOW)
    assert (caught.value.line, caught.value.column) == (3, 11)
    assert "has passed" in str(caught.value)
