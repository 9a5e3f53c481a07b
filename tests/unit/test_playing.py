"""A play is the real planner and store over pretend machines: its arithmetic, and its sameness."""

from dataclasses import replace
from typing import Any

import pytest
from makers import a_device, a_node, a_spec, wants

from cloudwhale.control.controller import Chosen
from cloudwhale.control.replay import plan_again
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import CheckpointRule, GpuRequest, JobState, Span
from cloudwhale.model.world import World
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Rules
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.playing import Arrival, PlanRefused, Played, Setting, play
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Fifo

QUIET = Rules(hold=False, reserve=False, preempt=False)
CHOSEN = Chosen(Policies(Fifo(), BestFit(), QUIET), order="fifo", score="best-fit")
NODE = a_node("desk", cpu=8.0, memory_gib=64.0, devices=(a_device("gpu-0", "A100-80GB", 80.0),))
PLAIN = Physics(neighbour=0.5, start_s=0.0, restore_s=7.0, stop_s=3.0)
HEEDLESS = replace(PLAIN, saves_on_stop=False)
FREE = Physics(neighbour=1.0, start_s=0.0, restore_s=0.0, stop_s=0.0)


def an_arrival(at: float, job: str, work_s: float, share: float = 1.0, **fields: Any) -> Arrival:
    gpu = GpuRequest(count=1, share=share, memory_gib=Span(least=8.0))
    spec = a_spec(resources=wants(gpu=gpu), reference="A100-80GB", **fields)
    return Arrival(at, job, spec, work_s)


def the_play(*arrivals: Arrival, physics: Physics = PLAIN) -> Played:
    return play(Setting([NODE], arrivals, physics), CHOSEN)


def test_jobs_that_need_the_whole_device_run_one_after_the_other() -> None:
    played = the_play(an_arrival(0, "a", 100), an_arrival(10, "b", 50))
    assert [played.jobs[job].completion_s for job in "ab"] == [100, 140]
    assert [played.jobs[job].wait_s for job in "ab"] == [0, 90]
    assert played.device_use([NODE]) == {("desk", "gpu-0"): 1.0}


def test_neighbours_on_a_device_slow_each_other_down_while_both_are_there() -> None:
    played = the_play(an_arrival(0, "a", 100, 0.5), an_arrival(50, "b", 25, 0.5))
    # b runs from 50 at half its rate until 100, when a has done 50 + 25; a ends at 125
    assert played.jobs["b"].completion_s == 50
    assert played.jobs["a"].completion_s == 125


def test_a_slower_model_takes_longer_than_the_reference() -> None:
    slow = NODE.but(facts=NODE.facts.but(devices=(a_device("gpu-0", "A10G", 24.0),)))
    played = play(Setting([slow], [an_arrival(0, "a", 100, speeds={"A10G": 0.25})], PLAIN), CHOSEN)
    assert played.jobs["a"].completion_s == 400


def test_a_start_takes_its_time() -> None:
    played = the_play(an_arrival(0, "a", 100), physics=Physics(start_s=5.0))
    assert played.jobs["a"].completion_s == 105


def giving_way(work_s: float, physics: Physics = HEEDLESS) -> Played:
    """Play a batch job that saves every 20 s, said to last 1000 s; 130 s in, another is urgent."""
    rules = QUIET.but(preempt=True, preempt_after_s=0.0)
    batch = an_arrival(
        0, "a", work_s, priority=20, duration_s=1000.0, checkpoint=CheckpointRule(every_s=20.0)
    )
    urgent = an_arrival(130, "urgent", 100, priority=90, duration_s=100.0)
    chosen = Chosen(Policies(Fifo(), BestFit(), rules), order="fifo", score="best-fit")
    return play(Setting([NODE], [batch, urgent], physics), chosen)


def test_a_job_that_gave_way_goes_on_from_its_last_checkpoint() -> None:
    played = giving_way(1000)
    # asked at 130, stopped at 133 with 120 s saved; urgent until 233; 7 s to restore, 880 s left
    assert played.jobs["urgent"].job.ended_at == 233
    assert played.jobs["a"].job.ended_at == 233 + 7 + 880
    assert played.jobs["a"].preemptions == 1
    kinds = [type(told.event) for told in played.store.events("a")]
    assert kinds.count(e.GaveWay) == 1
    assert played.jobs["a"].job.lost_s == 13


def test_a_job_that_saves_when_it_is_told_to_stop_loses_only_the_time_that_this_takes() -> None:
    played = giving_way(1000, PLAIN)
    # asked at 130, 130 s saved by 133; urgent until 233; 7 s to restore, 870 s left
    assert played.jobs["a"].job.ended_at == 233 + 7 + 870
    assert played.jobs["a"].job.lost_s == 0


def test_nothing_is_lost_where_starts_restores_and_stops_take_no_time() -> None:
    played = giving_way(1000, FREE)
    assert played.jobs["urgent"].job.ended_at == 230
    assert played.jobs["a"].job.ended_at == 1100
    assert played.jobs["a"].preemptions == 1
    assert played.jobs["a"].wait_s == 100


def test_a_job_that_ends_while_it_is_stopped_has_completed() -> None:
    played = giving_way(132)
    assert played.jobs["a"].job.ended_at == 132
    assert played.jobs["a"].preemptions == 0


def test_the_same_setting_gives_the_same_play() -> None:
    arrivals = [an_arrival(n * 7, f"j{n}", 30 + n, 0.5) for n in range(20)]
    once, again = the_play(*arrivals), the_play(*arrivals)
    assert once.stays == again.stays and once.jobs == again.jobs


def test_every_round_of_a_play_can_be_made_again() -> None:
    played = the_play(*(an_arrival(n * 7, f"j{n}", 30 + n, 0.5) for n in range(20)))
    number = 1
    while (stored := played.store.round(number)) is not None:
        assert plan_again(played.store, stored).model_dump_json() == stored.plan.model_dump_json()
        number += 1
    assert number > 20


def test_a_plan_that_the_checker_refuses_ends_the_play() -> None:
    def doubled(world: World) -> p.Plan:
        made = plan(world, CHOSEN.policies)
        return made.but(steps=(*made.steps, *made.steps))

    with pytest.raises(PlanRefused, match="one-place"):
        play(Setting([NODE], [an_arrival(0, "a", 1)], PLAIN), CHOSEN, doubled)


def test_what_can_never_run_is_told_as_not_completed() -> None:
    huge = an_arrival(0, "a", 100).spec.but(resources=wants(gpus=3))
    setting = Setting([NODE], [Arrival(0, "a", huge, 100)], PLAIN, at_most_s=5000.0)
    played = play(setting, CHOSEN)
    assert played.jobs["a"].completion_s is None
    assert played.jobs["a"].job.state is JobState.PENDING
