"""Each rule about projects' money catches five planted faults, and lets the honest plan pass."""

from dataclasses import replace
from typing import Any

import pytest
from clouding import an_offer
from makers import a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.budget import Budget
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Renewal, Rental, RentalState
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning import checker, checker_projects
from cloudwhale.planning.rules import Patience, Rules

RULES = Rules(patience=Patience(attempt_lease_s=100.0, clock_skew_s=10.0))
WHY = Reason(code=Code.RENTED, says="because")
LEASE = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)
ENOUGH = micro_usd("1.30")
NLP, VISION = "project:nlp:1970-01", "project:vision:1970-01"
BOTH = {"a": "nlp", "b": "vision"}


def rental(**fields: Any) -> Rental:
    base: dict[str, Any] = {
        "id": "rent-1-1", "node": "rent-1-1", "payer": "run-1", "offer": "big", "lease": LEASE,
        "reserved": ENOUGH, "taken": an_offer(), "jobs": BOTH,
        "projects": {NLP: ENOUGH, VISION: micro_usd(1)},
    }  # fmt: skip
    return Rental(**{**base, **fields})


READY = rental(state=RentalState.READY, machine="m-1", requested_at=0.0)
GONE = READY.but(state=RentalState.DRAINING, requested_at=-100.0, ended_at=0.0)
JOBS = tuple(
    a_job(name, project=project, resources=wants(cpu=2), duration_s=900.0)
    for name, project in (("a", "nlp"), ("b", "vision"), ("c", "nlp"))
)


def world(
    open_: Rental | None = None, budget: str = "10", limit: str | None = None, **fields: Any
) -> World:
    """Make a world whose projects have budgets, and accounts when a limit of theirs is given."""
    there = () if open_ is None else (open_,)
    taken = MicroUsd(sum(each.reserved for each in there))
    accounts = {"run-1": Account(payer="run-1", limit=micro_usd(90), reserved=taken)}
    if limit is not None:
        for name in (NLP, VISION):
            held = MicroUsd(sum(each.projects.get(name, 0) for each in there))
            accounts[name] = Account(
                payer=name, limit=micro_usd(limit), needs_limit=False, reserved=held
            )
    budgets = {
        name: Budget(project=name, month=micro_usd(budget), set_at=0.0)
        for name in ("nlp", "vision")
    }
    nodes = [a_node("host")]
    jobs = list(JOBS)
    if open_ is not None:
        state = NodeState.READY if open_.ended_at is None else NodeState.LOST
        nodes.append(
            a_node("rent-1-1", cpu=8.0, memory_gib=32.0, owned=False, provider="cloud", state=state)
        )
        if open_.ended_at is None:
            jobs[0] = placed(jobs[0], "rent-1-1")
    return replace(
        a_world(jobs, nodes, offers=(an_offer(),), accounts=accounts, budgets=budgets),
        rentals={each.id: each for each in there}, **fields,
    )  # fmt: skip


def a_plan(*steps: p.Step) -> p.Plan:
    return p.Plan(version=1, steps=steps)


def rent(**fields: Any) -> p.Rent:
    return p.Rent(rental=rental(**fields), reason=WHY)


def renew(beside: dict[str, MicroUsd], now: dict[str, MicroUsd] | None = None) -> p.Renew:
    added = micro_usd("1.1")
    lease = LEASE.but(number=2, away_until=2000.0, stop_at=2120.0)
    sums = dict(READY.projects)
    for account, amount in beside.items():
        sums[account] = MicroUsd(sums.get(account, 0) + amount)
    longer = READY.but(
        renewal=Renewal(lease=lease, reserved=added, projects=beside),
        reserved=MicroUsd(ENOUGH + added), projects=sums if now is None else now,
    )  # fmt: skip
    return p.Renew(rental=longer, reason=WHY)


def join(more: dict[str, MicroUsd], **fields: Any) -> p.Join:
    base = {"jobs": {**BOTH, "c": "nlp"}, "projects": {**READY.projects, **more}}
    return p.Join(rental=READY.but(**{**base, **fields}), job="c", projects=more, reason=WHY)


def settle(**charges: int) -> p.Settle:
    paid = {name: MicroUsd(amount) for name, amount in charges.items()}
    back = GONE.but(state=RentalState.RETURNED, reserved=MicroUsd(0))
    free = MicroUsd(ENOUGH - sum(charges.values()))
    return p.Settle(rental=back, charges=paid, released=free, reason=WHY)


ADDED = micro_usd("1.1")
THERE = {NLP: ADDED}
MORE = {VISION: micro_usd("0.1")}
BOTH_MORE = {NLP: ENOUGH, VISION: micro_usd("1.1")}
USED = GONE.but(held_s={"a": 100.0})

