"""Each rule of the checker catches five planted faults, and lets the honest plan pass."""

from dataclasses import replace

import pytest
from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import GpuRequest, Job, JobState, Placement, Span, WhereRule, Wish
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import MicroUsd
from cloudwhale.model.world import Account, Sighting, World
from cloudwhale.planning import (
    checker,
    checker_company,
    checker_deadlines,
    checker_homes,
    checker_money,
    checker_nights,
    checker_projects,
    checker_waits,
)
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Patience, Rules
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Fifo

OF_OTHERS = (
    *checker_waits.RULES, *checker_money.RULES, *checker_projects.RULES, *checker_homes.RULES,
    *checker_company.RULES, *checker_deadlines.RULES,
    *checker_nights.RULES,
)  # fmt: skip
OF_FACTS = [rule for rule in checker.RULES if rule not in OF_OTHERS]
RULES = Rules(patience=Patience(attempt_lease_s=100.0, clock_skew_s=10.0))
WHY = Reason(code=Code.PLACED, says="because")


def place(job: str = "j", attempt: int = 1, node: str = "host", *devices: str) -> p.Place:
    return p.Place(
        job=job, attempt=attempt, placement=Placement(node=node, devices=devices), reason=WHY
    )


def a_plan(*steps: p.Step, version: int = 1) -> p.Plan:
    return p.Plan(version=version, steps=steps)


def job(**fields: object) -> Job:
    return a_job("j", **fields)


def gpu(**fields: object) -> object:
    return wants(cpu=0, gpu=GpuRequest.model_validate({"count": 1, **fields}))


GPUS = a_node(devices=(a_device("g-0"), a_device("g-1"), a_device("l-0", "L4", 24.0)))
ONE = a_world([job()])
RUNNING = placed(job()).but(state=JobState.RUNNING, order_posted=True, started_at=0.0)
LOST = placed(job()).but(state=JobState.RECOVERING, order_posted=True, started_at=0.0)


def silent(job: Job, for_s: float, lease_s: float | None = None) -> World:
    heard = {"host": Sighting(node="host", heard_at=0.0)}
    return replace(a_world([job], [a_node(lease_s=lease_s)]), now=for_s, sightings=heard)


def lost(node: str = "host") -> p.DeclareLost:
    return p.DeclareLost(node=node, silent_s=1.0, reason=WHY)


def account(limit: int | None, reserved: int, spent: int) -> World:
    held = Account(
        payer="run-1",
        limit=None if limit is None else MicroUsd(limit),
        reserved=MicroUsd(reserved),
        spent=MicroUsd(spent),
    )
    return a_world([], accounts={"run-1": held})


