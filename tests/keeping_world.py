"""One rented machine in one round, for tests of what is done with it."""

from typing import Any

from clouding import RENTING, an_offer
from makers import a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import CheckpointRule, Job, JobState
from cloudwhale.model.node import NodeState
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import Account, Sighting, World
from cloudwhale.planning.checker import check
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.keeping import Kept, keeping
from cloudwhale.planning.planner import plan

OFFER = an_offer()
LEASE = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)
NAME = "rent-1-1"
RULE = CheckpointRule(every_s=60.0, grace_s=30.0)  # it lands in a minute: from 940 on
RENTAL = Rental(
    id=NAME, node=NAME, payer="run-1", offer="big", lease=LEASE, reserved=micro_usd(2),
    taken=OFFER, jobs={"j": "default"},
)  # fmt: skip
BOOTING = RENTAL.but(state=RentalState.BOOTING, machine="m-1", requested_at=0.0)
TOLD = LEASE.but(watched_until=1e6)
READY = BOOTING.but(state=RentalState.READY, told=TOLD)  # its agent was told of its lease just now
DRAINING = READY.but(state=RentalState.DRAINING)
LOST = READY.but(state=RentalState.LOST, ended_at=100.0)


def job(**fields: Any) -> Job:
    base = {"resources": wants(cpu=4), "duration_s": 900.0, "checkpoint": RULE}
    return a_job("j", **{**base, **fields})


RUNNING = placed(job(), NAME).but(state=JobState.RUNNING, order_posted=True, started_at=20.0)


def world(
    of: Rental,
    *jobs: Job,
    now: float = 100.0,
    node: NodeState | None = NodeState.READY,
    **money: Any,
) -> World:
    machine = a_node(NAME, cpu=8.0, memory_gib=32.0, owned=False, provider="cloud")
    nodes = [a_node()] if node is None else [a_node(), machine.but(state=node)]
    sums: dict[str, Any] = {"limit": micro_usd(50), "reserved": of.reserved, **money}
    return a_world(
        list(jobs), nodes, now=now, rentals={NAME: of},
        accounts={"run-1": Account(payer="run-1", **sums)},
        sightings={each.id: Sighting(node=each.id, heard_at=now) for each in nodes},
    )  # fmt: skip


def kept(of: World) -> Kept:
    return keeping(of, Durations({}))


def kinds(of: World) -> list[str]:
    return [step.kind for step in kept(of).steps]


def checked(of: World) -> p.Plan:
    """Plan the round whole, and let the checker look at it."""
    made = plan(of, RENTING)
    assert check(made, of, RENTING.rules) == ()
    return made
