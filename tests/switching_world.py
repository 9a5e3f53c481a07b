"""A world of one job with a deadline, on spot or waiting, and on-demand to switch to."""

from typing import Any

from clouding import RENTING, an_offer
from makers import a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import (
    Checkpoint,
    CheckpointRule,
    Job,
    JobState,
)
from cloudwhale.model.node import NodeState
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.world import Account, Sighting, World
from cloudwhale.planning import checker
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.planner import plan
from cloudwhale.planning.switching import Switches, switches_of

HOUR = 3600.0
NOW = 10 * HOUR
RULES = RENTING.rules
RULE = CheckpointRule(every_s=600.0, grace_s=30.0)
FIRM = an_offer("firm", boot_s=120.0)
SPOT = an_offer(
    "spot", market="spot", price_usd_h=micro_usd("1.2"), boot_s=90.0, hazard_per_h=0.05,
    notice_s=120.0,
)  # fmt: skip
LEASE = Lease(number=1, watched_until=NOW + 900, away_until=NOW + 9e4, stop_at=NOW + 9e4 + 120)
CHANGES = 30.0 + 120.0 + 60.0
"""Tick, boot and restore; who runs on spot is out within the notice of 120 s."""
THERE = "rent-0-1"
NEXT = "rent-0-2"


def a_rental(name: str = THERE, offer: Any = SPOT, **of: Any) -> Rental:
    base: dict[str, Any] = {
        "id": name, "node": name, "payer": "run-1", "offer": offer.id, "lease": LEASE,
        "reserved": micro_usd(5), "taken": offer, "jobs": {"j": "default"},
        "state": RentalState.READY, "machine": f"m-{name}", "requested_at": 0.0, "told": LEASE,
    }  # fmt: skip
    return Rental(**{**base, **of})


def waits(deadline: float, **of: Any) -> Job:
    """Make a job of two hours that waits."""
    base = {"resources": wants(cpu=4), "duration_s": 2 * HOUR, "checkpoint": RULE}
    return a_job("j", **{**base, "deadline": deadline, **of}).but(submitted_at=NOW - 60)


def runs(deadline: float, saved_s: float = HOUR, **of: Any) -> Job:
    """Make it run on spot, half of it saved by now, and half an hour of work since."""
    began = NOW - saved_s - HOUR / 2
    saved = Checkpoint(
        attempt=1, seq=1, name="c-1", size_bytes=0, saved_at=NOW - HOUR / 2, manifest="m"
    )
    job = placed(waits(deadline, **of), THERE)
    return job.but(state=JobState.RUNNING, order_posted=True, started_at=began, checkpoint=saved)


def world(*jobs: Job, rentals: tuple[Rental, ...] = (), limit: float = 100, **of: Any) -> World:
    nodes = [a_node(cpu=1.0)]
    for rental in rentals:
        machine = a_node(rental.id, cpu=8.0, memory_gib=32.0, owned=False, provider="cloud")
        ready = rental.state is RentalState.READY
        nodes.append(machine.but(state=NodeState.READY if ready else NodeState.EXPECTED))
    taken = MicroUsd(sum(one.reserved for one in rentals))
    base: dict[str, Any] = {
        "now": NOW, "rentals": {one.id: one for one in rentals}, "offers": (FIRM, SPOT),
        "accounts": {"run-1": Account(payer="run-1", limit=micro_usd(str(limit)), reserved=taken)},
        "sightings": {node.id: Sighting(node=node.id, heard_at=NOW) for node in nodes},
    }  # fmt: skip
    return a_world(list(jobs), nodes, **{**base, **of})


def seen(of: World) -> Switches:
    return switches_of(of, Durations({}))


def checked(of: World) -> p.Plan:
    made = plan(of, RENTING)
    assert checker.check(made, of, RULES) == ()
    return made


def rents(made: p.Plan) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (step.rental.offer, step.rental.moves) for step in made.steps if isinstance(step, p.Rent)
    ]


ON_SPOT = (a_rental(),)
ON_ITS_WAY = a_rental(NEXT, FIRM, state=RentalState.BOOTING, moves=("j",))
IS_READY = ON_ITS_WAY.but(state=RentalState.READY)
