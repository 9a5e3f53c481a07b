"""Each rule about money catches five planted faults, and lets the honest plan pass."""

from dataclasses import replace
from typing import Any

import pytest
from clouding import an_offer
from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import Checkpoint, Job, JobState, Placement, Wish
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Renewal, Rental, RentalState
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning import checker, checker_money
from cloudwhale.planning.rules import Patience, Rules

RULES = Rules(patience=Patience(attempt_lease_s=100.0, clock_skew_s=10.0))
WHY = Reason(code=Code.RENTED, says="because")
OFFER = an_offer()
LEASE = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)
ENOUGH = micro_usd("1.30")  # 1,120 s and 150 s more at 3.60 USD an hour


def job(name: str = "j", **fields: Any) -> Job:
    return a_job(name, **{"resources": wants(cpu=4), "duration_s": 900.0, **fields})


def rental(**fields: Any) -> Rental:
    base: dict[str, Any] = {
        "id": "rent-1-1", "node": "rent-1-1", "payer": "run-1", "offer": "big", "lease": LEASE,
        "reserved": ENOUGH, "taken": OFFER, "jobs": {"j": "default"},
    }  # fmt: skip
    return Rental(**{**base, **fields})


def rent(**fields: Any) -> p.Rent:
    return p.Rent(rental=rental(**fields), reason=WHY)


def a_plan(*steps: p.Step) -> p.Plan:
    return p.Plan(version=1, steps=steps)


def world(
    *jobs: Job, open_: tuple[Rental, ...] = (), offers: tuple[Offer, ...] = (OFFER,), **money: Any
) -> World:
    taken = MicroUsd(sum(each.reserved for each in open_))
    sums = {"limit": micro_usd(10), "reserved": taken, **money}
    account = Account(payer="run-1", **sums)
    nodes = [a_node("host"), *(_node(each) for each in open_ if each.state.value != "reserved")]
    return a_world(
        list(jobs) or [job()], nodes, offers=offers, accounts={"run-1": account},
        rentals={each.id: each for each in open_},
    )  # fmt: skip


def _node(of: Rental) -> Node:
    ready = of.state is RentalState.READY
    assert of.node is not None
    return a_node(
        of.node, cpu=8.0, memory_gib=32.0, owned=False, provider="cloud",
        state=NodeState.READY if ready else NodeState.EXPECTED,
    )  # fmt: skip


def renew(
    added: MicroUsd = ENOUGH, away_until: float = 2000.0, stop_at: float = 2120.0, **fields: Any
) -> p.Renew:
    lease = LEASE.but(number=2, away_until=away_until, stop_at=stop_at)
    base = {"reserved": MicroUsd(ENOUGH + added), "renewal": Renewal(lease=lease, reserved=added)}
    return p.Renew(rental=READY.but(**{**base, **fields}), reason=WHY)


def settle(paid: int, released: int | None = None, by: str = "j") -> p.Settle:
    free = ENOUGH - paid if released is None else released
    charges = {by: MicroUsd(paid)} if paid else {}
    back = GONE.but(state=RentalState.RETURNED, reserved=MicroUsd(0))
    return p.Settle(rental=back, charges=charges, released=MicroUsd(free), reason=WHY)


def place(name: str = "j", node: str = "rent-1-1") -> p.Place:
    return p.Place(job=name, attempt=1, placement=Placement(node=node), reason=WHY)


def join(name: str = "k", **fields: Any) -> p.Join:
    of = READY.but(**{"jobs": {"j": "default", name: "default"}, **fields})
    return p.Join(rental=of, job=name, reason=WHY)


def tell(**fields: Any) -> p.TellLease:
    return p.TellLease(rental=READY.but(lease=LEASE.but(**fields)))


def give_back() -> p.Return:
    return p.Return(rental=READY.but(state=RentalState.DRAINING), reason=WHY)


READY = rental(state=RentalState.READY, machine="m-1", requested_at=0.0)
BOOTING = READY.but(state=RentalState.BOOTING)
GONE = READY.but(state=RentalState.DRAINING, requested_at=-100.0, ended_at=0.0)
HERE = placed(job(), "rent-1-1")
OTHER = a_job("k", resources=wants(cpu=1))
AGAIN = {"id": "rent-1-2", "node": "rent-1-2"}
SAVED = Checkpoint(attempt=1, seq=1, name="c", size_bytes=1, saved_at=0.0, manifest="m")
ONE = world()
BILLED = 100_000  # 100 s at 3.60 USD an hour

