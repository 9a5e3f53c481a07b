"""Random worlds: never over capacity, never two places, nothing that a user forbade."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from makers import a_device, a_job, a_node, a_world

from cloudwhale.model import plan as p
from cloudwhale.model.event import OfJob
from cloudwhale.model.job import (
    GpuRequest,
    Job,
    JobState,
    Resources,
    Span,
    WhereRule,
    Wish,
)
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.world import Sighting, World
from cloudwhale.planning.checker import check
from cloudwhale.planning.decided import events_of
from cloudwhale.planning.lifecycle import apply
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Patience, Rules
from cloudwhale_policies.fits import BestFit, FirstFit, WorstFit
from cloudwhale_policies.order import Fifo, Priority
from cloudwhale_policies.whale_order import Whale as WhaleOrder

RULES = Rules(patience=Patience(attempt_lease_s=100.0, clock_skew_s=10.0))
MODELS = {"L4": 24.0, "A100-40GB": 40.0, "A100-80GB": 80.0}

policies = st.builds(
    Policies,
    st.sampled_from([Fifo(), Priority(), WhaleOrder()]),
    st.sampled_from([FirstFit(), BestFit(), WorstFit()]),
    st.just(RULES),
)
gpus = st.builds(
    GpuRequest,
    count=st.integers(0, 4),
    count_most=st.none(),
    memory_gib=st.builds(Span, least=st.sampled_from([0.0, 10.0, 24.0, 60.0])),
    models=st.sampled_from([(), ("A100",), ("L4",), ("L4", "A100-80GB")]),
    share=st.sampled_from([0.1, 0.25, 0.5, 1.0]),
)
demands = st.builds(
    Resources,
    gpu=gpus,
    cpu=st.sampled_from([0.0, 0.5, 1.0, 3.0, 40.0]),
    memory_gib=st.sampled_from([None, 1.0, 9.0, 200.0]),
    disk_gib=st.sampled_from([None, 50.0, 2000.0]),
)


@st.composite
def nodes(draw: st.DrawFn, node_id: str) -> Node:
    models = draw(st.lists(st.sampled_from(sorted(MODELS)), max_size=4))
    return a_node(
        node_id,
        cpu=draw(st.sampled_from([1.0, 4.0, 32.0])),
        devices=tuple(
            a_device(f"{node_id}-g{i}", model, MODELS[model]) for i, model in enumerate(models)
        ),
        labels=draw(st.sampled_from([{}, {"rack": "a"}, {"rack": "b"}])),
        state=draw(st.sampled_from(list(NodeState))),
    )


@st.composite
def jobs(draw: st.DrawFn, job_id: str, others: list[str], where: list[Node]) -> Job:
    job = a_job(
        job_id,
        resources=draw(demands),
        priority=draw(st.integers(0, 100)),
        deadline=draw(st.sampled_from([None, None, 50.0, 500.0])),
        where=draw(
            st.sampled_from(
                [WhereRule(), WhereRule(labels={"rack": "a"}), WhereRule(not_on=("n0",))]
            )
        ),
        market=draw(st.sampled_from(["auto", "auto", "local", "spot"])),
        max_duration_s=draw(st.sampled_from([None, 10.0, 1000.0])),
        submitted_at=draw(st.floats(0, 100)),
        after=tuple(draw(st.lists(st.sampled_from(others), max_size=2))) if others else (),
        wish=draw(st.sampled_from([None, None, None, *Wish])),
        not_before=draw(st.sampled_from([None, None, 90.0, 200.0])),
    )
    state = draw(st.sampled_from([JobState.PENDING] * 4 + [JobState.PAUSED, JobState.PARKED]))
    return job.but(state=state)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    where = [draw(nodes(f"n{i}")) for i in range(draw(st.integers(0, 4)))]
    some: list[Job] = []
    for number in range(draw(st.integers(0, 12))):
        some.append(draw(jobs(f"j{number}", [job.id for job in some], where)))
    heard = {
        node.id: Sighting(
            node=node.id,
            heard_at=draw(st.sampled_from([0.0, 60.0, 100.0])),
            agent_alive=draw(st.sampled_from([None, True, False])),
        )
        for node in where
    }
    world = a_world(some, where, now=draw(st.sampled_from([100.0, 105.0, 300.0])))
    return replace(world, sightings=heard)


def carried_out(world: World, made: p.Plan) -> World:
    """Return the world after the plan's own events, its jobs told to have started."""
    alive = dict(world.jobs)
    for event in events_of(made, world.now):
        if isinstance(event, OfJob) and event.job in alive:
            alive[event.job] = apply(alive[event.job], event)
    started = {
        name: job.but(state=JobState.RUNNING, order_posted=True, started_at=world.now)
        if job.state is JobState.STARTING
        else job
        for name, job in alive.items()
        if not job.ended
    }
    return replace(world, jobs=started, now=world.now + 7.0)


@given(world=worlds(), chosen=policies)
def test_no_plan_of_any_world_has_a_fault_in_three_rounds(world: World, chosen: Policies) -> None:
    for _ in range(3):
        made = plan(world, chosen)
        assert check(made, world, chosen.rules) == ()
        world = carried_out(world, made)


@given(world=worlds(), chosen=policies)
def test_the_same_world_gives_the_same_plan(world: World, chosen: Policies) -> None:
    again = replace(
        world,
        jobs=dict(reversed(list(world.jobs.items()))),
        nodes=dict(reversed(list(world.nodes.items()))),
    )
    assert plan(world, chosen).model_dump_json() == plan(again, chosen).model_dump_json()


@given(world=worlds(), chosen=policies)
def test_every_waiting_job_has_a_reason(world: World, chosen: Policies) -> None:
    made = plan(world, chosen)
    told = {getattr(step, "job", None) for step in made.steps}
    for job in world.jobs.values():
        if job.state is JobState.PENDING and job.wish in (None, Wish.CANCEL, Wish.PAUSE):
            assert job.id in told


@given(world=worlds(), chosen=policies)
def test_a_plan_that_was_carried_out_is_not_made_again(world: World, chosen: Policies) -> None:
    """The next round gives no second place to a job that the first has placed."""
    placed = {s.job for s in plan(world, chosen).steps if isinstance(s, p.Place)}
    after = carried_out(world, plan(world, chosen))
    again = {s.job for s in plan(after, chosen).steps if isinstance(s, p.Place)}
    assert not placed & again
