"""A dry run: owned machines first, then what is rented, for whom, when, and what that costs."""

from pathlib import Path

import pytest
from makers import a_spec, wants
from previewing import (
    BIG,
    FOUR,
    HOUR,
    L4,
    NOW,
    OFFERS,
    T4,
    a_desk,
    a_gpu_job,
    gpu_offer,
    looked,
    needing,
    only,
)

from cloudwhale.control.desk import Desk
from cloudwhale.control.preview import preview
from cloudwhale.control.supply import Supply
from cloudwhale.control.trying import Part
from cloudwhale.model.units import micro_usd


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


def test_what_fits_here_is_not_rented_for(desk: Desk) -> None:
    made = looked(desk, a_spec("small", duration_s=60.0))
    job = only(made)
    assert (job.state, job.node, job.cost) == ("runs-now", "desk", 0)
    assert (job.starts_at, job.ends_at) == (NOW, NOW + 60.0)
    assert made.machines == () and made.cost_usd == made.worst_case_usd == 0


def test_what_runs_here_says_what_a_machine_would_have_cost(desk: Desk) -> None:
    rival = only(looked(desk, a_spec("small", duration_s=HOUR))).runner_up
    assert rival is not None and rival.offer == "l4s"
    assert rival.cost is not None and rival.cost > micro_usd("0.4")


def test_what_nothing_here_runs_is_rented_for(desk: Desk) -> None:
    made = looked(desk, a_gpu_job(market="on-demand", resources=needing(24)), offers=[L4])
    job, (machine,) = only(made), made.machines
    assert (job.state, job.machine, job.offer, job.node) == ("rented", "m1", "l4", None)
    assert (job.starts_at, job.ends_at) == (NOW + 100.0, NOW + 100.0 + HOUR)
    assert (machine.launched_at, machine.ready_at) == (NOW, NOW + 100.0)
    assert machine.ends_at == job.ends_at
    assert machine.cost == pytest.approx(1e6 * 3700 / 3600, abs=2)
    assert made.cost_usd == machine.cost == job.cost
    assert made.worst_case_usd == machine.worst == job.worst
    assert machine.worst > machine.cost
    assert made.budget_usd == micro_usd(50)


def test_the_parts_of_those_that_share_a_machine_add_up_to_it(tmp_path: Path) -> None:
    desk = a_desk(tmp_path, rent="greedy")
    half = {"share": 0.5}
    specs = [a_gpu_job(name, gpu=half, duration_s=HOUR * 2) for name in ("a", "b")]
    made = looked(desk, *specs, offers=[L4])
    (machine,) = made.machines
    assert sum(job.cost or 0 for job in made.jobs) == machine.cost
    assert sum(job.worst or 0 for job in made.jobs) == machine.worst
    assert [job.beside for job in made.jobs] == [("b",), ("a",)]
    assert made.one_each_usd is not None and made.one_each_usd > made.cost_usd


def test_without_a_budget_nothing_is_rented_and_a_budget_that_would_do_is_named(
    desk: Desk,
) -> None:
    made = looked(desk, a_gpu_job(), budget=None)
    assert only(made).state == "over-budget"
    assert made.budget_usd is None and made.machines == ()
    assert made.least_budget_usd is not None and made.least_budget_usd > 0


def test_nothing_is_said_of_prices_where_nobody_asked(desk: Desk) -> None:
    made = preview(desk, [Part([a_spec(duration_s=60.0)], micro_usd(5))], NOW)
    assert made.prices == () and only(made).runner_up is None


def test_the_files_of_two_runs_share_no_machine(tmp_path: Path) -> None:
    desk = a_desk(tmp_path, rent="greedy")
    half = a_gpu_job(gpu={"share": 0.5})
    parts = [Part([half], micro_usd(9), "one"), Part([half], micro_usd(9), "two")]
    made = preview(desk, parts, NOW, Supply(offers=(L4,)))
    assert [job.machine for job in made.jobs] == ["m1", "m2"]
    assert made.budget_usd == micro_usd(18)


def test_a_budget_of_one_file_pays_nothing_of_another(desk: Desk) -> None:
    parts = [Part([a_gpu_job("a")], micro_usd(9), "one"), Part([a_gpu_job("b")], None, "two")]
    made = preview(desk, parts, NOW, Supply(offers=(L4,)))
    assert [job.state for job in made.jobs] == ["rented", "over-budget"]


