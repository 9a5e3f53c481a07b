"""Who waits for a better place, for how long, and when room is kept for a job that does not fit."""

from dataclasses import replace

import pytest
from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState, Placement
from cloudwhale.model.reason import Code
from cloudwhale.model.world import World
from cloudwhale.planning.checker import check
from cloudwhale.planning.holding import LONGEST_S
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Rules
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Fifo
from cloudwhale_policies.whale_order import Whale

NOW = 1000.0
FAST = a_node("fast", cpu=8.0, devices=(a_device("f-0", "A100-80GB", 80.0),))
SLOW = a_node("slow", cpu=8.0, devices=(a_device("s-0", "L4", 24.0),))
A100 = "A100-80GB"


def on_fast(ends_in_s: float, name: str = "ending") -> Job:
    job = a_job(name, duration_s=1e5, max_duration_s=NOW + ends_in_s, resources=wants(gpus=1))
    return job.but(
        attempt=1, state=JobState.RUNNING, started_at=0.0, placed_at=0.0, order_posted=True,
        placement=Placement(node="fast", devices=("f-0",)),
    )  # fmt: skip


def waiting(name: str = "w", **fields: object) -> Job:
    given: dict[str, object] = {"duration_s": 3600.0, "reference": A100, "resources": wants(gpus=1)}
    return a_job(name, **{**given, "submitted_at": NOW, **fields})


def a_moment(*jobs: Job, now: float = NOW) -> World:
    return a_world(list(jobs), [FAST, SLOW], now=now)


def planned(world: World, rules: Rules | None = None, order: Fifo | Whale | None = None) -> p.Plan:
    rules = rules or Rules()
    made = plan(world, Policies(order or Fifo(), BestFit(), rules))
    assert check(made, world, rules) == ()
    return made


def holds(made: p.Plan) -> list[p.Hold]:
    return [step for step in made.steps if isinstance(step, p.Hold)]


def places(made: p.Plan) -> dict[str, str]:
    return {s.job: s.placement.node for s in made.steps if isinstance(s, p.Place)}


def test_a_job_waits_for_a_place_that_has_it_done_sooner() -> None:
    made = planned(a_moment(on_fast(600.0), waiting()))
    (hold,) = holds(made)
    assert NOW + 600.0 <= hold.until <= NOW + LONGEST_S
    assert hold.reason.code is Code.HELD
    assert places(made) == {}


@pytest.mark.parametrize("ends_in_s", [6000.0, 90_000.0])
def test_a_place_that_comes_too_late_is_not_waited_for(ends_in_s: float) -> None:
    assert places(planned(a_moment(on_fast(ends_in_s), waiting()))) == {"w": "slow"}


def test_a_place_that_is_hardly_better_is_not_waited_for() -> None:
    speeds = {"L4": 0.8, A100: 1.0}
    made = planned(a_moment(on_fast(600.0), waiting(speeds=speeds)))
    assert places(made) == {"w": "slow"}


def test_no_hold_is_longer_than_an_hour() -> None:
    (hold,) = holds(planned(a_moment(on_fast(5000.0), waiting(duration_s=90_000.0))))
    assert hold.until == NOW + LONGEST_S


def test_without_the_rule_nobody_is_held() -> None:
    made = planned(a_moment(on_fast(600.0), waiting()), Rules(hold=False))
    assert places(made) == {"w": "slow"}


def test_a_job_is_held_once_until_it_has_run() -> None:
    held = waiting().but(held_until=NOW - 1)
    assert places(planned(a_moment(on_fast(600.0), held))) == {"w": "slow"}


def test_a_held_job_waits_on_without_a_word_and_is_looked_at_when_its_hold_ends() -> None:
    held = waiting().but(held_until=NOW + 900)
    made = planned(a_moment(on_fast(2000.0), held))
    assert made.steps == ()
    assert made.look_again_at == NOW + 900


def test_a_hold_is_over_when_the_better_place_is_free() -> None:
    held = waiting().but(held_until=NOW + 900)
    world = replace(a_moment(held), nodes={"fast": FAST, "slow": SLOW.but(facts=SLOW.facts)})
    assert list(places(planned(world))) == ["w"]


def test_a_hold_is_over_when_the_better_place_comes_too_late_after_all() -> None:
    held = waiting().but(held_until=NOW + 900)
    assert places(planned(a_moment(on_fast(90_000.0), held))) == {"w": "slow"}


def test_a_hold_is_over_when_somebody_of_a_higher_class_could_use_the_place() -> None:
    held = waiting(submitted_at=0.0).but(held_until=NOW + 900)
    urgent = waiting("urgent", priority=90, resources=wants(cpu=9), submitted_at=NOW)
    able = urgent.but(spec=urgent.spec.but(resources=wants(cpu=8)))
    assert places(planned(a_moment(on_fast(600.0), held, urgent))) == {}
    assert places(planned(a_moment(on_fast(600.0), held, able)))["w"] == "slow"


