"""Each rule about time catches five planted faults, and lets the honest plan pass."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import GpuRequest, Job, JobState, Placement, Span, Wish
from cloudwhale.model.node import DeviceUse, Measured, Node, NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.world import Sighting, World
from cloudwhale.planning import checker, checker_waits
from cloudwhale.planning.rules import Rules

RULES = Rules(preempt_after_s=60.0)
NOW = 1000.0
MAKES_ROOM = Reason(code=Code.MAKES_ROOM, says="others give way")
PREEMPTED = Reason(code=Code.PREEMPTED, says="gives way")
HELD = Reason(code=Code.HELD, says="a better place comes")
PLACED = Reason(code=Code.PLACED, says="because")


def running(job_id: str = "low", since: float = 0.0, **fields: object) -> Job:
    job = placed(a_job(job_id, **{"priority": 20, "resources": wants(cpu=2), **fields}))
    return job.but(
        state=JobState.RUNNING, order_posted=True, started_at=since, reason=PLACED, attempt=1
    )


def urgent(job_id: str = "high", **fields: object) -> Job:
    return a_job(job_id, **{"priority": 80, "resources": wants(cpu=2), **fields})


def a_plan(*steps: p.Step) -> p.Plan:
    return p.Plan(version=1, steps=steps)


def stop(job: str = "low", attempt: int = 1) -> p.AskToStop:
    return p.AskToStop(job=job, attempt=attempt, wish="give-way", reason=PREEMPTED)


def told(job: str = "high") -> p.Explain:
    return p.Explain(job=job, reason=MAKES_ROOM)


def hold(until: float = NOW + 100, job: str = "high") -> p.Hold:
    return p.Hold(job=job, until=until, reason=HELD)


def place(job: str, *devices: str, node: str = "host") -> p.Place:
    return p.Place(
        job=job, attempt=1, placement=Placement(node=node, devices=devices), reason=PLACED
    )


def world(*jobs: Job, nodes: list[Node] | None = None) -> World:
    return a_world(list(jobs), nodes, now=NOW)


GIVES = a_plan(stop(), told())
BOTH = world(running(), urgent())


def owed(*others: Job) -> World:
    """A node on which one job gives way for `high`, and others wait."""
    leaves = running().but(wish=Wish.GIVE_WAY)
    high = urgent(resources=wants(cpu=2.5)).but(reason=MAKES_ROOM)
    return world(leaves, high, *others, nodes=[a_node(cpu=3.0)])


def small(**fields: object) -> Job:
    return a_job("small", **{"resources": wants(cpu=1.0), **fields})


def seen(foreign: Mapping[str, float], *jobs: Job) -> World:
    use = {name: DeviceUse(used_gib=gib, foreign_gib=gib) for name, gib in foreign.items()}
    heard = Sighting(node="host", heard_at=NOW, measured=Measured(devices=use))
    node = a_node(devices=(a_device("g-0"), a_device("g-1")))
    return replace(world(*jobs, nodes=[node]), sightings={"host": heard})


def gpu_job(share: float = 1.0, gib: float = 0.0, count: int = 1) -> Job:
    gpu = GpuRequest(count=count, share=share, memory_gib=Span(least=gib))
    return a_job("j", resources=wants(cpu=0, gpu=gpu))


NOTHING = a_plan()

DISPLACES = RULES.but(displace=True)
CLASSLESS = DISPLACES.but(classless=True)
MOUNTS = world(
    running(), urgent(mounts={"/data-of-others": "/in"}),
    nodes=[a_node(facts=a_node().facts.but(mounts=("/data",)))],
)  # fmt: skip
LIES_IN = replace(MOUNTS, jobs={**MOUNTS.jobs, "high": urgent(mounts={"/data/a": "/in"})})

FAULTS: list[tuple[str, World, p.Plan, Rules]] = [
    # who is stopped for another
    ("victims", world(running(since=NOW - 59), urgent()), GIVES, RULES),
    ("victims", world(running(preemptible=False), urgent()), GIVES, RULES),
    ("victims", world(running().but(wish=Wish.GIVE_WAY), urgent()), GIVES, RULES),
    ("victims", world(running().but(state=JobState.RECOVERING), urgent()), GIVES, RULES),
    ("victims", world(running().but(reason=PLACED.but(code=Code.AGED)), urgent()), GIVES, RULES),
    ("victims", BOTH, a_plan(stop(), stop(), told()), RULES),
    ("victims", BOTH, GIVES, RULES.but(preempt=False)),
    ("victims", world(running().but(started_at=None), urgent()), GIVES, RULES),
    # and for whom
    ("not-in-vain", BOTH, a_plan(stop()), RULES),
    ("not-in-vain", world(running(priority=80), urgent()), GIVES, RULES),
    ("not-in-vain", world(running(priority=67), urgent(priority=100)), GIVES, RULES),
    ("not-in-vain", world(running(), urgent(priority=33)), GIVES, RULES),
    ("not-in-vain", world(running(), urgent(resources=wants(cpu=2.1))), GIVES, RULES),
    ("not-in-vain", world(running(), urgent(resources=wants(cpu=1, gpus=1))), GIVES, RULES),
    ("not-in-vain", BOTH, a_plan(stop(), told(), place("high")), RULES),
    (
        "not-in-vain",
        world(running(), running("old", priority=80).but(reason=MAKES_ROOM)),
        a_plan(stop(), told("old")),
        RULES,
    ),
    ("not-in-vain", world(running(priority=80), urgent(priority=50)), GIVES, DISPLACES),
    ("not-in-vain", BOTH, a_plan(stop()), CLASSLESS),
    ("not-in-vain", MOUNTS, GIVES, RULES),
    # holds
    ("holds", BOTH, a_plan(hold(until=NOW)), RULES),
    ("holds", BOTH, a_plan(hold(until=NOW + 3601)), RULES),
    ("holds", BOTH, a_plan(hold(job="low")), RULES),
    ("holds", BOTH, a_plan(hold(), hold()), RULES),
    ("holds", world(urgent().but(held_until=NOW - 5)), a_plan(hold()), RULES),
    ("holds", world(urgent().but(wish=Wish.CANCEL)), a_plan(hold()), RULES),
    ("holds", world(urgent()), a_plan(hold(), place("high")), RULES),
    ("holds", BOTH, a_plan(hold()), RULES.but(hold=False)),
    # room that is being made
    ("kept-room", owed(small(resources=wants(cpu=0.6))), a_plan(place("small")), RULES),
    ("kept-room", owed(small()), a_plan(place("small")), RULES),
    ("kept-room", owed(small(priority=100)), a_plan(place("small")), RULES),
    ("kept-room", owed(urgent("other", resources=wants(cpu=0.9))), a_plan(place("other")), RULES),
    (
        "kept-room",
        owed(a_job("a", resources=wants(cpu=0.4)), a_job("b", resources=wants(cpu=0.4))),
        a_plan(place("a"), place("b")),
        RULES,
    ),
    ("kept-room", owed(small(reason=HELD)), a_plan(place("small")), RULES),
    # device memory that others use
    ("foreign-use", seen({"g-0": 2.5}, gpu_job()), a_plan(place("j", "g-0")), RULES),
    ("foreign-use", seen({"g-0": 30.0}, gpu_job(0.5, 12.0)), a_plan(place("j", "g-0")), RULES),
    ("foreign-use", seen({"g-1": 39.0}, gpu_job(0.1)), a_plan(place("j", "g-1")), RULES),
    (
        "foreign-use",
        seen({"g-1": 20.0}, gpu_job(count=2)),
        a_plan(place("j", "g-0", "g-1")),
        RULES,
    ),
    ("foreign-use", seen({"g-0": 21.0}, gpu_job(0.5)), a_plan(place("j", "g-0")), RULES),
    # what a user has set
    ("sane-rules", world(), NOTHING, RULES.but(weights={"fit": 0.5, "strand": 0.4})),
    ("sane-rules", world(), NOTHING, RULES.but(weights={"fit": 1.5, "strand": -0.5})),
    ("sane-rules", world(), NOTHING, RULES.but(weights={"fit": math.nan})),
    ("sane-rules", world(), NOTHING, RULES.but(shares={"nlp": -1.0})),
    ("sane-rules", world(), NOTHING, RULES.but(shares={"nlp": math.inf})),
    ("sane-rules", world(), NOTHING, RULES.but(preempt_after_s=-1.0)),
]

HONEST: list[tuple[World, p.Plan, Rules]] = [
    (BOTH, GIVES, RULES),
    (LIES_IN, GIVES, RULES),
    (world(running(priority=80), urgent()), GIVES, DISPLACES),
    (world(running(priority=80), urgent(priority=50)), GIVES, CLASSLESS),
    (world(urgent()), a_plan(hold(until=NOW + 3600)), RULES),
    (owed(small(resources=wants(cpu=0.5))), a_plan(place("small")), RULES),
    (owed(small()), NOTHING, RULES),
    (
        replace(
            owed(small()),
            nodes={"host": a_node(cpu=3.0), "next": a_node("next", cpu=4.0)},
        ),
        a_plan(place("small", node="next")),
        RULES,
    ),
    (seen({"g-0": 2.0}, gpu_job()), a_plan(place("j", "g-0")), RULES),
    (seen({"g-0": 19.0}, gpu_job(0.5)), a_plan(place("j", "g-0")), RULES),
    (seen({"g-0": 30.0}, gpu_job()), a_plan(place("j", "g-1")), RULES),
    (world(), NOTHING, RULES.but(weights={"fit": 0.6, "strand": 0.4}, shares={"nlp": 0.0})),
]


@pytest.mark.parametrize(
    ("rule", "of", "made", "rules"),
    FAULTS,
    ids=[f"{rule}-{n}" for n, (rule, *_) in enumerate(FAULTS)],
)
def test_a_planted_fault_is_caught_by_its_rule(
    rule: str, of: World, made: p.Plan, rules: Rules
) -> None:
    assert rule in {fault.rule for fault in checker.check(made, of, rules)}


@pytest.mark.parametrize(("of", "made", "rules"), HONEST)
def test_an_honest_plan_passes(of: World, made: p.Plan, rules: Rules) -> None:
    assert checker.check(made, of, rules) == ()


def test_every_rule_about_time_has_five_planted_faults() -> None:
    planted = [rule for rule, *_ in FAULTS]
    names = {rule.__name__.replace("_", "-") for rule in checker_waits.RULES}
    assert names == set(planted)
    assert min(planted.count(name) for name in names) >= 5


@pytest.mark.parametrize("broken", checker_waits.RULES, ids=lambda rule: rule.__name__)
def test_no_rule_about_time_stands_in_for_another(
    broken: checker.Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = broken.__name__.replace("_", "-")
    monkeypatch.setattr(checker, "RULES", tuple(r for r in checker.RULES if r is not broken))
    passed = [
        rule
        for rule, of, made, rules in FAULTS
        if rule == name and not checker.check(made, of, rules)
    ]
    assert passed


def test_a_node_that_is_lost_makes_no_room_for_anybody() -> None:
    lost = owed(small())
    gone = replace(lost, nodes={"host": lost.nodes["host"].but(state=NodeState.DRAINING)})
    faults = checker.check(a_plan(place("small")), gone, RULES)
    assert "kept-room" not in {fault.rule for fault in faults}
