"""What projects set aside beside a run, and what each pays: sums, one lease at a time."""

from datetime import UTC, datetime
from typing import Any

import pytest
from clouding import an_offer
from makers import a_job, a_world, placed

from cloudwhale.model.budget import Budget
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Lease, Renewal, Rental, RentalState
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning import occupying, payers, projects
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.leasing import late_until, lease_until, pledged, tail, worst_cost
from cloudwhale.planning.ledger import split_below

BEGAN = datetime(2026, 11, 30, 23, 50, tzinfo=UTC).timestamp()
NLP, VISION = "project:nlp:2026-11", "project:vision:2026-11"
OFFER = an_offer()
NO_TIMES = Durations({})


def rental(needed_s: float = 3600.0, **fields: Any) -> Rental:
    lease = lease_until(1, BEGAN, needed_s, 60.0)
    worst = worst_cost(OFFER, BEGAN, lease.stop_at)
    assert worst is not None
    base: dict[str, Any] = {
        "id": "m", "node": "m", "payer": "run-1", "offer": "big", "lease": lease,
        "reserved": worst, "taken": OFFER, "jobs": {"a": "nlp", "b": "vision"},
        "reserved_at": BEGAN,
    }  # fmt: skip
    return Rental(**{**base, **fields})


# -- accounts --------------------------------------------------------------------------------


def test_a_month_is_that_of_utc_in_which_the_lease_begins() -> None:
    assert projects.account_for(rental(), "nlp") == NLP
    assert payers.month_of(BEGAN + 600.0) == "2026-12"
    assert payers.month_after("2026-12") == "2027-01"
    assert payers.month_after("2027-01") == "2027-02"


def test_an_account_says_whose_it_is() -> None:
    assert payers.project_and_month(NLP) == ("nlp", "2026-11")
    assert payers.project_and_month("run-1") is None
    assert payers.called(NLP) == "project nlp in 2026-11"
    assert payers.called("run-1") == "run-1"


# -- setting aside ---------------------------------------------------------------------------


def test_who_stays_longest_sets_the_whole_lease_aside_and_others_their_own_time() -> None:
    of = rental()
    found = projects.for_new(of, {"a": BEGAN + 3600.0, "b": BEGAN + 600.0})
    assert found[NLP] == of.reserved
    alone = worst_cost(OFFER, BEGAN, of.lease.stop_at - 3000.0)
    assert found[VISION] == alone
    assert 0 < found[VISION] < of.reserved


def test_a_project_with_two_jobs_sets_aside_what_the_longer_needs() -> None:
    of = rental(jobs={"a": "nlp", "b": "nlp"})
    found = projects.for_new(of, {"a": BEGAN + 600.0, "b": BEGAN + 3600.0})
    assert found == {NLP: of.reserved}


def test_who_joins_sets_its_own_time_aside_and_nothing_when_its_project_has_all() -> None:
    of = rental()
    of = of.but(projects={NLP: of.reserved})
    now = BEGAN + 1000.0
    found = projects.for_joining(of, "vision", now, now + 500.0)
    assert found == {VISION: worst_cost(OFFER, now, now + 500.0)}
    assert projects.for_joining(of, "nlp", now, now + 500.0) == {}
    assert projects.for_joining(of.but(projects={}), "vision", now, now + 500.0) == {}
    endless = projects.for_joining(of, "vision", now, BEGAN + 1e9)[VISION]
    assert endless == worst_cost(OFFER, now, of.lease.stop_at)


def test_a_longer_lease_is_set_aside_by_all_who_are_there() -> None:
    of = rental()
    of = of.but(projects={NLP: of.reserved, VISION: MicroUsd(5)})
    jobs = [a_job("b", project="vision"), a_job("c", project="vision")]
    assert projects.for_longer(of, jobs, MicroUsd(7)) == {VISION: MicroUsd(7)}
    assert projects.for_longer(of.but(projects={}), jobs, MicroUsd(7)) == {}


# -- admission -------------------------------------------------------------------------------


def world(limit: str | None = "10", **sums: Any) -> World:
    accounts = {}
    if sums:
        amount = None if limit is None else micro_usd(limit)
        accounts[NLP] = Account(payer=NLP, limit=amount, needs_limit=False, **sums)
    budgets = {}
    if limit is not None:
        budgets["nlp"] = Budget(project="nlp", month=micro_usd(limit), set_at=0.0)
    return a_world(now=BEGAN, accounts=accounts, budgets=budgets)


@pytest.mark.parametrize(
    ("of", "needs", "started", "code"),
    [
        (world(), "10", "0", None),
        (world(), "10.01", "0", Code.OVER_BUDGET),
        (world(spent=micro_usd(3)), "7.01", "0", Code.OVER_BUDGET),
        (world(spent=micro_usd(3)), "6", "1.5", Code.WOULD_STRAND_STARTED_WORK),
        (world(spent=micro_usd(9)), "0.5", "0", Code.SOFT_LINE),
        (world(limit=None, spent=micro_usd(9)), "1000", "1000", None),
        (world(limit=None), "1000", "0", None),
    ],
)
def test_a_project_is_asked_by_the_rule_of_all_payers(
    of: World, needs: str, started: str, code: Code | None
) -> None:
    no = projects.refusal(of, {NLP: micro_usd(needs)}, {NLP: micro_usd(started)})
    assert (None if no is None else no.code) is code
    if no is not None:
        assert "nlp" in f"{no.says} {no.change}"