def test_two_jobs_do_not_wait_for_one_place() -> None:
    jobs = [waiting("a"), waiting("b", submitted_at=NOW + 1)]
    nodes = [FAST, SLOW, SLOW.but(id="slow-2")]
    made = planned(a_world([on_fast(600.0), *jobs], nodes, now=NOW))
    assert [hold.job for hold in holds(made)] == ["a"]
    assert set(places(made)) == {"b"}


def test_a_place_that_somebody_ahead_could_use_is_not_waited_for() -> None:
    ahead = waiting("ahead", submitted_at=0.0, resources=wants(cpu=8, gpus=1, memory_gib=15.0))
    busy = placed(a_job("busy", duration_s=9e4, resources=wants(cpu=1)), "slow")
    made = planned(a_moment(on_fast(600.0), busy.but(order_posted=True), ahead, waiting()))
    assert holds(made) == []


def test_nobody_is_held_while_somebody_has_waited_for_twice_too_long() -> None:
    old = waiting("old", submitted_at=-9e6, resources=wants(cpu=8, gpus=1))
    busy = placed(a_job("busy", duration_s=9e4, resources=wants(cpu=1)), "slow")
    jobs = [on_fast(600.0), busy.but(order_posted=True), old, waiting()]
    made = planned(a_moment(*jobs), order=Whale())
    assert holds(made) == []


# -- room that is kept -----------------------------------------------------------------------


def cpu_job(name: str, cpu: float, duration_s: float, **fields: object) -> Job:
    return a_job(name, duration_s=duration_s, resources=wants(cpu=cpu), **fields)


def runs(name: str, cpu: float, ends_in_s: float, node: str = "host", since: float = 0.0) -> Job:
    job = placed(cpu_job(name, cpu, ends_in_s + NOW - since), node)
    return job.but(state=JobState.RUNNING, started_at=since, placed_at=since, order_posted=True)


def on_cpus(*jobs: Job, rules: Rules | None = None, order: Fifo | Whale | None = None) -> p.Plan:
    world = a_world(list(jobs), [a_node(cpu=4.0), a_node("next", cpu=4.0)], now=NOW)
    return planned(world, rules, order)


LARGE = cpu_job("large", 4.0, 600.0, submitted_at=0.0)
BUSY = [runs("x", 2.0, 2000.0), runs("y", 2.0, 5000.0, "next")]


def test_a_short_job_passes_and_a_long_one_does_not_where_room_is_kept() -> None:
    short, long = cpu_job("a-short", 2.0, 500.0), cpu_job("b-long", 2.0, 3000.0)
    jobs = [*BUSY, LARGE, short.but(submitted_at=1.0), long.but(submitted_at=2.0)]
    assert places(on_cpus(*jobs))["b-long"] == "next"
    full = [*BUSY, runs("z", 2.0, 9000.0, "next"), *jobs[2:]]
    assert places(on_cpus(*full)) == {"a-short": "host"}


def test_without_the_rule_the_long_one_takes_the_room() -> None:
    full = [*BUSY, runs("z", 2.0, 9000.0, "next"), LARGE, cpu_job("long", 2.0, 9000.0)]
    plain = Rules(reserve=False, preempt=False)
    assert places(on_cpus(*full, rules=plain)) == {"long": "host"}


def test_the_reason_says_where_and_when_it_is_to_start() -> None:
    steps = on_cpus(*BUSY, LARGE).steps
    (said,) = (s.reason for s in steps if isinstance(s, p.Explain))
    assert said.code is Code.NO_ROOM_NOW
    assert said.says.endswith("is to start on host about 00:50 UTC, when x ends")


def test_a_whole_node_is_kept_for_who_has_waited_for_twice_too_long() -> None:
    """Not even a short job passes there: nothing that is expected takes part in it."""
    old = LARGE.but(submitted_at=-9e6)
    jobs = [runs("x", 2.0, 9000.0, since=10.0), runs("y", 2.0, 100.0, "next", since=900.0), old]
    full = [*jobs, runs("z", 2.0, 9000.0, "next", since=5.0)]
    made = on_cpus(*full, cpu_job("short", 2.0, 1.0, submitted_at=NOW), order=Whale())
    assert places(made) == {}
    (said,) = (s.reason.says for s in made.steps if isinstance(s, p.Explain) and s.job == "large")
    assert said.endswith("h: host takes nobody else until it starts")


def test_the_kept_node_is_the_one_whose_youngest_job_is_the_oldest() -> None:
    old = LARGE.but(submitted_at=-9e6)
    jobs = [runs("x", 2.0, 100.0, since=800.0), runs("y", 2.0, 9000.0, "next", since=700.0), old]
    made = on_cpus(*jobs, cpu_job("short", 2.0, 1.0, submitted_at=NOW), order=Whale())
    assert places(made) == {"short": "host"}
