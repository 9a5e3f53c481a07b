"""Gangs several of whose machines go in one breath, that have machines twice, or lack one."""

import pytest
from clouding import RENTING, an_offer
from makers import a_job, a_node, a_world

from cloudwhale.control.hired import Hired
from cloudwhale.control.reports import Reading
from cloudwhale.mailbox.documents import Remark
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState, Member, Placement, Rank
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import Account, Sighting, World
from cloudwhale.planning import checker
from cloudwhale.planning.lifecycle import apply
from cloudwhale.planning.planner import plan
from cloudwhale.spi.provider import Machine

NOW = 1000.0
LEASE = Lease(number=1, watched_until=NOW + 900, away_until=NOW + 9000, stop_at=NOW + 9120)
OLD, NEW = ("rent-1-1", "rent-1-2"), ("rent-2-1", "rent-2-2")


def rentals(names: tuple[str, str]) -> list[Rental]:
    """Make two machines of a gang that are ready."""
    return [
        Rental(
            id=name, node=name, payer="run-1", offer="big", lease=LEASE, reserved=micro_usd(2),
            taken=an_offer(), jobs={"g": "default"}, state=RentalState.READY, machine=f"m-{name}",
            requested_at=0.0, told=LEASE, gang=names[0], gang_size=2,
        )
        for name in names
    ]  # fmt: skip


def a_gang(state: JobState) -> Job:
    """Make a gang of two that has the old machines, or waits."""
    gang = a_job("g", nodes=2, market="on-demand").but(attempt=1, submitted_at=0.0, state=state)
    if state is JobState.PENDING:
        return gang
    place = Placement(node=OLD[0], others=(Member(node=OLD[1]),))
    ranks = (Rank(order_posted=True, has_started=True),) * 2
    return gang.but(placement=place, ranks=ranks, started_at=100.0, order_posted=True)


def machine_of(name: str) -> Node:
    node = a_node(name, cpu=8.0, memory_gib=32.0, owned=False, provider="cloud")
    return node.but(state=NodeState.READY)


def world(gang: Job, machines: list[Rental], unheard: str = "") -> World:
    nodes = [machine_of(one.id) for one in machines]
    heard = [node.id for node in nodes if node.id != unheard]
    reserved = micro_usd(2 * len(machines))
    return a_world(
        [gang], nodes, now=NOW, rentals={one.id: one for one in machines},
        accounts={"run-1": Account(payer="run-1", limit=micro_usd(50), reserved=reserved)},
        sightings={name: Sighting(node=name, heard_at=NOW) for name in heard},
    )  # fmt: skip


def test_two_machines_of_a_gang_that_go_in_one_breath_lose_its_attempt_once() -> None:
    running = a_gang(JobState.RUNNING)
    listed = [
        Machine(id=f"m-{name}", node=name, state="stopping", owned=False, billed_from=0.0)
        for name in OLD
    ]
    events = Hired(world(running, rentals(OLD)), NOW).seen("cloud", listed)
    gone = [one.rental.id for one in events if isinstance(one, e.RentalChanged)]
    of_job = [one for one in events if isinstance(one, e.OfJob)]
    assert gone == list(OLD)
    assert [one.kind for one in of_job] == ["stop-wished", "attempt-lost"]
    for event in of_job:
        running = apply(running, event)
    assert running.state is JobState.RECOVERING


def test_a_gang_that_has_machines_twice_is_placed_once() -> None:
    """Some of the old ones were silent for so long that others were rented, and are there again."""
    both = world(a_gang(JobState.PENDING), [*rentals(OLD), *rentals(NEW)])
    made = plan(both, RENTING)
    assert checker.check(made, both, RENTING.rules) == ()
    (place,) = (step for step in made.steps if isinstance(step, p.Place))
    assert place.placement.nodes == OLD


@pytest.mark.parametrize("unheard", OLD)
def test_a_rank_of_which_nobody_knows_anything_is_not_out(unheard: str) -> None:
    gang = a_gang(JobState.RECOVERING)
    gone = [one.but(ended_at=NOW - 1, state=RentalState.LOST) for one in rentals(OLD)]
    there = [one if one.id == unheard else was for one, was in zip(rentals(OLD), gone, strict=True)]
    steps = plan(world(gang, there, unheard), RENTING).steps
    assert not any(isinstance(step, p.Clear | p.GiveUp) for step in steps)
    steps = plan(world(gang, gone), RENTING).steps
    assert any(isinstance(step, p.Clear) for step in steps)


@pytest.mark.parametrize("code", [Code.START_FAILED, Code.STALE_FENCE, Code.IMAGE_PULLED])
def test_a_remark_is_noted_whatever_it_is_about(code: Code) -> None:
    said = Remark(at=NOW, agent="a", job="g", attempt=1, code=code, says="something")
    for job in (a_gang(JobState.RUNNING), _alone()):
        reading = Reading(world(job, rentals(OLD)), NOW)
        (event,) = reading.events(OLD[0], said.model_dump_json().encode())
        assert isinstance(event, e.Noted) and event.reason.code is code


def _alone() -> Job:
    place = Placement(node=OLD[0])
    return a_job("g").but(attempt=1, state=JobState.RUNNING, placement=place, started_at=100.0)
