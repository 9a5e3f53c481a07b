"""A job that was rented for comes home when that pays: once, and never to move again soon."""

import random

import pytest
from clouding import RENTING, an_offer
from makers import a_node, a_spec, wants

from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.homing import EVERY_S
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.playing import Arrival, Played, play, told
from cloudwhale.simulation.setting import Offered, Setting

HOUR = 3600.0
RULE = CheckpointRule(every_s=120.0, grace_s=20.0)
OFFER = an_offer(boot_s=60.0)


def chosen(**rules: object) -> Chosen:
    policies = RENTING.__class__(
        RENTING.order, RENTING.score, RENTING.rules.but(value_usd_h=1.0, **rules), RENTING.wait,
        RENTING.rent,
    )  # fmt: skip
    return Chosen(policies, order="priority", score="best-fit")


def an_arrival(at: float, name: str, work_s: float) -> Arrival:
    spec = a_spec(resources=wants(cpu=4), duration_s=work_s, checkpoint=RULE)
    return Arrival(at, name, spec, work_s)


def played(*arrivals: Arrival, **rules: object) -> Played:
    """Play jobs on one machine of ours and what can be rented."""
    home = a_node("home", cpu=4.0, memory_gib=32.0)
    setting = Setting(
        [home], arrivals, clouds=[Offered("cloud", [Shelf(OFFER)], 1)], budget=micro_usd(500)
    )
    return play(setting, chosen(**rules))


def moves(of: Played) -> list[e.StopWished]:
    return [
        one.event
        for one in told(of.store)
        if isinstance(one.event, e.StopWished) and one.event.reason.code is Code.BRINGS_HOME
    ]


FIRST = an_arrival(0.0, "first", HOUR)
LONG = an_arrival(60.0, "long", 10 * HOUR)


def test_it_goes_on_at_home_from_its_checkpoint_and_the_machine_goes_back() -> None:
    of = played(FIRST, LONG)
    (move,) = moves(of)
    assert move.job == "long"
    job = of.jobs["long"].job
    assert job.state is JobState.COMPLETED and job.placement is not None
    assert job.placement.node == "home"
    assert job.interruptions == 1 and job.lost_s <= RULE.every_s
    (rental,) = of.rentals
    assert rental.ended_at is not None
    # The hour that the first took, the time to the next save, and a landing.
    assert rental.ended_at <= of.began_at + HOUR + 2 * RULE.every_s + 120.0
    assert of.cost_usd < 0.15 * played(FIRST, LONG, bring_home=False).cost_usd


def test_it_stays_when_it_would_end_sooner_than_that_pays() -> None:
    assert moves(played(FIRST, an_arrival(3300.0, "short", 400.0))) == []


@pytest.mark.parametrize("seed", range(2))
def test_nobody_moves_twice_in_a_row_and_nobody_who_ends_before_it_could_move(seed: int) -> None:
    drawn = random.Random(f"home-{seed}")
    arrivals, at = list[Arrival](), 0.0
    for number in range(16):
        work_s = drawn.choice((120.0, 900.0, 2 * HOUR, 8 * HOUR))
        arrivals.append(an_arrival(at, f"j-{number}", work_s))
        at += drawn.expovariate(1 / 1800.0)
    of = played(*arrivals)
    assert {one.job.state for one in of.jobs.values()} == {JobState.COMPLETED}
    last: dict[str, float] = {}
    for move in moves(of):
        assert move.at - last.get(move.job, -EVERY_S) >= EVERY_S
        last[move.job] = move.at
        job = of.jobs[move.job].job
        assert job.ended_at is not None and job.ended_at - move.at > RULE.grace_s
    assert last, "some come home"
    per_job = {one.job.id: one.job.interruptions for one in of.jobs.values()}
    assert max(per_job.values()) <= 3
