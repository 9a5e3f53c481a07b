"""Machines whose stop cannot be moved: leased for longer at once, and long jobs hop ahead."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from clouding import RENTING, an_offer
from makers import a_node, a_spec, wants

from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, JobState, RetryRule
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.faults import ControllerRestarted, Fault
from cloudwhale.simulation.playing import Arrival, Played, play, told
from cloudwhale.simulation.setting import Offered, Setting

HOUR = 3600.0
RULE = CheckpointRule(every_s=300.0, grace_s=20.0)
CHOSEN = Chosen(RENTING, order="priority", score="best-fit")
FIXED = an_offer("fixed", boot_s=120.0, stop_moves=False)
MOVES = an_offer("moves", boot_s=120.0)


def an_arrival(
    work_s: float, said_s: float = HOUR, name: str = "j", at: float = 0.0, **of: Any
) -> Arrival:
    """A job whose file says an hour, and that takes so long."""
    base = {"resources": wants(cpu=4), "checkpoint": RULE, "retry": RetryRule(max=0)}
    return Arrival(at, name, a_spec(duration_s=said_s, name=name, **{**base, **of}), work_s)


def played(
    *arrivals: Arrival, offers: tuple[Offer, ...] = (FIXED,), budget: str = "500",
    physics: Physics | None = None, hazard_per_h: float = 0.0, seed: int = 0,
    faults: tuple[Fault, ...] = (), capacity: int | None = None,
) -> Played:  # fmt: skip
    shelves = [Shelf(offer, capacity=capacity, hazard_per_h=hazard_per_h) for offer in offers]
    clouds = [Offered("cloud", shelves, seed)]
    setting = Setting([], arrivals, clouds=clouds, budget=micro_usd(budget), faults=faults)
    return play(setting if physics is None else replace(setting, physics=physics), CHOSEN)


def machines(of: Played) -> list[Rental]:
    """Return all that was rented, first first."""
    return sorted(of.rentals, key=lambda one: one.reserved_at)


def events(of: Played, code: Code) -> Iterator[e.Event]:
    for one in told(of.store):
        if isinstance(one.event, e.StopWished) and one.event.reason.code is code:
            yield one.event


def lease_s(rental: Rental) -> float:
    return rental.lease.away_until - rental.reserved_at


def is_done(of: Played, job: str = "j") -> bool:
    return of.jobs[job].job.state is JobState.COMPLETED


def gaps(of: Played, job: str = "j") -> list[float]:
    """Return how long a job did not run between two attempts."""
    stopped: float | None = None
    found: list[float] = []
    for one in told(of.store):
        if isinstance(one.event, e.GaveWay) and one.event.job == job:
            stopped = one.event.at
        elif isinstance(one.event, e.Started) and one.event.job == job and stopped is not None:
            found.append(one.event.at - stopped)
    return found


def test_its_lease_is_as_long_at_once_as_another_can_become() -> None:
    fixed, moves = played(an_arrival(HOUR)), played(an_arrival(HOUR), offers=(MOVES,))
    (short,), (long,) = moves.rentals, fixed.rentals
    assert lease_s(long) == pytest.approx(short.late_until - short.reserved_at)
    assert long.late_until == long.lease.away_until, "nothing is pledged beyond it"
    assert is_done(fixed) and fixed.cost_usd == moves.cost_usd, "what is not used is not paid for"


def test_whoever_is_late_by_less_than_half_stays() -> None:
    of = played(an_arrival(1.45 * HOUR))
    assert is_done(of) and len(of.rentals) == 1
    assert not list(events(of, Code.HOPS))


def test_who_runs_for_longer_goes_on_on_a_machine_that_is_ready() -> None:
    of = played(an_arrival(4 * HOUR))
    hops = list(events(of, Code.HOPS))
    assert is_done(of) and len(of.rentals) == len(hops) + 1 >= 3
    assert not list(events(of, Code.LEASE_ENDS))
    assert max(gaps(of)) < FIXED.boot_s / 2, "the next machine had booted before"
    assert of.jobs["j"].job.lost_s == 0 and of.jobs["j"].job.retries == 0


def test_each_hop_is_longer_than_the_last() -> None:
    of = played(an_arrival(20 * HOUR))
    leases = [lease_s(one) for one in machines(of)]
    assert is_done(of) and leases[1:] == sorted(leases[1:]) and len(leases) <= 8


def test_no_two_attempts_run_at_once_and_both_machines_only_while_one_boots() -> None:
    of = played(an_arrival(4 * HOUR))
    running: set[int] = set()
    for one in told(of.store):
        if isinstance(one.event, e.Started):
            running.add(one.event.attempt)
        elif isinstance(one.event, e.GaveWay | e.Finished):
            running.discard(one.event.attempt)
        assert len(running) <= 1
    ends = {one.id: one.ended_at or 0.0 for one in of.rentals}
    for before, after in pairwise(machines(of)):
        assert 0 < ends[before.id] - after.reserved_at < 2 * FIXED.boot_s + 60


def test_a_stop_that_saves_nothing_costs_no_more_than_an_interval() -> None:
    physics = Physics(start_s=1.0, restore_s=20.0, stop_s=RULE.grace_s, saves_on_stop=False)
    of = played(an_arrival(3 * HOUR), physics=physics)
    hops = len(list(events(of, Code.HOPS)))
    assert is_done(of) and hops >= 1
    assert of.jobs["j"].job.lost_s <= hops * (RULE.every_s + RULE.grace_s + 60)


@pytest.mark.parametrize("seed", range(8))
def test_budgets_hold_and_nothing_but_what_is_not_saved_is_lost(seed: int) -> None:
    """Lengths that are wrong by up to six times, spot and not, restarts, budgets that end it."""
    drawn = random.Random(f"fixed-{seed}")
    spot = FIXED.but(id="spot", market="spot", price_usd_h=micro_usd("1.2"), hazard_per_h=0.05)
    offers = drawn.choice(
        ((FIXED,), (FIXED, spot), (FIXED, MOVES.but(price_usd_h=FIXED.cap_usd_h)))
    )
    arrivals = [
        an_arrival(
            drawn.uniform(0.3, 6.0) * HOUR, HOUR, f"j{n}", drawn.uniform(0, 2 * HOUR),
            resources=wants(cpu=drawn.choice((2, 4, 8))), retry=RetryRule(max=1000),
        )
        for n in range(5)
    ]  # fmt: skip
    budget = drawn.choice(("15", "40", "400"))
    faults = tuple(ControllerRestarted(drawn.uniform(0, 8 * HOUR), 3.0) for _ in range(4))
    of = played(
        *arrivals, offers=offers, budget=budget, faults=faults, seed=seed,
        hazard_per_h=drawn.choice((0.0, 0.3)),
    )  # fmt: skip
    assert of.cost_usd <= float(budget)
    if budget == "400":
        assert all(is_done(of, one.job) for one in arrivals)


def test_a_machine_that_cannot_be_had_in_time_is_waited_for_after_landing() -> None:
    """There is one machine in all: it lands, that one is given back, and it goes on."""
    of = played(an_arrival(3 * HOUR), capacity=1)
    assert is_done(of)
    assert list(events(of, Code.LEASE_ENDS)) and not list(events(of, Code.HOPS))


def test_what_is_told_says_why() -> None:
    of = played(an_arrival(3 * HOUR))
    rents = [one.event for one in told(of.store) if isinstance(one.event, e.Waits)]
    said = [one.reason for one in rents if one.reason.code is Code.HOPS]
    assert said and "cannot be moved" in said[0].says and "USD are set aside" in said[0].says
    (first, *_) = events(of, Code.HOPS)
    assert isinstance(first, e.StopWished) and machines(of)[1].id in first.reason.says


def test_a_free_place_of_ours_is_not_rented_for() -> None:
    """It becomes free before the lease ends; the job lands and goes on there."""
    home = a_node("home", cpu=4.0, memory_gib=32.0)
    first = an_arrival(1.2 * HOUR, 1.2 * HOUR, "first", market="local")
    later = an_arrival(3 * HOUR, HOUR, "j", 1.0)
    clouds = [Offered("cloud", [Shelf(FIXED)], 0)]
    rules = replace(RENTING, rules=RENTING.rules.but(bring_home=False))
    of = play(
        Setting([home], [first, later], clouds=clouds, budget=micro_usd(100)),
        Chosen(rules, order="priority", score="best-fit"),
    )
    assert is_done(of) and len(of.rentals) == 1


def test_who_saves_nothing_is_never_made_to_hop_and_gets_a_longer_lease_then() -> None:
    of = played(an_arrival(3 * HOUR, checkpoint=None, max_duration_s=None))
    assert is_done(of) and not list(events(of, Code.HOPS))
    leases = [lease_s(one) for one in machines(of)]
    assert len(leases) == 2 and leases[1] > 3 * HOUR
    said = [one.event.reason.says for one in told(of.store) if isinstance(one.event, e.Waits)]
    assert "j saves nothing, and the machine's stop cannot be moved: unless it is done" in said[0]


def test_who_can_never_run_beyond_its_lease_is_not_warned() -> None:
    of = played(an_arrival(HOUR, checkpoint=None, max_duration_s=1.4 * HOUR))
    assert is_done(of)
    assert not [one for one in told(of.store) if "saves nothing" in one.event.model_dump_json()]


def test_past_the_soft_line_it_goes_on() -> None:
    """The next machine takes the money that is left: what has started is finished."""
    of = played(an_arrival(3 * HOUR), budget="14")
    assert is_done(of) and list(events(of, Code.HOPS))
    assert of.cost_usd <= 14


def test_without_money_for_another_it_lands_and_waits_for_more() -> None:
    of = played(an_arrival(6 * HOUR), budget="8")
    job = of.jobs["j"].job
    assert job.state is JobState.PENDING and job.checkpoint is not None
    assert list(events(of, Code.LEASE_ENDS)) and of.cost_usd <= 8