FAULTS: list[tuple[str, World, p.Plan]] = [
    # the plan is of this world
    *(("version", ONE, a_plan(place(), version=n)) for n in (0, 2, 3, 99, -1)),
    # every step is about something that exists
    ("subjects", ONE, a_plan(place(job="ghost"))),
    ("subjects", ONE, a_plan(place("j", 1, "nowhere"))),
    ("subjects", ONE, a_plan(p.PostStop(job="ghost", attempt=1))),
    ("subjects", ONE, a_plan(p.WakeAgent(node="nowhere"))),
    ("subjects", ONE, a_plan(p.GiveUp(job="ghost", reason=WHY))),
    # one place for a job
    ("one-place", ONE, a_plan(place(), place())),
    ("one-place", a_world([RUNNING]), a_plan(place(attempt=2))),
    ("one-place", a_world([LOST]), a_plan(place(attempt=2))),
    ("one-place", a_world([job(state=JobState.PAUSED)]), a_plan(place())),
    ("one-place", a_world([job(wish=Wish.CANCEL)]), a_plan(place())),
    # attempts are counted without gaps
    ("fences", ONE, a_plan(place(attempt=0))),
    ("fences", ONE, a_plan(place(attempt=2))),
    ("fences", a_world([RUNNING]), a_plan(p.PostStop(job="j", attempt=2))),
    ("fences", a_world([RUNNING]), a_plan(p.PostStart(job="j", attempt=0))),
    ("fences", a_world([LOST]), a_plan(p.Clear(job="j", attempt=3))),
    # CPU, memory and disk of a node
    ("capacity", a_world([job(resources=wants(cpu=2.1))]), a_plan(place())),
    ("capacity", a_world([job(resources=wants(memory_gib=17.0))]), a_plan(place())),
    ("capacity", a_world([job(resources=wants(disk_gib=100.5))]), a_plan(place())),
    (
        "capacity",
        a_world([placed(a_job("other", resources=wants(cpu=1.5))), job()]),
        a_plan(place()),
    ),
    (
        "capacity",
        a_world([a_job("a", resources=wants(cpu=1.2)), a_job("b", resources=wants(cpu=1.2))]),
        a_plan(place("a"), place("b")),
    ),
    # share and memory of a device
    (
        "device-capacity",
        a_world([placed(a_job("o", resources=gpu()), "host", "g-0"), job(resources=gpu())], [GPUS]),
        a_plan(place("j", 1, "host", "g-0")),
    ),
    (
        "device-capacity",
        a_world(
            [a_job("a", resources=gpu(share=0.6)), a_job("b", resources=gpu(share=0.6))], [GPUS]
        ),
        a_plan(place("a", 1, "host", "g-1"), place("b", 1, "host", "g-1")),
    ),
    (
        "device-capacity",
        a_world(
            [
                a_job(name, resources=gpu(share=0.5, memory_gib=Span(least=30.0)))
                for name in ("a", "b")
            ],
            [GPUS],
        ),
        a_plan(place("a", 1, "host", "g-0"), place("b", 1, "host", "g-0")),
    ),
    (
        "device-capacity",
        a_world([job(resources=gpu(share=1.0, memory_gib=Span(least=41.0)))], [GPUS]),
        a_plan(place("j", 1, "host", "g-0")),
    ),
    (
        "device-capacity",
        a_world(
            [
                placed(a_job("o", resources=gpu(share=0.2)), "host", "g-0").but(
                    state=JobState.RECOVERING
                ),
                job(resources=gpu(share=0.9)),
            ],
            [GPUS],
        ),
        a_plan(place("j", 1, "host", "g-0")),
    ),
    # number, model and memory of GPUs
    ("devices-suit", a_world([job(resources=gpu())], [GPUS]), a_plan(place())),
    (
        "devices-suit",
        a_world([job(resources=gpu())], [GPUS]),
        a_plan(place("j", 1, "host", "g-0", "g-1")),
    ),
    (
        "devices-suit",
        a_world([job(resources=gpu(count=2))], [GPUS]),
        a_plan(place("j", 1, "host", "g-0", "g-0")),
    ),
    (
        "devices-suit",
        a_world([job(resources=gpu(models=("A100",)))], [GPUS]),
        a_plan(place("j", 1, "host", "l-0")),
    ),
    (
        "devices-suit",
        a_world([job(resources=gpu(memory_gib=Span(least=40.0)))], [GPUS]),
        a_plan(place("j", 1, "host", "l-0")),
    ),
    # what the user forbade
    ("rules-of-the-user", a_world([job(where=WhereRule(not_on=("host",)))]), a_plan(place())),
    ("rules-of-the-user", a_world([job(where=WhereRule(labels={"a": "b"}))]), a_plan(place())),
    ("rules-of-the-user", a_world([job(market="spot")]), a_plan(place())),
    ("rules-of-the-user", a_world([job(image="debian:12")]), a_plan(place())),
    ("rules-of-the-user", a_world([job(deadline=0.0)]), a_plan(place())),
    *(
        ("nodes-take-jobs", a_world([some], [a_node(state=state)]), a_plan(place()))
        for some, state in (
            (job(), NodeState.DRAINING),
            (job(), NodeState.LOST),
            (job(secrets=("TOKEN",)), NodeState.EXPECTED),
            (job(secrets=("TOKEN",)), NodeState.LOST),
            (job(priority=100), NodeState.DRAINING),
        )
    ),
    ("rules-of-the-user", a_world([job(not_before=5.0)]), a_plan(place())),
    ("rules-of-the-user", a_world([job(mounts={"/data": "/data"})]), a_plan(place())),
    (
        "rules-of-the-user",
        a_world([job(mounts={"/database": "/data"})], [a_node(mounts=("/data",))]),
        a_plan(place()),
    ),
    ("rules-of-the-user", a_world([job()], [a_node(runtimes=("container",))]), a_plan(place())),
    (
        "devices-suit",
        a_world([job(resources=gpu(models=("L4",)))], [a_node(devices=(a_device("x", "L40S"),))]),
        a_plan(place("j", 1, "host", "x")),
    ),
    (
        "devices-suit",
        a_world([job(resources=gpu(memory_gib=Span(most=24.0)))], [GPUS]),
        a_plan(place("j", 1, "host", "g-0")),
    ),
    ("not-too-early", silent(LOST, 109.0), a_plan(p.GiveUp(job="j", reason=WHY))),
    ("not-too-early", silent(LOST, 10.0), a_plan(p.Drop(job="j", wish="cancel", reason=WHY))),
    # a gang whole or not at all
    *(("gangs", a_world([job(nodes=n)]), a_plan(place())) for n in (2, 3, 4, 8, 64)),
    # nothing before what it waits for
    ("dependencies", a_world([placed(a_job("o")), job(after=("o",))]), a_plan(place())),
    ("dependencies", a_world([a_job("o"), job(after=("o",))]), a_plan(place("o"), place())),
    (
        "dependencies",
        a_world([job(after=("o",))], ended={"o": JobState.FAILED}),
        a_plan(place()),
    ),
    (
        "dependencies",
        a_world([job(after=("o",))], ended={"o": JobState.CANCELLED}),
        a_plan(place()),
    ),
    (
        "dependencies",
        a_world([a_job("p"), job(after=("o", "p"))], ended={"o": JobState.COMPLETED}),
        a_plan(place()),
    ),
    # nothing counts as lost too early
    ("not-too-early", silent(RUNNING, 99.0), a_plan(lost())),
    ("not-too-early", a_world([RUNNING]), a_plan(lost())),
    ("not-too-early", silent(LOST, 109.0), a_plan(p.Clear(job="j", attempt=1))),
    ("not-too-early", a_world([LOST]), a_plan(p.Clear(job="j", attempt=1))),
    ("not-too-early", silent(LOST, 500.0), a_plan(lost("elsewhere"))),
    # an agent with a longer lease runs its jobs longer
    ("not-too-early", silent(RUNNING, 299.0, lease_s=300.0), a_plan(lost())),
    ("not-too-early", silent(LOST, 309.0, lease_s=300.0), a_plan(p.Clear(job="j", attempt=1))),
    # nobody has taken money who was given none; a limit may have been lowered since
    ("accounts", account(None, 1, 0), a_plan()),
    ("accounts", account(None, 0, 1), a_plan()),
    ("accounts", account(0, 0, -1), a_plan()),
    ("accounts", account(100, -1, 0), a_plan()),
    ("accounts", account(100, 0, -5), a_plan()),
]


