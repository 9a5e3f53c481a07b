"""Who is brought home from a rented machine: seldom, where it pays, and never in vain."""

from typing import Any

import pytest
from clouding import RENTING, an_offer
from keeping_world import LEASE, NAME
from makers import a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import Checkpoint, CheckpointRule, Job, JobState, Placement, Wish
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import Account, Sighting, World
from cloudwhale.planning import checker, checker_homes
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.homing import EVERY_S, FRESH_S, Homing, brought_home
from cloudwhale.planning.planner import plan
from cloudwhale.planning.rules import Rules

HOUR = 3600.0
NOW = 2 * HOUR
RULES = RENTING.rules.but(value_usd_h=1.0)
COMES = Reason(code=Code.BRINGS_HOME, says="stops to go on at home")
LONG = LEASE.but(away_until=20 * HOUR, stop_at=20 * HOUR + 120, watched_until=NOW + 900)


def away(name: str = "j", since: float = NOW - HOUR, saved: float = NOW - 5.0, **of: Any) -> Job:
    """Make a job of ten hours that runs on the rented machine and has just saved."""
    spec = {
        "resources": wants(cpu=2), "duration_s": 10 * HOUR,
        "checkpoint": CheckpointRule(every_s=60.0, grace_s=30.0),
    }  # fmt: skip
    there = placed(a_job(name, **{**spec, **of}), NAME)
    return there.but(
        state=JobState.RUNNING, order_posted=True, started_at=since, checkpoint=Checkpoint(
            attempt=1, seq=1, name="c-1", size_bytes=10, saved_at=saved, manifest="m",
        ),
    )  # fmt: skip


def world(*jobs: Job, home: Node | None = None, **of_rental: Any) -> World:
    """Make a world of a rented machine for 3.60 USD an hour, and an owned node of four CPUs."""
    rental = Rental(
        id=NAME, node=NAME, payer="run-1", offer="big", lease=LONG, reserved=micro_usd(90),
        taken=an_offer(), jobs={job.id: "default" for job in jobs if job.placement is not None},
        state=RentalState.READY, machine="m-1", requested_at=0.0, told=LONG,
    ).but(**of_rental)  # fmt: skip
    nodes = [home or a_node(cpu=4.0), a_node(NAME, cpu=8.0, owned=False, provider="cloud")]
    return a_world(
        list(jobs), nodes, now=NOW, rentals={NAME: rental},
        accounts={"run-1": Account(
            payer="run-1", limit=micro_usd(100), reserved=rental.reserved
        )},
        sightings={node.id: Sighting(node=node.id, heard_at=NOW) for node in nodes},
    )  # fmt: skip


STAYS = away("k", duration_s=20 * HOUR, preemptible=False)


def asked(of: World, rules: Rules = RULES, *steps: p.Step) -> p.AskToStop | None:
    return brought_home(Homing(of, Durations({}), rules), steps)


def test_a_job_that_has_long_to_run_comes_home_when_there_is_room() -> None:
    step = asked(world(away()))
    assert step is not None and (step.job, step.wish) == ("j", "give-way")
    assert step.reason.code is Code.BRINGS_HOME
    assert "host, which is ours and free" in step.reason.says
    assert "saves 32.34 USD" in step.reason.says


def test_the_round_s_plan_asks_for_it_and_the_checker_lets_it_pass() -> None:
    of = world(away())
    policies = RENTING.__class__(RENTING.order, RENTING.score, RULES, RENTING.wait, RENTING.rent)
    made = plan(of, policies)
    assert [s.job for s in made.steps if isinstance(s, p.AskToStop)] == ["j"]
    assert checker.check(made, of, RULES) == ()


@pytest.mark.parametrize(
    ("why", "of"),
    [
        ("home is taken", world(away(), placed(a_job("k", resources=wants(cpu=3)), "host"))),
        ("home is too small", world(away(), home=a_node(cpu=1.0))),
        ("home takes no jobs", world(away(), home=a_node(cpu=4.0, state=NodeState.DRAINING))),
        ("it saved too long ago", world(away(saved=NOW - FRESH_S - 1))),
        ("it has saved nothing here", world(away().but(checkpoint=None))),
        ("it saved in another attempt", world(away().but(attempt=2))),
        ("it stops already", world(away().but(wish=Wish.PAUSE))),
        ("it starts only", world(away().but(state=JobState.STARTING))),
        ("it may not be stopped", world(away(preemptible=False))),
        ("it wants a rented machine", world(away(market="on-demand"))),
        ("it moved not long ago", world(away(since=NOW - EVERY_S + 1).but(interruptions=1))),
        ("it ends sooner than it could move", world(away(since=NOW - 500, duration_s=550.0))),
        ("it ends soon, so that moving costs more", world(away(since=NOW - 100, duration_s=300.0))),
        ("it would miss its deadline", world(away(deadline=NOW + 9 * HOUR + 60.0))),
        ("its time is dear", world(away(value_of_time_usd_h=500.0))),
        ("another keeps the machine as long", world(away(), STAYS)),
        ("somebody is to come", world(away(), a_job("k"), jobs={"j": "default", "k": "default"})),
        ("the machine goes back", world(away(), state=RentalState.DRAINING)),
        ("the machine is gone", world(away(), ended_at=NOW)),
    ],
)  # fmt: skip
def test_it_stays_where_it_is_when(why: str, of: World) -> None:
    assert asked(of) is None, why