FAULTS: list[tuple[str, World, p.Plan]] = [
    # telling
    ("told-what-is-paid", ONE, a_plan(tell())),
    ("told-what-is-paid", world(HERE, open_=(READY,)), a_plan(tell(number=2))),
    ("told-what-is-paid", world(HERE, open_=(READY,)), a_plan(tell(away_until=1001.0))),
    ("told-what-is-paid", world(HERE, open_=(READY,)), a_plan(tell(watched_until=901.0))),
    ("told-what-is-paid", world(HERE, open_=(READY,)), a_plan(tell(watched_until=0.0))),
    ("told-what-is-paid", world(open_=(BOOTING,)), a_plan(tell())),
    ("told-what-is-paid", world(open_=(READY.but(ended_at=0.0),)), a_plan(tell())),
    ("told-what-is-paid", world(open_=(READY,)), a_plan(tell(), give_back())),
    # joining
    ("joins-its-own", world(HERE, OTHER.but(run="run-2"), open_=(READY,)), a_plan(join())),
    ("joins-its-own", world(HERE, OTHER, open_=(BOOTING,)), a_plan(join())),
    ("joins-its-own", world(HERE, OTHER, open_=(READY,)), a_plan(join("nobody"))),
    ("joins-its-own", world(HERE, OTHER.but(wish=Wish.CANCEL), open_=(READY,)), a_plan(join())),
    (
        "joins-its-own",
        world(HERE, a_job("k", resources=wants(cpu=9)), open_=(READY,)),
        a_plan(join()),
    ),
    ("joins-its-own", world(HERE, OTHER, open_=(READY,)), a_plan(join(jobs={"k": "default"}))),
    ("joins-its-own", world(HERE, OTHER, open_=(READY,)), a_plan(join(jobs=READY.jobs))),
    ("joins-its-own", ONE, a_plan(join("j"))),
    # the budget
    ("within-budget", world(limit=micro_usd("1.29")), a_plan(rent())),
    ("within-budget", world(spent=micro_usd(9)), a_plan(rent())),
    ("within-budget", world(reserved=micro_usd(9)), a_plan(rent())),
    ("within-budget", world(limit=None), a_plan(rent())),
    ("within-budget", replace(ONE, accounts={}), a_plan(rent())),
    ("within-budget", world(job(budget=micro_usd(1))), a_plan(rent())),
    ("within-budget", world(job(), open_=(READY,), limit=micro_usd(2)), a_plan(renew())),
    (
        "within-budget",
        world(job(), job("k"), limit=micro_usd(2)),
        a_plan(rent(), rent(jobs={"k": "default"}, **AGAIN)),
    ),
    # the price
    ("known-price", world(offers=(OFFER.but(price_usd_h=None),)), a_plan(rent())),
    ("known-price", world(offers=(OFFER.but(cap_usd_h=None),)), a_plan(rent())),
    ("known-price", world(offers=(OFFER.but(price_usd_h=micro_usd(4)),)), a_plan(rent())),
    ("known-price", world(offers=(OFFER.but(price_usd_h=micro_usd(3)),)), a_plan(rent())),
    ("known-price", world(offers=(OFFER.but(cap_usd_h=micro_usd(9)),)), a_plan(rent())),
    ("known-price", world(offers=()), a_plan(rent())),
    ("known-price", ONE, a_plan(rent(taken=OFFER.but(id="other")))),
    # what is set aside
    ("set-aside", ONE, a_plan(rent(reserved=micro_usd("1.26")))),
    ("set-aside", ONE, a_plan(rent(lease=LEASE.but(stop_at=1200.0)))),
    (
        "set-aside",
        world(offers=(OFFER.but(cap_usd_h=micro_usd(5)),)),
        a_plan(rent(taken=OFFER.but(cap_usd_h=micro_usd(5)))),
    ),
    ("set-aside", world(job(), open_=(READY,)), a_plan(renew(added=micro_usd("0.9")))),
    ("set-aside", world(job(), open_=(READY,)), a_plan(renew(reserved=ENOUGH))),
    ("set-aside", world(job(), open_=(READY,)), a_plan(renew(stop_at=4000.0))),
    ("set-aside", ONE, a_plan(renew())),
    # how long
    ("lease-covers", world(job(duration_s=1001.0)), a_plan(rent())),
    ("lease-covers", world(job(duration_s=990.0)), a_plan(rent())),
    ("lease-covers", ONE, a_plan(rent(lease=LEASE.but(away_until=900.0)))),
    ("lease-covers", ONE, a_plan(rent(lease=LEASE.but(away_until=1121.0)))),
    ("lease-covers", world(HERE, open_=(READY,)), a_plan(renew(away_until=1000.0))),
    (
        "lease-covers",
        replace(world(open_=(READY,)), now=1000.0),
        a_plan(place()),
    ),
    # once
    ("one-rental", ONE, a_plan(rent(), rent(**AGAIN))),
    ("one-rental", world(open_=(BOOTING,)), a_plan(rent(**AGAIN))),
    ("one-rental", world(open_=(READY,)), a_plan(rent(**AGAIN))),
    ("one-rental", world(open_=(rental(),)), a_plan(rent(**AGAIN))),
    ("one-rental", world(job(state=JobState.RUNNING)), a_plan(rent())),
    ("one-rental", world(job(wish=Wish.CANCEL)), a_plan(rent())),
    ("one-rental", world(job(resources=wants(cpu=1))), a_plan(rent(), place(node="host"))),
    ("one-rental", ONE, a_plan(rent(jobs={"nobody": "default"}))),
    ("one-rental", world(OTHER, open_=(READY,)), a_plan(rent(jobs={"k": "default"}))),
    # on what, and who pays
    ("suitable-machine", world(job(run="run-2")), a_plan(rent())),
    ("suitable-machine", world(job(market="spot")), a_plan(rent())),
    ("suitable-machine", world(job(market="local")), a_plan(rent())),
    ("suitable-machine", world(job(resources=wants(cpu=9))), a_plan(rent())),
    ("suitable-machine", world(job(resources=wants(gpus=1))), a_plan(rent())),
    ("suitable-machine", world(job(image="python:3")), a_plan(rent())),
    ("suitable-machine", ONE, a_plan(rent(jobs={}))),
    # who may use it
    ("rented-for-them", world(OTHER, open_=(READY,)), a_plan(place("k"))),
    ("rented-for-them", replace(world(open_=(READY,)), rentals={}), a_plan(place())),
    ("rented-for-them", world(HERE, open_=(READY,)), a_plan(give_back())),
    ("rented-for-them", world(open_=(READY,)), a_plan(place(), give_back())),
    (
        "rented-for-them",
        world(HERE.but(state=JobState.RECOVERING), open_=(READY,)),
        a_plan(give_back()),
    ),
    # paying
    ("paid-in-full", world(open_=(GONE,)), a_plan(settle(BILLED, released=0))),
    ("paid-in-full", world(open_=(GONE,)), a_plan(settle(BILLED, released=ENOUGH))),
    ("paid-in-full", world(open_=(GONE,)), a_plan(settle(ENOUGH + 1))),
    ("paid-in-full", world(open_=(GONE,)), a_plan(settle(BILLED), settle(BILLED))),
    ("paid-in-full", world(open_=(GONE,)), a_plan(settle(BILLED - 2))),
    ("paid-in-full", world(open_=(GONE,)), a_plan(settle(BILLED, by="k"))),
    ("paid-in-full", world(open_=(READY,)), a_plan(settle(BILLED))),
    ("paid-in-full", ONE, a_plan(settle(BILLED))),
    ("paid-in-full", world(HERE, open_=(GONE,)), a_plan(settle(BILLED))),
]

