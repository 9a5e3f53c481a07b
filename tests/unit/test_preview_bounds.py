"""Why a dry run leaves jobs out: money, time, what nothing has; what binds; what more would buy."""

import re
from pathlib import Path

import pytest
from makers import a_spec, wants
from previewing import (
    FOUR,
    HOUR,
    L4,
    L4_SPOT,
    NOW,
    T4,
    a_desk,
    a_gpu_job,
    gpu_offer,
    looked,
    needing,
    only,
)

from cloudwhale.control.desk import Desk
from cloudwhale.model import event as e
from cloudwhale.model.budget import Budget
from cloudwhale.model.job import GpuRequest, JobSpec
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code
from cloudwhale.model.units import MicroUsd, micro_usd, usd
from cloudwhale.planning.allowing import Limits

LACKS = (Code.OVER_BUDGET, Code.SOFT_LINE, Code.WOULD_STRAND_STARTED_WORK)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


# -- money -----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["one-each", "greedy", "whale-rent"])
@pytest.mark.parametrize("budget", ["0.10", "1", "3", "4.50", "7"])
def test_a_budget_that_would_do_does(tmp_path: Path, policy: str, budget: str) -> None:
    desk = a_desk(tmp_path, rent=policy)
    specs = [a_gpu_job(f"j{n}", duration_s=HOUR * (n + 1) / 2) for n in range(4)]
    poor = looked(desk, *specs, budget=budget, offers=[L4])
    assert any(job.reason.code in LACKS for job in poor.jobs)
    assert poor.least_budget_usd is not None
    rich = looked(desk, *specs, budget=str(usd(poor.least_budget_usd)), offers=[L4])
    assert {job.state for job in rich.jobs} == {"rented"}
    assert rich.least_budget_usd is None and rich.more is None
    assert rich.worst_case_usd <= poor.least_budget_usd


def test_no_plan_sets_aside_more_than_its_budget(desk: Desk) -> None:
    for cents in (50, 100, 199, 300, 450, 900):
        specs = [a_gpu_job(f"j{n}") for n in range(5)]
        made = looked(desk, *specs, budget=str(cents / 100), offers=[L4])
        assert made.worst_case_usd <= cents * 10_000


def test_another_five_dollars_are_said_to_let_more_jobs_run(desk: Desk) -> None:
    specs = [a_gpu_job(f"j{n}") for n in range(4)]
    made = looked(desk, *specs, budget="2", offers=[L4])
    now = sum(job.state == "rented" for job in made.jobs)
    assert made.more is not None and made.more.added == micro_usd(5)
    then = looked(desk, *specs, budget="7", offers=[L4])
    assert made.more.jobs == sum(job.state == "rented" for job in then.jobs) - now > 0
    assert made.more.cost == then.cost_usd - made.cost_usd


def test_five_dollars_that_change_nothing_are_said_to_change_nothing(desk: Desk) -> None:
    made = looked(desk, a_gpu_job(duration_s=200 * HOUR), budget="2", offers=[L4])
    assert made.more is not None
    assert (made.more.jobs, made.more.cost) == (0, 0)


def test_a_job_whose_own_budget_is_too_small_is_helped_by_no_other(desk: Desk) -> None:
    made = looked(desk, a_gpu_job(budget=micro_usd("0.01")), offers=[L4])
    assert only(made).state == "over-budget"
    assert made.least_budget_usd is None


def test_a_month_that_others_of_the_project_use_up_is_not_said_to_be_the_run_s_money(
    desk: Desk,
) -> None:
    budget = Budget(project="nlp", month=micro_usd("2"), set_at=NOW)
    desk.store.append([e.BudgetSet(at=NOW, budget=budget)])
    made = looked(desk, *(a_gpu_job(f"j{n}", project="nlp") for n in range(2)), offers=[L4])
    assert [job.state for job in made.jobs] == ["rented", "over-budget"]
    reason = made.jobs[1].reason
    assert "of the 2.00 USD of project nlp in 2026-09, and it could cost 1.4" in reason.says
    assert reason.change == "raise the budget of project nlp in 2026-09"