FAULTS: list[tuple[str, World, p.Plan]] = [
    # the budget
    ("project-budget", world(budget="1.2"), a_plan(rent())),
    ("project-budget", world(limit="1.2"), a_plan(rent())),
    ("project-budget", world(READY, limit="2.3"), a_plan(renew(THERE))),
    (
        "project-budget",
        world(budget="2"),
        a_plan(rent(jobs={"a": "nlp"}, projects={NLP: ENOUGH}),
               rent(id="r2", node="r2", jobs={"c": "nlp"}, projects={NLP: ENOUGH})),
    ),
    ("project-budget", world(READY, limit="1.35"), a_plan(join({NLP: micro_usd("0.1")},
        projects={NLP: MicroUsd(ENOUGH + micro_usd("0.1")), VISION: micro_usd(1)}))),
    ("project-budget", world(budget="0"), a_plan(rent())),
    # who sets aside what
    ("project-share", world(), a_plan(rent(projects={}))),
    ("project-share", world(), a_plan(rent(projects={NLP: ENOUGH}))),
    ("project-share", world(), a_plan(rent(projects={NLP: micro_usd(1), VISION: micro_usd(1)}))),
    ("project-share", world(), a_plan(rent(projects={NLP: ENOUGH, VISION: MicroUsd(0)}))),
    ("project-share", world(), a_plan(rent(projects={NLP: micro_usd(2), VISION: ENOUGH}))),
    ("project-share", world(), a_plan(rent(
        projects={NLP.replace("01", "02"): ENOUGH, VISION: ENOUGH}))),
    ("project-share", world(READY), a_plan(renew({}))),
    ("project-share", world(READY), a_plan(renew({NLP: micro_usd(1)}))),
    ("project-share", world(READY), a_plan(renew(THERE, now=READY.projects))),
    ("project-share", world(READY), a_plan(join({NLP: MicroUsd(-1)}))),
    ("project-share", world(READY), a_plan(join({}, projects={NLP: ENOUGH}))),
    # of two who join, or of a longer lease, the second forgets what the first has set aside
    ("project-share", world(READY), a_plan(join({}), join({}, projects={NLP: ENOUGH}))),
    ("project-share", world(READY), a_plan(renew(THERE), join({}))),
    ("project-share", world(READY.but(projects={VISION: ENOUGH})), a_plan(join({},
        projects={VISION: ENOUGH}))),
    # who pays
    ("project-pays", world(GONE), a_plan(settle(b=1_000_001))),
    ("project-pays", world(GONE.but(projects={NLP: MicroUsd(5)})), a_plan(settle(a=100_000))),
    ("project-pays", world(USED), a_plan(settle(b=100_000))),
    ("project-pays", world(GONE.but(projects={NLP: MicroUsd(99_999)})), a_plan(settle(a=100_000))),
    (
        "project-pays",
        world(GONE.but(jobs={"a": "nlp", "c": "nlp"}, projects={NLP: MicroUsd(90_000)})),
        a_plan(settle(a=50_000, c=50_000)),
    ),
]  # fmt: skip

HONEST: dict[str, tuple[World, p.Plan]] = {
    "one is rented": (world(), a_plan(rent())),
    "without budgets nothing need be said": (
        replace(world(), budgets={}),
        a_plan(rent(projects={})),
    ),
    "one is kept for longer": (world(READY, limit="9"), a_plan(renew(THERE))),
    "of one from before nothing is known": (
        world(READY.but(projects={})),
        a_plan(p.Renew(rental=renew({}).rental.but(projects={}), reason=WHY)),
    ),
    "two join it": (
        world(READY, limit="9"),
        a_plan(join(MORE, projects=BOTH_MORE), join({}, projects=BOTH_MORE)),
    ),
    "one is paid for": (world(USED), a_plan(settle(a=100_000))),
    "a budget below what is taken stops no payment": (
        world(USED, limit="0"),
        a_plan(settle(a=100_000)),
    ),
}


def broken(made: p.Plan, of: World) -> set[str]:
    return {fault.rule for fault in checker.check(made, of, RULES)}


@pytest.mark.parametrize(
    ("rule", "of", "made"), FAULTS, ids=[f"{rule}-{n}" for n, (rule, *_) in enumerate(FAULTS)]
)
def test_a_planted_fault_is_found(rule: str, of: World, made: p.Plan) -> None:
    assert rule in broken(made, of)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_plan_passes(name: str) -> None:
    of, made = HONEST[name]
    theirs = {fault for rule in checker_projects.RULES for fault in rule(made, of, RULES)}
    assert theirs == set()
    assert broken(made, of) <= {"set-aside", "company"}, "sums of the run are another rule's matter"


def test_every_rule_about_projects_has_five_planted_faults() -> None:
    planted = [rule for rule, *_ in FAULTS]
    for rule in checker_projects.RULES:
        assert planted.count(rule.__name__.replace("_", "-")) >= 5