def test_it_stays_when_that_is_switched_off() -> None:
    assert asked(world(away()), RULES.but(bring_home=False)) is None


def test_it_stays_when_the_round_gives_the_room_away_or_stops_it_anyway() -> None:
    other = a_job("k", resources=wants(cpu=3))
    reason = Reason(code=Code.PLACED, says="best")
    place = p.Place(job="k", attempt=1, placement=Placement(node="host"), reason=reason)
    assert asked(world(away(), other), RULES, place) is None
    lands = p.AskToStop(job="j", attempt=1, wish="give-way", reason=reason)
    assert asked(world(away()), RULES, lands) is None


def test_one_comes_home_at_a_time() -> None:
    on_its_way = away("k").but(wish=Wish.GIVE_WAY, reason=COMES)
    assert asked(world(away(), on_its_way)) is None
    back = a_job("k").but(reason=COMES, attempt=1)
    assert asked(world(away(), back, jobs={"j": "default"})) is None


def test_of_two_the_one_comes_home_without_whom_the_machine_goes_back_sooner() -> None:
    short = away("a", duration_s=2 * HOUR)
    step = asked(world(short, away("z")))
    assert step is not None and step.job == "z"


def test_a_job_that_moved_long_ago_may_move_again() -> None:
    assert asked(world(away(since=NOW - EVERY_S).but(interruptions=3))) is not None


def test_a_slower_home_costs_the_time_that_it_is_slower() -> None:
    slow = {"A10G": 10.0}  # where its duration holds it would take ten times as long
    assert asked(world(away(speeds=slow))) is not None  # it has no GPU: speeds say nothing
    dear = away(value_of_time_usd_h=20.0)
    assert asked(world(dear)) is not None


def test_who_comes_home_is_not_put_back_onto_the_machine_that_it_left() -> None:
    back = away().but(
        state=JobState.PENDING, placement=None, wish=None, reason=COMES, interruptions=1
    )
    of = world(back, jobs={"j": "default"})
    made = plan(of, RENTING)
    (place,) = [step for step in made.steps if isinstance(step, p.Place)]
    assert place.placement.node == "host"
    (back_step,) = [step for step in made.steps if isinstance(step, p.Return)]
    assert back_step.rental.id == NAME
    assert checker.check(made, of, RENTING.rules) == ()


# -- the checker -----------------------------------------------------------------------------


def comes(job: str = "j") -> p.AskToStop:
    return p.AskToStop(job=job, attempt=1, wish="give-way", reason=COMES)


def a_plan(*steps: p.Step) -> p.Plan:
    return p.Plan(version=1, steps=steps)


AT_HOME = away().but(placement=Placement(node="host"))
FAULTS: list[tuple[str, World, p.Plan, Rules]] = [
    ("switched off", world(away()), a_plan(comes()), RULES.but(bring_home=False)),
    ("at home", world(AT_HOME), a_plan(comes()), RULES),
    ("not running", world(away().but(state=JobState.STARTING)), a_plan(comes()), RULES),
    ("stops", world(away().but(wish=Wish.CANCEL)), a_plan(comes()), RULES),
    ("not preemptible", world(away(preemptible=False)), a_plan(comes()), RULES),
    ("not saved", world(away().but(checkpoint=None)), a_plan(comes()), RULES),
    ("saved before", world(away().but(attempt=2)), a_plan(comes().model_copy(
        update={"attempt": 2})), RULES),
    ("saved long ago", world(away(saved=NOW - 91)), a_plan(comes()), RULES),
    ("moved again", world(away(since=NOW - 1799).but(interruptions=1)), a_plan(comes()), RULES),
    ("no room", world(away(), home=a_node(cpu=1.0)), a_plan(comes()), RULES),
    ("twice", world(away()), a_plan(comes(), comes()), RULES),
    ("two", world(away(), away("k")), a_plan(comes(), comes("k")), RULES),
    ("one is coming", world(away(), away("k").but(wish=Wish.GIVE_WAY, reason=COMES)),
     a_plan(comes()), RULES),
    ("room given away", world(away(), a_job("k", resources=wants(cpu=3))), a_plan(comes(), p.Place(
        job="k", attempt=1, placement=Placement(node="host"), reason=COMES)), RULES),
]  # fmt: skip


@pytest.mark.parametrize(("of", "made", "rules"), [fault[1:] for fault in FAULTS],
                         ids=[fault[0] for fault in FAULTS])  # fmt: skip
def test_a_planted_fault_is_found(of: World, made: p.Plan, rules: Rules) -> None:
    assert "homes" in {fault.rule for fault in checker.check(made, of, rules)}


def test_nobody_else_finds_what_this_rule_finds() -> None:
    others = [rule for rule in checker.RULES if rule not in checker_homes.RULES]
    of, made, rules = FAULTS[0][1:]
    assert not any(fault for rule in others for fault in rule(made, of, rules))


def test_an_honest_move_passes() -> None:
    assert checker.check(a_plan(comes()), world(away()), RULES) == ()