HONEST = [
    (ONE, a_plan(rent())),
    (world(limit=ENOUGH), a_plan(rent())),
    (world(job(duration_s=980.0)), a_plan(rent())),
    (world(job(duration_s=5000.0, checkpoint=None).but(checkpoint=SAVED)), a_plan(rent())),
    (world(job(market="on-demand")), a_plan(rent())),
    (world(HERE, open_=(READY,)), a_plan(renew())),
    (world(open_=(READY,)), a_plan(place())),
    (world(open_=(READY,)), a_plan(give_back())),
    (world(open_=(GONE,)), a_plan(settle(BILLED))),
    (world(open_=(GONE,)), a_plan(settle(BILLED), rent(**AGAIN))),
    (world(open_=(READY.but(state=RentalState.LOST),)), a_plan(rent(**AGAIN))),
    (world(placed(OTHER, "rent-1-1"), job(), open_=(READY,)), a_plan(rent(**AGAIN))),
]


@pytest.mark.parametrize(
    ("rule", "of", "made"), FAULTS, ids=[f"{rule}-{n}" for n, (rule, *_) in enumerate(FAULTS)]
)
def test_a_planted_fault_is_caught_by_its_rule(rule: str, of: World, made: p.Plan) -> None:
    assert rule in {fault.rule for fault in checker.check(made, of, RULES)}


@pytest.mark.parametrize(("of", "made"), HONEST)
def test_an_honest_plan_passes(of: World, made: p.Plan) -> None:
    assert checker.check(made, of, RULES) == ()


def test_every_rule_about_money_has_five_planted_faults() -> None:
    planted = [rule for rule, *_ in FAULTS]
    names = {rule.__name__.replace("_", "-") for rule in checker_money.RULES}
    assert names == set(planted)
    assert min(planted.count(name) for name in names) >= 5


@pytest.mark.parametrize("broken", checker_money.RULES, ids=lambda rule: rule.__name__)
def test_no_rule_about_money_stands_in_for_another(
    broken: checker.Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = broken.__name__.replace("_", "-")
    monkeypatch.setattr(checker, "RULES", tuple(r for r in checker.RULES if r is not broken))
    passed = [
        rule for rule, of, made in FAULTS if rule == name and not checker.check(made, of, RULES)
    ]
    assert passed


def test_a_job_that_is_fast_on_the_machine_needs_less_of_its_lease() -> None:
    fast = OFFER.but(facts=OFFER.facts.but(devices=(a_device("g", "H100-80GB", 80.0),)))
    slow = job(duration_s=3000.0, speeds={"H100-80GB": 4.0}, resources=wants(cpu=4, gpus=1))
    of = world(slow, offers=(fast,))
    assert checker.check(a_plan(rent(taken=fast)), of, RULES) == ()
    faults = checker.check(
        a_plan(rent(taken=fast)),
        world(slow.but(spec=slow.spec.but(speeds={})), offers=(fast,)),
        RULES,
    )
    assert [fault.rule for fault in faults] == ["lease-covers"]