def test_past_the_soft_line_what_has_started_goes_on() -> None:
    of = world(spent=micro_usd(9))
    assert projects.refusal(of, {NLP: micro_usd("0.5")}, {}, anew=False) is None
    assert projects.refusal(of, {NLP: micro_usd("1.5")}, {}, anew=False) is not None


def test_a_project_must_be_able_to_finish_what_it_has_started() -> None:
    of = rental(needed_s=600.0)
    of = of.but(state=RentalState.READY, projects={NLP: of.reserved, VISION: of.reserved})
    job = placed(a_job("a", project="nlp", duration_s=7200.0), "m").but(started_at=BEGAN)
    there = a_world([job], now=BEGAN, rentals={"m": of})
    found = projects.forecasts(there, NO_TIMES)
    assert found.keys() == {NLP}, "vision has nothing there"
    assert found[NLP] > micro_usd(5)
    assert projects.pledges(there, but="m") == {}


# -- paying ----------------------------------------------------------------------------------


def test_the_cost_is_split_by_the_time_and_part_of_the_machine_that_jobs_held() -> None:
    of = rental(
        held_s={"a": 300.0, "b": 100.0}, projects={NLP: MicroUsd(900), VISION: MicroUsd(900)}
    )
    assert projects.charges(of, MicroUsd(400)) == {"a": 300, "b": 100}


def test_who_never_came_pays_nothing_unless_nobody_came() -> None:
    of = rental(held_s={"a": 3.0})
    assert projects.charges(of, MicroUsd(400)) == {"a": 400, "b": 0}
    assert projects.charges(rental(), MicroUsd(401)) == {"a": 201, "b": 200}


def test_no_project_pays_more_than_it_has_set_aside() -> None:
    of = rental(
        held_s={"a": 300.0, "b": 100.0}, projects={NLP: MicroUsd(50), VISION: MicroUsd(400)}
    )
    assert projects.charges(of, MicroUsd(400)) == {"a": 50, "b": 350}
    assert projects.unused(of, {"a": MicroUsd(50), "b": MicroUsd(350)}) == {VISION: 50}


def test_jobs_of_one_project_share_what_it_pays() -> None:
    jobs = {"a": "nlp", "b": "vision", "c": "nlp"}
    of = rental(
        jobs=jobs, held_s={"a": 100.0, "b": 100.0, "c": 300.0},
        projects={NLP: MicroUsd(100), VISION: MicroUsd(900)},
    )  # fmt: skip
    assert projects.charges(of, MicroUsd(500)) == {"a": 25, "b": 400, "c": 75}


def test_when_all_may_pay_too_little_it_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="more than all may pay"):
        split_below(MicroUsd(10), {"a": 1.0, "b": 1.0}, {"a": MicroUsd(4), "b": MicroUsd(5)})
    assert split_below(MicroUsd(9), {"a": 1.0, "b": 0.0}, {"a": MicroUsd(4)}) == {"a": 4, "b": 5}


# -- occupying -------------------------------------------------------------------------------


def test_a_job_takes_the_largest_of_its_parts() -> None:
    facts = OFFER.facts  # eight CPUs, 32 GiB
    for cpu, memory_gib, part in ((2.0, None, 0.25), (2.0, 24.0, 0.75), (99.0, None, 1.0)):
        job = placed(a_job("a", resources={"cpu": cpu, "memory_gib": memory_gib}), "m")
        assert occupying.part_of(job, facts) == part


def test_a_place_is_held_until_the_agents_word_or_the_machines_end() -> None:
    job = placed(a_job("a", resources={"cpu": 4.0}), "m").but(placed_at=100.0)
    running = job.but(started_at=120.0)
    assert occupying.held_s(job, job, rental(), 200.0) == 50.0
    assert occupying.held_s(running, running.but(run_s=60.0), rental(), 900.0) == 40.0
    assert occupying.held_s(job, job, rental(ended_at=150.0), 200.0) == 25.0
    assert occupying.held_s(job, job, rental(taken=None), 200.0) == 0.0


def test_what_was_pledged_to_a_machine_gets_less_with_each_longer_lease() -> None:
    late = late_until(BEGAN, 3600.0, 60.0)
    of = rental(late_until=late)
    assert pledged(of) == tail(OFFER, 3600.0) > 0
    longer = of.lease.but(away_until=late - 10.0)
    half_way = of.but(renewal=Renewal(lease=longer, reserved=MicroUsd(1)))
    assert pledged(half_way) == pledged(of.but(lease=longer)) == 10_000
    assert pledged(of.but(lease=of.lease.but(away_until=late + 5.0))) == 0
    assert pledged(of.but(ended_at=BEGAN)) == 0


def test_a_project_keeps_a_pledge_while_a_job_of_it_needs_the_machine() -> None:
    of = rental(late_until=late_until(BEGAN, 3600.0, 60.0), projects={NLP: MicroUsd(1)})
    of = of.but(projects={NLP: of.reserved, VISION: of.reserved})
    there = a_world([a_job("a", project="nlp")], now=BEGAN, rentals={"m": of})
    assert projects.pledges(there, but="") == {NLP: tail(OFFER, 3600.0)}
    assert projects.pledges(there, but="m") == {}


def test_a_lease_that_has_ended_is_no_longer_forecast() -> None:
    lease = Lease(number=1, watched_until=BEGAN, away_until=BEGAN, stop_at=BEGAN)
    of = rental(lease=lease, ended_at=BEGAN, projects={NLP: MicroUsd(1)})
    job = placed(a_job("a", project="nlp", duration_s=7200.0), "m").but(started_at=BEGAN)
    there = a_world([job], now=BEGAN, rentals={"m": of})
    assert projects.forecasts(there, NO_TIMES).get(NLP, 0) == 0