def test_what_would_do_is_called_what_people_call_it(desk: Desk) -> None:
    says = only(looked(desk, a_gpu_job(), budget="0.1", offers=[L4])).reason.says
    assert says.startswith("aws l4 on-demand in east would do, but could cost ")


# -- time ------------------------------------------------------------------------------------


def test_a_deadline_that_nothing_meets_names_the_earliest_end_and_where(desk: Desk) -> None:
    job = only(looked(desk, a_gpu_job(deadline=NOW + HOUR), offers=[T4, L4]))
    assert (job.state, job.reason.code) == ("too-late", Code.TOO_LATE)
    assert "on aws l4 on-demand in east" in job.reason.says
    assert "1 min 40 s after its deadline" in job.reason.says


def test_with_a_deadline_so_much_later_it_is_met(desk: Desk) -> None:
    job = only(looked(desk, a_gpu_job(deadline=NOW + HOUR + 101), offers=[T4, L4]))
    assert (job.state, job.offer) == ("rented", "l4")


@pytest.mark.parametrize("hours", [0.02, 5.01, 40.3])
def test_a_deadline_as_much_later_as_is_said_is_met(desk: Desk, hours: float) -> None:
    spec = a_gpu_job(duration_s=hours * HOUR, deadline=NOW + 7.3)
    says = only(looked(desk, spec, offers=[L4])).reason.change
    found = re.fullmatch(r"a deadline (.*) later, or a shorter .*", says)
    assert found is not None
    units = {"s": 1.0, "min": 60.0, "h": HOUR, "d": 24 * HOUR}
    words = found[1].split()
    later_s = sum(float(n) * units[unit] for n, unit in zip(words[::2], words[1::2], strict=True))
    then = spec.but(deadline=NOW + 7.3 + later_s)
    assert only(looked(desk, then, budget="500", offers=[L4])).offer == "l4"


def test_what_comes_after_others_is_done_after_them_at_the_earliest(desk: Desk) -> None:
    first = a_gpu_job("first", duration_s=3 * HOUR)
    then = a_gpu_job("then", after=("first",), deadline=NOW + 2 * HOUR)
    made = looked(desk, first, then, offers=[L4])
    assert [job.state for job in made.jobs] == ["rented", "too-late"]
    assert "on aws l4 on-demand in east, once first is done" in made.jobs[1].reason.says
    assert "2 h 02 min after its deadline" in made.jobs[1].reason.says


def test_whoever_comes_after_a_job_of_unknown_length_is_not_refused_for_it(desk: Desk) -> None:
    first = a_spec("first")
    then = a_spec("then", after=("first",), deadline=NOW + 600, duration_s=300.0)
    assert [job.state for job in looked(desk, first, then).jobs] == ["runs-now", "waits"]


@pytest.mark.parametrize("deadline", [None, NOW + 1000 * HOUR])
def test_a_job_longer_than_any_lease_is_not_said_to_be_late(
    desk: Desk, deadline: float | None
) -> None:
    spec = a_gpu_job(duration_s=400 * HOUR, deadline=deadline)
    job = only(looked(desk, spec, budget="5000", offers=[L4]))
    assert (job.state, job.runner_up) == ("impossible", None)
    assert "no machine is rented for longer than 14 d" in job.reason.says


def test_a_deadline_missed_by_a_guess_names_the_earliest_end_too(desk: Desk) -> None:
    job = only(looked(desk, a_gpu_job(duration_s=None, deadline=NOW + 60), offers=[L4]))
    assert (job.state, job.expected.source) == ("too-late", "nothing")
    assert "the earliest that it could be done is" in job.reason.says


