from dataclasses import replace

import pytest
from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import CheckpointRule, JobState, RetryCause, RetryRule, Wish
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.world import Sighting, World
from cloudwhale.planning.checker import check
from cloudwhale.planning.planner import HEAD_OF_QUEUE, Policies, plan
from cloudwhale.planning.rules import Patience, Rules
from cloudwhale_policies.fits import BestFit, FirstFit, WorstFit
from cloudwhale_policies.order import Fifo, Priority

POLICIES = Policies(
    Priority(), BestFit(), Rules(patience=Patience(attempt_lease_s=100.0, clock_skew_s=10.0))
)


def planned(world: World, policies: Policies = POLICIES) -> p.Plan:
    made = plan(world, policies)
    assert check(made, world, policies.rules) == ()
    return made


def places(made: p.Plan) -> dict[str, str]:
    return {s.job: s.placement.node for s in made.steps if isinstance(s, p.Place)}


def heard(world: World, at: float, *, alive: bool | None = None) -> World:
    seen = {n: Sighting(node=n, heard_at=at, agent_alive=alive) for n in world.nodes}
    return replace(world, sightings=seen)


def test_a_job_that_fits_here_is_placed_with_its_scores() -> None:
    made = planned(a_world([a_job("j")], [a_node("a"), a_node("b", cpu=64.0)]))
    assert places(made) == {"j": "a"}
    (decision,) = made.decisions
    assert decision.chosen is not None
    assert decision.chosen.scores == {"best-fit": decision.chosen.total}
    assert [rival.placement.node for rival in decision.rivals] == ["b"]


def test_worst_fit_takes_the_other_node_and_first_fit_the_first() -> None:
    world = a_world([a_job("j")], [a_node("a", cpu=2.0), a_node("b", cpu=64.0)])
    assert places(planned(world, replace(POLICIES, score=WorstFit()))) == {"j": "b"}
    assert places(planned(world, replace(POLICIES, score=FirstFit()))) == {"j": "a"}


def test_priority_goes_first_and_fifo_does_not_care() -> None:
    early = a_job("early", submitted_at=0.0, priority=10, resources=wants(cpu=2))
    late = a_job("late", submitted_at=5.0, priority=90, resources=wants(cpu=2))
    world = a_world([early, late])
    assert places(planned(world)) == {"late": "host"}
    assert places(planned(world, replace(POLICIES, order=Fifo()))) == {"early": "host"}


def test_a_waiting_job_says_what_it_needs_what_is_free_and_what_would_change_it() -> None:
    running = placed(a_job("running", resources=wants(cpu=1.5)))
    made = planned(a_world([running.but(order_posted=True), a_job("waiting")]))
    (step,) = made.steps
    assert isinstance(step, p.Explain)
    assert step.reason.code is Code.NO_ROOM_NOW
    assert step.reason.says == (
        "needs 1 CPU, host has 0.5 of 2 free; "
        "is to start on host about 01:00 UTC, when running ends"
    )
    assert "ends" in step.reason.change
    (decision,) = made.decisions
    assert decision.refused == {Code.CPU: 1}


def test_a_job_that_fits_nowhere_says_so_and_keeps_waiting() -> None:
    made = planned(a_world([a_job(resources=wants(gpus=1))]))
    (step,) = made.steps
    assert isinstance(step, p.Explain)
    assert step.reason.code is Code.NOTHING_FITS


def test_without_nodes_the_reason_says_so() -> None:
    (step,) = planned(a_world([a_job()], [])).steps
    assert isinstance(step, p.Explain)
    assert step.reason.code is Code.NO_NODES


@pytest.mark.parametrize("code", [Code.NO_CAPACITY, Code.QUOTA])
def test_who_waits_for_a_cloud_to_have_room_again_is_not_told_that_nothing_here_fits(
    code: Code,
) -> None:
    told = Reason(code=code, says="a cloud: none left now", change="asked for again later")
    made = planned(a_world([a_job(resources=wants(gpus=1), reason=told)]))
    assert made.steps == ()


def test_an_unchanged_reason_is_not_told_twice() -> None:
    running = placed(a_job("running", resources=wants(cpu=2)), "host").but(order_posted=True)
    waiting = a_job("waiting")
    first = planned(a_world([running, waiting])).steps[0]
    assert isinstance(first, p.Explain)
    again = planned(a_world([running, waiting.but(reason=first.reason)]))
    assert again.steps == ()
    assert again.decisions == ()


def test_far_back_in_the_queue_only_a_changed_code_is_told() -> None:
    running = placed(a_job("running", resources=wants(cpu=1.5))).but(order_posted=True)
    stale = planned(a_world([running, a_job("x", resources=wants(cpu=2))])).steps[0]
    assert isinstance(stale, p.Explain)
    waiting = [
        a_job(f"j-{n:03}", reason=stale.reason, resources=wants(cpu=1))
        for n in range(HEAD_OF_QUEUE + 30)
    ]
    made = planned(a_world([running, *waiting]))
    assert len(made.steps) == HEAD_OF_QUEUE


