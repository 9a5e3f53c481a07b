"""What could be rented for whom, what is, and why not: one round at a time, without a clock."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from clouding import RENTING, an_offer
from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import GpuRequest, Job, JobState
from cloudwhale.model.node import NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning.checker import check
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.planner import plan
from cloudwhale.planning.renting import quotes, unaffordable
from cloudwhale.planning.stock import Stock
from cloudwhale.planning.tendering import Rented, rentals
from cloudwhale.spi.renting import Choice, Rent, RentalPlan, RentalProblem, Seat
from cloudwhale.spi.waiting import Quote
from cloudwhale_policies.renting.greedy import Greedy
from cloudwhale_policies.renting.one_each import OneEach
from cloudwhale_policies.renting.whale_rent import WhaleRent

OFFER = an_offer()
CHEAP = an_offer("cheap", price_usd_h=micro_usd(1), cap_usd_h=micro_usd(1))
GPU = an_offer(
    "gpu", facts=OFFER.facts.but(devices=(a_device("g-0", "H100-80GB", 80.0),)),
    price_usd_h=micro_usd(5), cap_usd_h=micro_usd(5),
)  # fmt: skip
WHY = Reason(code=Code.BETTER_RENTED, says="it had better not wait")
NO_TIMES = Durations({})


def job(name: str = "j", **fields: Any) -> Job:
    return a_job(name, **{"resources": wants(cpu=4), "duration_s": 3600.0, **fields})


def world(*jobs: Job, offers: tuple[Offer, ...] = (OFFER,), **money: Any) -> World:
    account = Account(payer="run-1", **{"limit": micro_usd(100), **money})
    return a_world(list(jobs) or [job()], offers=offers, accounts={"run-1": account})


def quoting(of: World) -> Mapping[str, Quote]:
    return quotes(of, of.jobs.values(), NO_TIMES, Stock(of.offers, NO_TIMES))


def quoted(of: World) -> dict[str, float]:
    return {name: quote.cost_usd for name, quote in quoting(of).items()}


def asked(of: World, *leaving: Job, rent: Rent | None = None) -> Rented:
    stock = Stock(of.offers, NO_TIMES)
    return rentals(of, [(one, WHY) for one in leaving], rent or OneEach(), NO_TIMES, stock)


def rented(of: World, *leaving: Job) -> list[Rental]:
    return [step.rental for step in asked(of, *leaving).steps]


def lacking(of: World) -> Mapping[str, Reason]:
    return unaffordable(of, of.jobs.values(), NO_TIMES, Stock(of.offers, NO_TIMES))


# -- what it would cost ----------------------------------------------------------------------


def test_a_quote_counts_the_boot_and_says_when_the_job_is_done() -> None:
    of = world()
    (quote,) = quoting(of).values()
    assert quote.done_s == 3620.0
    assert quote.cost_usd == pytest.approx(3.62)
    assert quote.usd_h == 3.6


def test_a_quote_without_boot_step_and_least_is_the_run_time() -> None:
    by_time = OFFER.but(boot_s=0.0, billing_step_s=0.0, billing_least_s=0.0)
    assert quoted(world(job(duration_s=10.0), offers=(by_time,))) == {"j": 0.01}


def test_a_short_job_pays_the_least_and_whole_steps() -> None:
    steps = OFFER.but(boot_s=0.0, billing_step_s=60.0, billing_least_s=600.0)
    assert quoted(world(job(duration_s=10.0), offers=(steps,))) == {"j": 0.6}
    assert quoted(world(job(duration_s=601.0), offers=(steps,))) == {"j": 0.66}


def test_the_cheapest_for_the_job_counts_how_fast_it_is() -> None:
    fast = job(resources=wants(cpu=4, gpus=1), speeds={"H100-80GB": 8.0})
    slow = an_offer(
        "slow", facts=OFFER.facts.but(devices=(a_device("l-0", "L4", 24.0),)),
        price_usd_h=micro_usd(1), cap_usd_h=micro_usd(1),
    )  # fmt: skip
    assert quoted(world(fast, offers=(GPU, slow)))["j"] == pytest.approx(5 * 470 / 3600)


@pytest.mark.parametrize(
    "fields",
    [
        {"resources": wants(cpu=9)},
        {"resources": wants(memory_gib=33.0)},
        {"resources": wants(gpu=GpuRequest(count=1))},
        {"market": "spot"},
        {"market": "local"},
        {"image": "python:3"},
        {"budget": micro_usd(1)},
        {"run": "run-2"},
    ],
)
def test_a_machine_that_does_not_do_is_not_quoted(fields: dict[str, Any]) -> None:
    assert quoted(world(job(**fields))) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"price_usd_h": None},
        {"cap_usd_h": None},
        {"price_usd_h": micro_usd(4)},
    ],
)
def test_an_offer_without_a_bounded_price_is_not_quoted(changes: dict[str, Any]) -> None:
    assert quoted(world(offers=(OFFER.but(**changes),))) == {}


def test_without_money_for_the_whole_lease_there_is_no_quote_or_a_cheaper_one() -> None:
    assert quoted(world(limit=micro_usd(4))) == {}
    assert quoted(world(limit=None)) == {}
    assert quoted(world(limit=micro_usd(10), spent=micro_usd(6))) == {}
    dear = OFFER.but(id="dear", cap_usd_h=micro_usd(50), price_usd_h=micro_usd("0.5"))
    both = world(offers=(dear, CHEAP), limit=micro_usd(4))
    assert quoted(both)["j"] == pytest.approx(3620 / 3600)


def test_past_the_soft_line_nothing_is_quoted() -> None:
    assert quoted(world(spent=micro_usd(89))) != {}
    assert quoted(world(spent=micro_usd(90))) == {}


def test_whom_a_machine_of_ours_will_take_once_its_agent_is_up_is_not_quoted() -> None:
    waking = a_node(cpu=8.0, state=NodeState.EXPECTED)
    of = replace(world(), nodes={"host": waking})
    assert quoted(of) == {}
    assert quoted(replace(of, nodes={"host": waking.but(facts=a_node().facts)})) != {}


def test_a_job_that_has_grown_is_quoted_as_it_is_now() -> None:
    grown = job().but(grown=wants(cpu=4, memory_gib=33.0))
    assert quoted(world(grown)) == {}


def test_who_can_pay_for_nothing_is_told_what_is_lacking() -> None:
    of = world(limit=micro_usd(1))
    told = lacking(of)["j"]
    assert told.code is Code.OVER_BUDGET
    assert "big would do" in told.says and "1.00 USD are left" in told.says
    assert lacking(world()) == {}


# -- what is rented --------------------------------------------------------------------------


def test_each_job_gets_its_cheapest_machine_with_the_worst_case_set_aside() -> None:
    one, two = job("a"), job("b", duration_s=60.0)
    of = world(one, two, offers=(OFFER, CHEAP))
    first, second = rented(of, one, two)
    assert {first.offer, second.offer} == {"cheap"}
    assert (first.jobs, second.jobs) == ({"a": "default"}, {"b": "default"})
    assert first.id != second.id
    needed_s = first.lease.stop_at + 60.0 + 90.0 + 1.0 + 20.0
    assert first.reserved == pytest.approx(needed_s / 3600 * 1e6, abs=1)
    assert first.lease.away_until >= 3620.0


def test_who_comes_first_gets_the_money_first() -> None:
    jobs = [job(name) for name in ("c", "a", "b")]
    of = world(*jobs, limit=micro_usd(12))
    found = asked(of, *jobs)
    assert [list(s.rental.jobs) for s in found.steps] == [["c"], ["a"]]
    assert found.refused["b"].code is Code.OVER_BUDGET


def test_a_choice_that_does_not_do_is_no_rental() -> None:
    class Silly:
        def choose(self, problem: RentalProblem) -> RentalPlan:
            seat = Seat("j", 20.0)
            return RentalPlan((
                Choice("gpu", (seat,), 3620.0, "it is not even offered"),
                Choice("big", (Seat("nobody", 20.0),), 3620.0, "nobody knows it"),
                Choice("big", (), 3620.0, "for nobody"),
                Choice("big", (seat,), 3620.0, "two machines for one", machines=2),
            ))  # fmt: skip

    assert asked(world(), job(), rent=Silly()).steps == ()


def test_started_work_is_finished_before_anything_is_rented_anew() -> None:
    runs = placed(job("old"), "rent-0-1").but(state=JobState.RUNNING, started_at=0.0)
    lease = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)
    old = Rental(
        id="rent-0-1", node="rent-0-1", payer="run-1", offer="big", state=RentalState.READY,
        lease=lease, reserved=micro_usd(2), taken=OFFER, jobs={"old": "default"}, machine="m",
    )  # fmt: skip
    short = job(duration_s=600.0)
    of = replace(
        world(runs, short, limit=micro_usd(7), reserved=micro_usd(2)), rentals={old.id: old}
    )
    found = asked(of, short)
    assert found.refused["j"].code is Code.WOULD_STRAND_STARTED_WORK
    rich = replace(of, accounts={"run-1": of.accounts["run-1"].but(limit=micro_usd(30))})
    assert len(rented(rich, short)) == 1


# -- in a round ------------------------------------------------------------------------------


def test_a_round_sets_the_money_aside_and_tells_the_job() -> None:
    of = world()
    made = plan(of, RENTING)
    (step,) = (step for step in made.steps if isinstance(step, p.Rent))
    assert step.rental.jobs == {"j": "default"}
    assert step.reason.code is Code.RENTED and "3.60 USD an hour" in step.reason.says
    assert check(made, of, RENTING.rules) == ()


def test_without_policies_for_it_nothing_is_rented() -> None:
    of = world()
    for policies in (replace(RENTING, rent=None), replace(RENTING, wait=None)):
        kinds = {step.kind for step in plan(of, policies).steps}
        assert kinds == {"explain"}


def test_what_can_run_nowhere_else_says_what_it_lacks_of_money() -> None:
    made = plan(world(limit=None), RENTING)
    (step,) = (step for step in made.steps if isinstance(step, p.Explain))
    assert step.reason.code is Code.OVER_BUDGET and "has no budget" in step.reason.says


def test_a_house_without_nodes_of_its_own_is_told_of_money_too() -> None:
    made = plan(replace(world(limit=None), nodes={}), RENTING)
    (step,) = (step for step in made.steps if isinstance(step, p.Explain))
    assert step.reason.code is Code.OVER_BUDGET and "has no budget" in step.reason.says


def test_nobody_is_told_of_money_where_nothing_is_offered() -> None:
    made = plan(world(offers=()), RENTING)
    (step,) = (step for step in made.steps if isinstance(step, p.Explain))
    assert step.reason.code is Code.NOTHING_FITS


def test_the_policy_rents_for_those_that_fit_nowhere() -> None:
    small = job("small", resources=wants(cpu=1))
    made = plan(world(small), RENTING)
    assert [step.kind for step in made.steps] == ["place"]


# -- billing steps, and budgets of jobs' own ---------------------------------------------------


@pytest.mark.parametrize(
    "rent", [OneEach(), Greedy(), WhaleRent()], ids=lambda one: repr(type(one))
)
@pytest.mark.parametrize("changes", [{"billing_step_s": 3600.0}, {"billing_least_s": 3600.0}])
def test_who_cannot_pay_for_whole_hours_gets_a_machine_that_is_billed_by_the_second(
    rent: Rent, changes: dict[str, Any]
) -> None:
    hourly = an_offer("hourly", price_usd_h=micro_usd("3.5"), cap_usd_h=micro_usd("3.5"), **changes)
    half = job(duration_s=3500.0)
    found = asked(world(half, offers=(hourly, OFFER), limit=micro_usd("6.5")), half, rent=rent)
    (made,) = (step.rental for step in found.steps)
    assert made.offer == OFFER.id
    rich = asked(world(half, offers=(hourly, OFFER)), half, rent=rent)
    assert [step.rental.offer for step in rich.steps] == ["hourly"]


def test_a_budget_of_its_own_covers_a_late_end_and_says_what_it_lacks() -> None:
    lacks = job(budget=micro_usd("5.1"))  # its lease alone could cost 4.97, late 5.88
    of = world(lacks)
    assert quoting(of) == {}
    (reason,) = unaffordable(of, [lacks], NO_TIMES, Stock(of.offers, NO_TIMES)).values()
    assert reason.code is Code.OVER_BUDGET and "its budget is 5.10 USD" in reason.says
    does = job(budget=micro_usd("6"))
    assert len(asked(world(does), does).steps) == 1


def test_what_a_job_has_spent_and_has_set_aside_counts_against_its_own_budget() -> None:
    bound = job(budget=micro_usd(10))
    assert len(asked(world(bound), bound).steps) == 1
    spent = bound.but(spent=micro_usd(5))
    assert quoting(world(spent)) == {}
    (reason,) = unaffordable(
        world(spent), [spent], NO_TIMES, Stock((OFFER,), NO_TIMES)
    ).values()  # fmt: skip
    assert "5.00 of its own budget of 10.00 USD are left" in reason.says
    leaves = Rental(
        id="r", node="r", payer="run-1", offer="big", taken=OFFER, state=RentalState.DRAINING,
        lease=Lease(number=1, watched_until=9.0, away_until=9.0, stop_at=9.0),
        reserved=micro_usd(5), jobs={"j": "default"},
    )  # fmt: skip
    assert quoting(replace(world(bound), rentals={"r": leaves})) == {}


def test_who_would_run_for_longer_than_any_lease_is_told_of_that_and_of_no_deadline() -> None:
    long = job(duration_s=20 * 86400.0)
    of = world(long, limit=micro_usd(100_000))
    reason = asked(of, long, rent=Greedy()).refused["j"]
    assert reason.code is Code.TOO_LATE
    assert "no machine is rented for more than 1209600 s" in reason.says
    assert "deadline" not in reason.says + reason.change


def test_who_is_too_late_everywhere_is_told_by_how_much() -> None:
    hurried = job(deadline=1800.0)
    reason = asked(world(hurried), hurried, rent=Greedy()).refused["j"]
    assert reason.code is Code.TOO_LATE and "is 1820 s late" in reason.says
    assert reason.change == "a deadline 1820 s later"
