"""A dry run of a night: what it says of jobs that no night holds."""

from pathlib import Path

import pytest
from previewing import HOUR, L4, NOW, T4, a_desk, a_gpu_job, only

from cloudwhale.control.preview import preview
from cloudwhale.control.previewed import Preview
from cloudwhale.control.supply import Supply
from cloudwhale.control.trying import Part
from cloudwhale.model.job import CheckpointRule, JobSpec
from cloudwhale.model.night import Night
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.shortlist import shortlist

NIGHT = Night(
    name="lab", date="2026-09-21", zone="UTC", unfinished="carry-over",
    opens_at=NOW, closes_at=NOW + 10 * HOUR,
)  # fmt: skip
SAVES = CheckpointRule(every_s=600.0, grace_s=20.0)


def looked(home: Path, policy: str, spec: JobSpec, budget: str = "50") -> Preview:
    part = Part([spec], micro_usd(budget), "the night", NIGHT)
    return preview(a_desk(home, rent=policy), [part], NOW, Supply(offers=shortlist((T4, L4))))


@pytest.mark.parametrize("policy", ["one-each", "greedy", "whale-rent"])
def test_a_part_is_told_as_one_and_costs_no_more_than_its_night(
    tmp_path: Path, policy: str
) -> None:
    made = looked(tmp_path, policy, a_gpu_job(duration_s=30 * HOUR, checkpoint=SAVES))
    job = only(made)
    assert job.state == "rented" and job.binding is not None
    assert job.binding.code == "night" and "the next night of lab goes on" in job.binding.says
    assert job.ends_at is not None and job.ends_at <= NIGHT.closes_at
    assert made.cost_usd <= micro_usd(10) and made.worst_case_usd <= micro_usd(12)


def test_a_budget_that_holds_no_whole_night_buys_a_part_of_one(tmp_path: Path) -> None:
    whole = looked(tmp_path, "one-each", a_gpu_job(duration_s=30 * HOUR, checkpoint=SAVES))
    made = looked(tmp_path, "one-each", a_gpu_job(duration_s=30 * HOUR, checkpoint=SAVES), "4")
    assert only(made).state == "rented" and made.worst_case_usd <= micro_usd(4)
    assert 0 < made.cost_usd < whole.cost_usd


def test_a_job_that_a_night_holds_is_told_as_ever(tmp_path: Path) -> None:
    job = only(looked(tmp_path, "one-each", a_gpu_job(duration_s=5 * HOUR, checkpoint=SAVES)))
    assert job.state == "rented" and (job.binding is None or job.binding.code != "night")


def test_without_a_checkpoint_it_waits_and_is_told_what_it_lacks(tmp_path: Path) -> None:
    job = only(looked(tmp_path, "one-each", a_gpu_job(duration_s=30 * HOUR)))
    assert job.state == "waits" and "`checkpoint`" in job.reason.change