def test_jobs_of_one_round_never_share_what_only_one_can_have() -> None:
    jobs = [a_job(f"j-{n}", resources=wants(cpu=0.1, gpus=1)) for n in range(3)]
    made = planned(a_world(jobs, [a_node(devices=(a_device("g-0"), a_device("g-1")))]))
    devices = [s.placement.devices for s in made.steps if isinstance(s, p.Place)]
    assert sorted(devices) == [("g-0",), ("g-1",)]


def test_a_job_waits_for_what_it_depends_on_and_starts_when_that_has_completed() -> None:
    first, second = placed(a_job("first")).but(order_posted=True), a_job("second", after=("first",))
    (step,) = planned(a_world([first, second])).steps
    assert isinstance(step, p.Explain)
    assert step.reason.code is Code.WAITS_FOR_JOB
    done = a_world([second], ended={"first": JobState.COMPLETED})
    assert places(planned(done)) == {"second": "host"}


def test_a_failed_dependency_ends_the_job() -> None:
    world = a_world([a_job(after=("first",))], ended={"first": JobState.FAILED})
    (step,) = planned(world).steps
    assert isinstance(step, p.GiveUp)
    assert step.reason.code is Code.DEPENDENCY_FAILED


def test_a_retry_waits_for_its_backoff_and_the_plan_says_when_to_look_again() -> None:
    job = a_job(not_before=30.0, attempt=1, retries=1)
    made = planned(a_world([job], now=10.0))
    assert places(made) == {}
    assert made.look_again_at == 30.0
    assert places(planned(a_world([job], now=30.0))) == {"train-1": "host"}


@pytest.mark.parametrize(("tries", "told"), [(1, "tried once, "), (2, "tried 2 times, ")])
def test_a_wait_between_tries_says_how_many_there_were(tries: int, told: str) -> None:
    (step,) = planned(a_world([a_job(not_before=30.0, attempt=tries, retries=1)])).steps
    assert isinstance(step, p.Explain)
    assert step.reason.says.startswith(told)


def test_a_passed_deadline_parks_a_job_that_has_not_started() -> None:
    (step,) = planned(a_world([a_job(deadline=5.0)], now=6.0)).steps
    assert isinstance(step, p.Park)


def test_an_order_that_is_not_known_to_be_posted_is_posted_again() -> None:
    (step,) = planned(a_world([placed(a_job("j"))])).steps
    assert step == p.PostStart(job="j", attempt=1)


def test_a_wish_goes_out_whether_the_start_is_known_to_be_posted_or_not() -> None:
    job = placed(a_job("j")).but(wish=Wish.CANCEL)
    assert planned(a_world([job])).steps == (p.PostStop(job="j", attempt=1),)
    job = job.but(order_posted=True)
    assert planned(a_world([job])).steps == (p.PostStop(job="j", attempt=1),)
    assert planned(a_world([job.but(stop_posted=True)])).steps == ()


def test_a_job_that_is_not_running_is_dropped_as_its_wish_says() -> None:
    cancelled = planned(a_world([a_job(wish=Wish.CANCEL)])).steps[0]
    paused = planned(a_world([a_job(wish=Wish.PAUSE)])).steps[0]
    parked = planned(a_world([a_job(state=JobState.PARKED, wish=Wish.CANCEL)])).steps[0]
    assert isinstance(cancelled, p.Drop) and cancelled.wish == "cancel"
    assert isinstance(paused, p.Drop) and paused.wish == "pause"
    assert isinstance(parked, p.Drop) and parked.wish == "cancel"


def running(**fields: object) -> World:
    job = placed(a_job("j", **fields)).but(
        state=JobState.RUNNING, order_posted=True, started_at=0.0
    )
    return a_world([job])


def test_a_job_is_stopped_at_its_max_duration_and_not_before() -> None:
    world = running(max_duration_s=50.0)
    early = planned(replace(world, now=49.0))
    assert early.steps == ()
    assert early.look_again_at == pytest.approx(50.0, abs=0.01)
    (step,) = planned(replace(world, now=50.0)).steps
    assert isinstance(step, p.AskToStop)
    assert step.wish == "limit"


def test_a_job_without_a_checkpoint_for_twice_its_interval_is_reported() -> None:
    world = running(checkpoint=CheckpointRule(every_s=10.0))
    assert planned(replace(world, now=19.0)).steps == ()
    (step,) = planned(replace(world, now=20.0)).steps
    assert isinstance(step, p.Late)
    assert step.reason.code is Code.CHECKPOINT_LATE