def test_a_deadline_that_this_host_cannot_meet_is_too_late_though_it_fits_here(
    desk: Desk,
) -> None:
    slow = a_spec(duration_s=HOUR, deadline=NOW + 60)
    job = only(looked(desk, slow, offers=[]))
    assert job.state == "too-late" and "on desk" in job.reason.says


def test_a_length_that_is_guessed_refuses_nothing(desk: Desk) -> None:
    job = only(looked(desk, a_spec(deadline=NOW + 60), offers=[]))
    assert job.state == "runs-now" and job.expected.source == "nothing"


def test_what_runs_here_and_too_late_is_told_what_would_be_in_time(tmp_path: Path) -> None:
    desk = a_desk(tmp_path, devices=("1x T4 16GB",))
    spec = a_gpu_job(deadline=NOW + 1.2 * HOUR)
    job = only(looked(desk, spec, offers=[L4]))
    assert (job.state, job.node) == ("too-late", "desk")
    assert "after its deadline, on desk; aws l4 on-demand in east would be in time" in (
        job.reason.says
    )
    assert only(looked(desk, spec.but(deadline=NOW + 9 * HOUR), offers=[L4])).state == "runs-now"


def test_a_budget_goes_before_a_deadline(desk: Desk) -> None:
    slow, fast = gpu_offer("slow", "0.2", "T4"), gpu_offer("fast", "30")
    spec = a_gpu_job(deadline=NOW + 1.2 * HOUR)
    job = only(looked(desk, spec, budget="5", offers=[slow, fast]))
    assert (job.state, job.reason.code) == ("too-late", Code.TOO_LATE)
    assert "aws fast on-demand in east is the cheapest that would be in time" in job.reason.says
    assert only(looked(desk, spec, budget="500", offers=[slow, fast])).offer == "fast"


def test_where_no_machine_at_all_is_paid_for_it_is_the_budget(desk: Desk) -> None:
    spec = a_gpu_job(deadline=NOW + 1.2 * HOUR)
    assert only(looked(desk, spec, budget="0.1", offers=[L4])).state == "over-budget"


@pytest.mark.parametrize("policy", ["one-each", "whale-rent"])
def test_a_budget_said_to_be_enough_is_the_least_but_for_cents(tmp_path: Path, policy: str) -> None:
    desk = a_desk(tmp_path, rent=policy)
    specs = [a_gpu_job(f"j{n}", duration_s=HOUR * (n + 1) / 2) for n in range(3)]
    least = looked(desk, *specs, budget="0.5", offers=[L4]).least_budget_usd
    assert least is not None
    less = looked(desk, *specs, budget=str(usd(MicroUsd(least - 30_000))), offers=[L4])
    assert any(job.state == "over-budget" for job in less.jobs)


def test_a_cheaper_machine_that_a_budget_keeps_out_is_said_to_lose_for_it(desk: Desk) -> None:
    # on demand it costs 1.03 USD, 1.37 at worst; on spot 0.41 USD, and 2.74 at worst
    capped = L4_SPOT.but(cap_usd_h=micro_usd("2"))
    job = only(looked(desk, a_gpu_job(), budget="2.5", offers=[L4, capped]))
    assert job.offer == "l4" and job.runner_up is not None and job.binding is not None
    assert re.search(r"USD less, but \d\.\d\d at worst", job.runner_up.says)
    assert job.binding.code == "budget"
    assert "the budget rules out aws l4s spot in east" in job.binding.says
    assert only(looked(desk, a_gpu_job(), budget="5", offers=[L4, capped])).offer == "l4s"


# -- after others ----------------------------------------------------------------------------


def test_what_comes_later_and_fits_nothing_is_impossible_now(desk: Desk) -> None:
    then = a_gpu_job("then", count=9, after=("first",))
    made = looked(desk, a_spec("first", duration_s=60.0), then, offers=[FOUR])
    assert [job.state for job in made.jobs] == ["runs-now", "impossible"]
    assert "needs 9 GPUs on one machine, it has 4" in made.jobs[1].reason.says


