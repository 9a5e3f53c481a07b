"""What a dry run says that a budget holds as it is: taken at its word, it fits."""

import re
from pathlib import Path

import pytest
from previewing import HOUR, L4, a_desk, a_gpu_job, looked, only

from cloudwhale.control.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


@pytest.mark.parametrize("budget", ["0.50", "0.75", "1.10"])
def test_as_much_of_a_job_as_its_budget_is_said_to_hold_it_holds(desk: Desk, budget: str) -> None:
    says = only(
        looked(desk, a_gpu_job(duration_s=6 * HOUR), budget=budget, offers=[L4])
    ).reason.says
    found = re.search(r"as it is, the budget holds a job that runs (.*) there$", says)
    assert found is not None
    units = {"min": 60.0, "s": 1.0}
    words = found[1].split()
    length_s = sum(float(n) * units[unit] for n, unit in zip(words[::2], words[1::2], strict=True))
    shorter = looked(desk, a_gpu_job(duration_s=length_s), budget=budget, offers=[L4])
    assert only(shorter).state == "rented"
    longer = looked(desk, a_gpu_job(duration_s=length_s + 60.0), budget=budget, offers=[L4])
    assert only(longer).state == "over-budget"


def test_a_budget_that_holds_not_even_a_minute_is_said_to_hold_nothing(desk: Desk) -> None:
    says = only(looked(desk, a_gpu_job(), budget="0.01", offers=[L4])).reason.says
    assert "holds" not in says


def test_a_job_that_others_leave_no_money_is_said_to_fit_without_them(desk: Desk) -> None:
    made = looked(desk, *(a_gpu_job(f"j{n}") for n in range(2)), budget="2", offers=[L4])
    assert [job.state for job in made.jobs] == ["rented", "over-budget"]
    assert made.jobs[1].reason.says.endswith("without the jobs that come first, it would fit")
    assert only(looked(desk, a_gpu_job("j1"), budget="2", offers=[L4])).state == "rented"