def test_a_silent_node_is_lost_after_its_lease_and_its_attempts_with_it() -> None:
    world = heard(running(), at=0.0)
    assert planned(replace(world, now=99.5)).steps == ()
    (step,) = planned(replace(world, now=100.5)).steps
    assert isinstance(step, p.DeclareLost)
    assert step.attempts == (("j", 1),)


def test_a_silence_that_lasts_a_moment_less_than_a_lease_is_not_looked_at_in_a_circle() -> None:
    """While nobody listens, a silence gets no longer."""
    now = 100.0 - 1e-7
    at = planned(replace(heard(running(), at=0.0), now=now)).look_again_at
    assert at is not None and at >= now + 0.1


def test_a_lost_attempt_is_out_only_after_lease_and_skew() -> None:
    job = placed(a_job("j")).but(state=JobState.RECOVERING, order_posted=True, started_at=0.0)
    world = heard(a_world([job], [a_node(state=NodeState.LOST)]), at=0.0)
    assert not any(isinstance(s, p.Clear) for s in planned(replace(world, now=109.5)).steps)
    clear = next(s for s in planned(replace(world, now=111.0)).steps if isinstance(s, p.Clear))
    assert clear.attempt == 1


def test_an_agent_with_a_longer_lease_is_borne_with_as_long_as_its_jobs_may_run() -> None:
    world = heard(running(), at=0.0)
    patient = replace(world, nodes={"host": a_node(lease_s=300.0)})
    assert planned(replace(patient, now=299.5)).steps == ()
    (step,) = planned(replace(patient, now=300.5)).steps
    assert isinstance(step, p.DeclareLost)
    assert "its lease of 300 s" in step.reason.says

    job = placed(a_job("j")).but(state=JobState.RECOVERING, order_posted=True, started_at=0.0)
    there = a_node(state=NodeState.LOST, lease_s=300.0)
    world = heard(a_world([job], [there]), at=0.0)
    early = planned(replace(world, now=309.5))
    assert not any(isinstance(s, p.Clear) for s in early.steps)
    assert early.look_again_at == pytest.approx(310.0, abs=0.1)
    assert any(isinstance(s, p.Clear) for s in planned(replace(world, now=311.0)).steps)


def test_an_agent_with_a_shorter_lease_is_borne_with_as_long_as_any_other() -> None:
    world = heard(running(), at=0.0)
    world = replace(world, nodes={"host": a_node(lease_s=30.0)})
    assert planned(replace(world, now=99.5)).steps == ()


def lost(**fields: object) -> World:
    job = placed(a_job("j", **fields)).but(state=JobState.RECOVERING, started_at=0.0)
    world = heard(a_world([job], [a_node(state=NodeState.LOST)]), at=0.0)
    return replace(world, now=111.0)


def test_a_lost_attempt_is_not_followed_by_another_when_nobody_wants_a_retry() -> None:
    for rule in (RetryRule(max=0), RetryRule(on=(RetryCause.ERROR,))):
        (step,) = (s for s in planned(lost(retry=rule)).steps if not isinstance(s, p.Explain))
        assert isinstance(step, p.GiveUp)


def test_a_cancelled_job_whose_node_was_lost_is_dropped_once_it_is_out() -> None:
    world = lost()
    cancelled = replace(world, jobs={"j": world.jobs["j"].but(wish=Wish.CANCEL)})
    steps = planned(cancelled).steps
    assert any(isinstance(s, p.Drop) and s.wish == "cancel" for s in steps)
    early = planned(replace(cancelled, now=109.0)).steps
    assert not any(isinstance(s, p.Drop) for s in early)


def test_a_node_that_is_heard_again_is_asked_how_its_attempt_is() -> None:
    job = placed(a_job("j")).but(state=JobState.RECOVERING, started_at=0.0)
    world = heard(a_world([job]), at=0.0)
    assert p.PostStart(job="j", attempt=1) in planned(world).steps
    wished = replace(world, jobs={"j": job.but(wish=Wish.CANCEL)})
    assert p.PostStop(job="j", attempt=1) in planned(wished).steps


def test_a_sleeping_agent_is_woken_when_there_is_something_to_do() -> None:
    busy = heard(a_world([a_job()]), at=0.0, alive=False)
    assert p.WakeAgent(node="host") in planned(busy).steps
    idle = heard(a_world([]), at=0.0, alive=False)
    assert planned(idle).steps == ()


def test_the_same_world_gives_the_same_plan() -> None:
    jobs = [a_job(f"j-{n}", priority=n % 3, resources=wants(cpu=0.5)) for n in range(20)]
    world = a_world(jobs, [a_node("a"), a_node("b")])
    assert plan(world, POLICIES).model_dump_json() == plan(world, POLICIES).model_dump_json()