@pytest.mark.parametrize("budget", [None, "0.10"])
def test_what_comes_later_and_no_money_reaches_for_is_over_budget_now(
    desk: Desk, budget: str | None
) -> None:
    then = a_gpu_job("then", after=("first",))
    made = looked(desk, a_spec("first", duration_s=60.0), then, budget=budget, offers=[L4])
    assert [job.state for job in made.jobs] == ["runs-now", "over-budget"]


def test_what_is_rented_for_later_is_said_not_to_be_in_the_sums(desk: Desk) -> None:
    then = [a_gpu_job(name, after=("first",)) for name in "ab"]
    here = a_spec("here", after=("first",))
    made = looked(desk, a_gpu_job("first"), *then, here, offers=[L4])
    rival = made.jobs[1].runner_up
    assert made.later is not None and made.later.jobs == 2
    assert rival is not None and rival.cost is not None and made.later.cost == 2 * rival.cost
    assert looked(desk, a_gpu_job("first"), offers=[L4]).later is None


# -- what nothing has ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "lacks"),
    [
        (a_gpu_job(count=9), "four on-demand in east, does not do: needs 9 GPUs on one machine, "
         "it has 4: 5 short"),
        (a_gpu_job(resources=needing(80)), "needs 80 GiB on each GPU, it has 24: 56 short"),
        (a_gpu_job(gpu={"models": ("H100-80GB",)}), "needs H100-80GB, it has L4"),
        (a_gpu_job(resources=wants(cpu=100, gpu=GpuRequest(count=1))), "needs 100 CPUs, it has 32"),
        (a_gpu_job(resources=needing(24, memory_gib=500.0)),
         "needs 500 GiB of memory, it has 128: 372 short"),
        (a_gpu_job(resources=needing(24, disk_gib=900.0)), "needs 900 GiB of disk, it has 200"),
        (a_gpu_job(market="spot"), "`market: spot` keeps out aws l4 on-demand in east, which would "
         "do for 1.00 USD an hour"),
    ],
)  # fmt: skip
def test_what_nothing_fits_is_told_of_the_nearest_offer_and_what_it_lacks(
    desk: Desk, spec: JobSpec, lacks: str
) -> None:
    job = only(looked(desk, spec, offers=[L4, FOUR]))
    assert job.state == "impossible"
    assert lacks in job.reason.says


def test_of_offers_that_lack_as_much_the_cheapest_is_the_nearest(desk: Desk) -> None:
    job = only(looked(desk, a_gpu_job(gpu={"models": ("H100-80GB",)}), offers=[FOUR, L4]))
    assert "the nearest that could be rented, aws l4 on-demand in east" in job.reason.says


def test_a_market_that_rules_out_renting_is_named_with_what_would_do(desk: Desk) -> None:
    job = only(looked(desk, a_gpu_job(market="local"), offers=[L4]))
    assert "`market: local` keeps out aws l4 on-demand in east, which would do" in job.reason.says
    assert job.reason.change == "`market: auto` instead"


def test_a_gang_is_priced_with_all_its_machines(desk: Desk) -> None:
    found = looked(desk, a_gpu_job(nodes=2))
    job = only(found)
    assert job.state == "rented" and len(job.others) == 1 and len(found.machines) == 2
    assert job.cost == found.cost_usd == sum(one.cost for one in found.machines)
    assert "at once 2 of them" in job.reason.says


def test_a_gang_that_can_never_be_whole_is_told_how_many_can_be_had(desk: Desk) -> None:
    few = L4.but(quota="l4", quota_units=1.0, quota_left=3.0)
    job = only(looked(desk, a_gpu_job(nodes=4), offers=[few]))
    assert (job.state, job.reason.code) == ("impossible", Code.GANG)
    assert "of none that suits it more than 3 can be had at once" in job.reason.says
    assert job.reason.change == "a larger quota, or `nodes: 3`"


