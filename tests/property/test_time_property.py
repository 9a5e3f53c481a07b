"""Random afternoons: whatever ends, comes and is stopped, no round breaks a rule about time."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st
from makers import a_device, a_job, a_node, a_world, wants

from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import Checkpoint, CheckpointRule, GpuRequest, Job, JobState, Wish
from cloudwhale.model.node import Node
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.world import Use, World
from cloudwhale.planning.checker import check
from cloudwhale.planning.decided import events_of
from cloudwhale.planning.lifecycle import apply
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Rules
from cloudwhale.spi.policy import priority_class
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Priority
from cloudwhale_policies.whale_order import Whale

RULES = Rules(shares={"a": 2.0, "b": 0.0}, preempt_after_s=30.0)
policies = st.builds(
    Policies, st.sampled_from([Whale(), Priority()]), st.just(BestFit()), st.just(RULES)
)
NODES = [
    a_node("big", cpu=8.0, devices=(a_device("b-0"), a_device("b-1"))),
    a_node("old", cpu=4.0, devices=(a_device("o-0", "L4", 24.0),)),
]


@dataclass(frozen=True, slots=True)
class Turn:
    """What happens between two rounds."""

    passes_s: float
    ends: int
    """Which of the running jobs ends; none when there are fewer."""
    comes: Job | None


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    gpus = draw(st.sampled_from([0, 1, 1, 2]))
    cpu = draw(st.sampled_from([0.5, 1.0, 4.0]))
    share = draw(st.sampled_from([0.3, 0.5, 1.0])) if gpus == 1 else 1.0
    return a_job(
        f"j{draw(st.integers(0, 10**6)):06}",
        resources=wants(cpu, gpu=GpuRequest(count=gpus, share=share)),
        priority=draw(st.sampled_from([0, 20, 33, 34, 50, 66, 67, 90, 100])),
        preemptible=draw(st.booleans()),
        project=draw(st.sampled_from(["a", "b", "c"])),
        duration_s=draw(st.sampled_from([None, 10.0, 600.0, 9000.0])),
        reference=draw(st.sampled_from([None, "A100-40GB"])),
        checkpoint=draw(st.sampled_from([None, CheckpointRule(every_s=60.0)])),
    )  # fmt: skip


turns = st.builds(
    Turn,
    passes_s=st.sampled_from([0.0, 1.0, 31.0, 700.0, 5000.0, 100_000.0]),
    ends=st.integers(0, 5),
    comes=st.one_of(st.none(), jobs()),
)


def after(world: World, made: p.Plan, turn: Turn) -> World:
    """Carry a plan out, let jobs start, stop and end, and let time pass."""
    alive = dict(world.jobs)
    for event in events_of(made, world.now):
        if isinstance(event, e.OfJob):
            alive[event.job] = apply(alive[event.job], event)
    now = world.now + turn.passes_s
    running = [job for job in alive.values() if job.state is JobState.RUNNING]
    for number, job in enumerate(running):
        if job.wish is Wish.GIVE_WAY and turn.passes_s > 0:
            why = Reason(code=Code.PREEMPTED, says="gave way")
            alive[job.id] = apply(
                job, e.GaveWay(at=now, job=job.id, attempt=job.attempt, reason=why)
            )
        elif number == turn.ends:
            del alive[job.id]
    for job in list(alive.values()):
        if job.state is JobState.STARTING:
            alive[job.id] = _started(job, now)
    if turn.comes is not None and turn.comes.id not in alive:
        alive[turn.comes.id] = turn.comes.but(submitted_at=now)
    return replace(world, now=now, jobs=alive)


def _started(job: Job, now: float) -> Job:
    started = apply(job, e.Started(at=now, job=job.id, attempt=job.attempt))
    if job.spec.checkpoint is None:
        return started
    saved = Checkpoint(
        attempt=job.attempt, seq=1, name="s", size_bytes=1, saved_at=now, manifest="m"
    )
    return apply(
        started, e.CheckpointSaved(at=now, job=job.id, attempt=job.attempt, checkpoint=saved)
    )


def a_beginning(some: list[Job]) -> World:
    nodes: list[Node] = list(NODES)
    return a_world(
        list({job.id: job for job in some}.values()), nodes, use={"a": Use(device_s=9e4, at=0.0)}
    )


afternoons = st.builds(a_beginning, st.lists(jobs(), max_size=8))


@given(world=afternoons, chosen=policies, some=st.lists(turns, min_size=1, max_size=8))
def test_no_round_of_an_afternoon_has_a_fault(
    world: World, chosen: Policies, some: list[Turn]
) -> None:
    for turn in some:
        made = plan(world, chosen)
        assert check(made, world, RULES) == ()
        again = replace(world, jobs=dict(reversed(list(world.jobs.items()))))
        assert plan(again, chosen) == made
        world = after(world, made, turn)


@given(world=afternoons, chosen=policies, some=st.lists(turns, min_size=1, max_size=8))
def test_whoever_gives_way_is_of_a_lower_class_than_somebody_who_waits(
    world: World, chosen: Policies, some: list[Turn]
) -> None:
    for turn in some:
        made = plan(world, chosen)
        told = [
            world.jobs[s.job]
            for s in made.steps
            if isinstance(s, p.Explain) and s.reason.code is Code.MAKES_ROOM
        ]
        for step in made.steps:
            if isinstance(step, p.AskToStop):
                victim = priority_class(world.jobs[step.job].spec.priority)
                assert any(priority_class(job.spec.priority) > victim for job in told)
        world = after(world, made, turn)


@given(world=afternoons, chosen=policies)
def test_rounds_at_one_instant_come_to_rest(world: World, chosen: Policies) -> None:
    still = Turn(passes_s=0.0, ends=99, comes=None)
    for _ in range(20):
        made = plan(world, chosen)
        if not any(isinstance(s, p.Place | p.Hold | p.AskToStop | p.Explain) for s in made.steps):
            return
        world = after(world, made, still)
    raise AssertionError("twenty rounds at one instant still change something")
