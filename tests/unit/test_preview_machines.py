"""Seats on the machines of a dry run: after whom, beside whom, what each pays; and the bound."""

from typing import Any

import pytest
from clouding import RENTING
from makers import a_job, a_node, a_world
from previewing import HOUR, L4, a_gpu_job

from cloudwhale.control.preview_machines import rented
from cloudwhale.control.trying import Part, Trial
from cloudwhale.model import plan as p
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental
from cloudwhale.model.units import MicroUsd, micro_usd

WHY = Reason(code=Code.RENTED, says="on its way")
COST, WORST = micro_usd("3.01"), micro_usd("5.03")


def a_trial(*names: str) -> Trial:
    jobs = tuple(
        a_job(f"{name}#{n}", run="this run").but(spec=a_gpu_job(name))
        for n, name in enumerate(names)
    )
    world = a_world(list(jobs), [a_node()])
    return Trial(world, jobs, (Part([job.spec for job in jobs]),), RENTING, RENTING)


def rent(*seats: tuple[str, float, float], **fields: Any) -> p.Rent:
    """Rent an L4 for jobs by their ids, each from so many hours until so many."""
    lease = Lease(number=1, watched_until=900.0, away_until=9 * HOUR, stop_at=9 * HOUR)
    rental = Rental(
        id="rent-1", payer="this run", offer="l4", lease=lease, reserved=WORST, taken=L4,
        jobs={job: "default" for job, *_ in seats},
    )  # fmt: skip
    planned = tuple(
        p.PlannedSeat(job=job, starts_at=100.0 + start * HOUR, ends_at=100.0 + end * HOUR)
        for job, start, end in seats
    )
    return p.Rent(**{"rental": rental, "reason": WHY, "seats": planned, "cost": COST, **fields})


def a_plan(*steps: p.Rent, **tender: Any) -> p.Plan:
    jobs = tuple(seat.job for step in steps for seat in step.seats)
    base = {"payer": "this run", "jobs": jobs, "cost": COST, "worst": WORST}
    return p.Plan(version=1, steps=steps, tenders=(p.Tender(**{**base, **tender}),))


def test_who_comes_after_whom_and_runs_beside_whom_is_said() -> None:
    steps = rent(("a#0", 0, 2), ("b#1", 0, 1), ("c#2", 1, 3))
    seats = rented(a_trial("a", "b", "c"), a_plan(steps)).seats
    told = {name: (seat.fields["after"], seat.fields["beside"]) for name, seat in seats.items()}
    assert told == {
        "a#0": (None, ("b", "c")),
        "b#1": (None, ("a",)),
        "c#2": ("b", ("a",)),
    }


def test_who_pays_what_follows_size_and_time_and_adds_up() -> None:
    seats = rented(a_trial("a", "b"), a_plan(rent(("a#0", 0, 1), ("b#1", 1, 4)))).seats
    assert seats["a#0"].cost + seats["b#1"].cost == COST
    assert seats["b#1"].cost == pytest.approx(3 * seats["a#0"].cost, abs=2)
    assert seats["a#0"].fields["worst"] + seats["b#1"].fields["worst"] == WORST


def test_a_machine_boots_before_its_first_job_and_ends_with_its_last() -> None:
    (machine,) = rented(a_trial("a", "b"), a_plan(rent(("a#0", 0, 1), ("b#1", 1, 4)))).machines
    assert (machine.launched_at, machine.ready_at) == (0.0, L4.boot_s)
    assert machine.ends_at == 100.0 + 4 * HOUR
    assert [job.number for job in machine.jobs] == [0, 1]


def test_the_gap_is_how_far_the_cost_is_above_the_bound() -> None:
    found = rented(a_trial("a"), a_plan(rent(("a#0", 0, 1)), bound=micro_usd("2.80")))
    assert found.bound == micro_usd("2.80")
    assert found.gap == pytest.approx(3.01 / 2.80 - 1)


def test_a_bound_above_the_cost_makes_no_negative_gap() -> None:
    found = rented(a_trial("a"), a_plan(rent(("a#0", 0, 1)), bound=MicroUsd(COST + 1)))
    assert found.gap == 0.0


def test_a_bound_of_more_jobs_than_got_a_machine_is_none() -> None:
    made = a_plan(rent(("a#0", 0, 1)), bound=micro_usd(2), jobs=("a#0", "b#1"))
    found = rented(a_trial("a", "b"), made)
    assert (found.bound, found.gap) == (None, None)


def test_a_bound_without_those_that_were_left_out_holds() -> None:
    made = a_plan(
        rent(("a#0", 0, 1)), bound=micro_usd(2), jobs=("a#0", "b#1"), left_out={"b#1": "budget"}
    )
    assert rented(a_trial("a", "b"), made).bound == micro_usd(2)


def test_nobody_knows_what_a_machine_for_each_costs_when_one_has_none() -> None:
    assert rented(a_trial("a"), a_plan(rent(("a#0", 0, 1)))).one_each is None


def test_machines_of_other_payers_are_not_ours() -> None:
    other = rent(("a#0", 0, 1))
    step = other.but(rental=other.rental.but(payer="run-7"))
    assert rented(a_trial("a"), a_plan(step)).machines == ()


def test_a_simpler_choice_is_known_to_be_one() -> None:
    made = a_plan(rent(("a#0", 0, 1)), code=Code.OUT_OF_EFFORT)
    assert rented(a_trial("a"), made).is_simpler