@pytest.mark.parametrize(
    ("setting", "limits"),
    [
        ("never", Limits(never=("l4",))),
        ("regions", Limits(regions=("west",))),
        ("max_price_usd_h", Limits(max_price_usd_h=micro_usd("0.5"))),
    ],
)
def test_a_setting_that_keeps_the_only_offer_out_is_named(
    desk: Desk, setting: str, limits: Limits
) -> None:
    job = only(looked(desk, a_gpu_job(), offers=[], barred=(L4,), limits=limits))
    assert job.state == "impossible"
    assert f"`{setting}` keeps out aws l4 on-demand in east, which would do" in job.reason.says
    assert f"`{setting}`" in job.reason.change


def test_a_setting_that_keeps_out_what_would_do_is_named_beside_the_others(desk: Desk) -> None:
    small = gpu_offer("small", "0.1", "T4")
    made = looked(
        desk, a_gpu_job(resources=needing(24)), offers=[small], barred=(L4,),
        limits=Limits(never=("l4",)),
    )  # fmt: skip
    assert "`never` keeps out aws l4 on-demand in east, which would do" in only(made).reason.says


# -- what binds ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "offers", "code", "saves"),
    [
        (a_gpu_job(market="on-demand"), [L4, L4_SPOT], "market", "0.6"),
        (a_gpu_job(resources=needing(24)), [L4, gpu_offer("t", "0.1", "T4")], "gpu-memory", "0.8"),
        (a_gpu_job(gpu={"models": ("L4",)}), [L4, gpu_offer("t", "0.1", "T4")], "no-such-gpu",
         "0.8"),
        (a_gpu_job(count=4), [FOUR, gpu_offer("two", "2", count=2)], "gpu-count", "2"),
        (a_gpu_job(resources=wants(cpu=20, gpu=GpuRequest(count=1))), [L4, FOUR], "cpu", "3"),
        (a_gpu_job(deadline=NOW + HOUR + 200), [L4, gpu_offer("t", "0.1", "T4")], "deadline",
         "0.8"),
    ],
)  # fmt: skip
def test_the_constraint_without_which_it_would_cost_least_is_named(
    desk: Desk, spec: JobSpec, offers: list[Offer], code: str, saves: str
) -> None:
    binding = only(looked(desk, spec, offers=offers)).binding
    assert binding is not None and binding.code == code
    assert binding.saves is not None
    # boots are money too, and what a slower GPU takes
    assert binding.saves == pytest.approx(float(saves) * 1e6, rel=0.15)


def test_a_setting_binds_when_it_keeps_out_the_cheaper(desk: Desk) -> None:
    made = looked(desk, a_gpu_job(), offers=[FOUR], barred=(L4,), limits=Limits(regions=("west",)))
    binding = only(made).binding
    assert binding is not None and binding.code == "regions"
    assert "`regions` keeps out aws l4" in binding.says


def test_where_nothing_cheaper_is_forbidden_it_is_what_this_host_lacks(desk: Desk) -> None:
    binding = only(looked(desk, a_gpu_job(), offers=[L4])).binding
    assert binding is not None and binding.code == "no-such-gpu"
    assert "desk has no GPU" in binding.says


def test_what_could_run_here_later_is_bound_by_the_value_of_time(desk: Desk) -> None:
    two = [a_spec(name, resources=wants(cpu=2), duration_s=10 * HOUR) for name in "ab"]
    made = looked(desk, *two, offers=[gpu_offer("cpu", "0.1")])
    (rented,) = [job for job in made.jobs if job.state == "rented"]
    assert rented.binding is not None and rented.binding.code == "value-of-time"


def test_money_is_never_negative(desk: Desk) -> None:
    made = looked(desk, *(a_gpu_job(f"j{n}") for n in range(5)), budget="3")
    figures = [made.cost_usd, made.worst_case_usd, *(job.cost or 0 for job in made.jobs)]
    assert all(figure >= MicroUsd(0) for figure in figures)
