"""A play is the real planner and store over pretend machines: its arithmetic, and its sameness."""

from typing import Any

import pytest
from makers import a_device, a_node, a_spec, wants

from cloudwhale.control.controller import Chosen
from cloudwhale.control.replay import plan_again
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import CheckpointRule, GpuRequest, JobState, Span
from cloudwhale.model.reason import Code, Reason
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


def stopping_at(at: float) -> Played:
    """Play one job of 100 s that saves every 20 s and is asked to give way once."""
    saving = an_arrival(0, "a", 100, checkpoint=CheckpointRule(every_s=20.0))
    bell = an_arrival(at, "bell", 1)  # only so that a round is planned then

    def decide(world: World) -> p.Plan:
        made = plan(world, CHOSEN.policies)
        job = world.jobs.get("a")
        if world.now != at or job is None or job.wish is not None or job.attempt > 1:
            return made
        reason = Reason(code=Code.PREEMPTED, says="for the test")
        stop = p.AskToStop(job="a", attempt=job.attempt, wish="give-way", reason=reason)
        return made.but(steps=(*made.steps, stop))

    return play(Setting([NODE], [saving, bell], PLAIN), CHOSEN, decide)


def test_a_job_that_gave_way_goes_on_from_its_last_checkpoint() -> None:
    played = stopping_at(50)
    # stopped at 53 with 40 s saved; fifo gives it the device again, 7 s to restore, 60 s of work
    assert played.jobs["a"].job.ended_at == 53 + 7 + 60
    assert played.jobs["a"].preemptions == 1
    kinds = [type(told.event) for told in played.store.events("a")]
    assert kinds.count(e.GaveWay) == 1
    assert played.jobs["a"].job.lost_s == 13


def test_a_job_that_ends_while_it_is_stopped_has_completed() -> None:
    assert stopping_at(99).jobs["a"].job.ended_at == 100


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