@pytest.mark.parametrize(
    ("rule", "world", "made"),
    FAULTS,
    ids=[f"{rule}-{n}" for n, (rule, *_) in enumerate(FAULTS)],
)
def test_a_planted_fault_is_caught_by_its_rule(rule: str, world: World, made: p.Plan) -> None:
    assert rule in {fault.rule for fault in checker.check(made, world, RULES)}


def test_every_rule_has_five_planted_faults() -> None:
    planted = [rule for rule, *_ in FAULTS]
    rules = {rule.__name__.replace("_", "-") for rule in OF_FACTS}
    assert rules == set(planted)
    assert min(planted.count(rule) for rule in rules) >= 5


@pytest.mark.parametrize("broken", OF_FACTS, ids=lambda rule: rule.__name__)
def test_no_rule_stands_in_for_another(
    broken: checker.Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the rule at least one of its five faults passes: the others do not cover it."""
    name = broken.__name__.replace("_", "-")
    monkeypatch.setattr(checker, "RULES", tuple(r for r in checker.RULES if r is not broken))
    passed = [
        rule
        for rule, world, made in FAULTS
        if rule == name and not checker.check(made, world, RULES)
    ]
    assert passed


def test_the_planners_own_plan_has_no_fault() -> None:
    policies = Policies(Fifo(), BestFit(), RULES)
    world = a_world([job(resources=gpu(share=0.5)), a_job("k", resources=gpu(count=2))], [GPUS])
    made = plan(world, policies)
    assert len([s for s in made.steps if isinstance(s, p.Place)]) == 2
    assert checker.check(made, world, RULES) == ()


def test_a_budget_that_is_lowered_below_what_is_taken_stops_no_plan() -> None:
    assert checker.check(a_plan(), account(100, 60, 60), RULES) == ()


def test_a_job_on_a_device_that_is_gone_keeps_nobody_from_its_node() -> None:
    part = wants(gpu=GpuRequest(count=1, share=0.5, memory_gib=Span(least=8.0)))
    old = placed(a_job("old", resources=part), "host", "g-gone")
    world = a_world([old, a_job("new", resources=part)], [GPUS.but(facts=GPUS.facts.but(cpu=8.0))])
    honest = checker.check(a_plan(place("new", 1, "host", "g-0")), world, RULES)
    assert list(honest) == []
    onto_it = checker.check(a_plan(place("new", 1, "host", "g-gone")), world, RULES)
    assert {fault.rule for fault in onto_it} == {"devices-suit"}