def test_what_waits_for_another_is_not_rented_for_yet(desk: Desk) -> None:
    made = looked(desk, a_gpu_job("a"), a_gpu_job("b", after=("a",)))
    assert [job.state for job in made.jobs] == ["rented", "waits"]


def test_a_job_that_could_wait_here_and_is_not_rented_for_waits(desk: Desk) -> None:
    two = [a_spec(name, resources=wants(cpu=2), duration_s=30.0) for name in "ab"]
    made = looked(desk, *two)
    assert [job.state for job in made.jobs] == ["runs-now", "waits"]
    assert "to rent costs" in made.jobs[1].reason.says
    assert made.least_budget_usd is None


def test_two_hundred_jobs_that_nothing_here_runs_are_all_rented_for(desk: Desk) -> None:
    made = looked(desk, *(a_gpu_job(f"j{n}") for n in range(200)), budget="5000")
    assert {job.state for job in made.jobs} == {"rented"}


def test_a_dry_run_stores_nothing(desk: Desk) -> None:
    before = desk.store.version()
    looked(desk, a_gpu_job(), budget="1")
    assert desk.store.version() == before


def test_the_same_world_gives_the_same_preview(desk: Desk) -> None:
    specs = [a_gpu_job("a"), a_gpu_job("b", count=2), a_spec("c", duration_s=60.0)]
    assert looked(desk, *specs) == looked(desk, *specs, offers=list(reversed(OFFERS)))


# -- what came second ------------------------------------------------------------------------


def test_the_runner_up_says_how_much_dearer_and_later_it_is(desk: Desk) -> None:
    slow = gpu_offer("slow", "1.2", "T4")
    job = only(looked(desk, a_gpu_job(), offers=[L4, slow]))
    assert job.offer == "l4" and job.runner_up is not None and job.cost is not None
    assert job.runner_up.offer == "slow"
    assert job.runner_up.cost is not None and job.runner_up.cost > job.cost
    assert "more" in job.runner_up.says and "later" in job.runner_up.says


def test_a_runner_up_that_would_be_too_late_is_none(desk: Desk) -> None:
    slow = gpu_offer("slow", "1.2", "T4")
    in_time = a_gpu_job(deadline=NOW + HOUR + 200)
    assert only(looked(desk, in_time, offers=[L4, slow])).runner_up is None


def test_a_job_for_which_nothing_else_does_has_no_runner_up(desk: Desk) -> None:
    assert only(looked(desk, a_gpu_job(), offers=[L4])).runner_up is None


def test_a_machine_of_ones_own_came_second_to_a_shared_one(tmp_path: Path) -> None:
    desk = a_desk(tmp_path, rent="greedy")
    specs = [a_gpu_job(name, gpu={"share": 0.5}) for name in ("a", "b")]
    made = looked(desk, *specs, offers=[L4])
    for job in made.jobs:
        assert job.runner_up is not None and job.runner_up.offer == "l4"
        assert "alone" in job.runner_up.says


# -- how good it is --------------------------------------------------------------------------


def test_a_plan_without_a_bound_claims_none(desk: Desk) -> None:
    made = looked(desk, a_gpu_job())
    assert (made.bound_usd, made.gap) == (None, None)
    assert made.one_each_usd == made.cost_usd


def test_nothing_rented_is_as_cheap_as_can_be(desk: Desk) -> None:
    made = looked(desk, a_spec(duration_s=60.0))
    assert (made.bound_usd, made.gap, made.one_each_usd) == (0, 0.0, 0)


def test_a_plan_whose_machines_nobody_can_launch_says_so(desk: Desk) -> None:
    assert not looked(desk, a_gpu_job()).can_launch
    assert looked(desk, a_gpu_job(), can_launch=True).can_launch
    assert looked(desk, a_spec(duration_s=60.0)).can_launch


def test_large_and_small_jobs_get_machines_of_their_size(desk: Desk) -> None:
    specs = [a_gpu_job("eight", count=8), a_gpu_job("four", count=4), a_gpu_job("one")]
    made = looked(desk, *specs, offers=[T4, L4, FOUR, BIG], budget="500")
    assert [job.offer for job in made.jobs] == ["big", "four", "t4"]
