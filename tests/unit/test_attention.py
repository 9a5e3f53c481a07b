"""Machines that cannot be given back are shown until they are."""

from clouding import an_offer
from keeping_world import RENTAL

from cloudwhale.cli.attention import attention
from cloudwhale.control.hired import Hired, Tried
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.rental import RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import micro_usd
from cloudwhale.spi.errors import Denied


def a_store(*states: RentalState) -> MemoryStore:
    store, run = MemoryStore(), Run(id="run-1", opened_at=0.0, user="u", folder="/")
    node = Node(
        id=RENTAL.id, facts=an_offer().facts, state=NodeState.DRAINING, owned=False,
        provider="cloud",
    )  # fmt: skip
    store.append(
        [
            e.RunOpened(at=0.0, run=run.but(budget=micro_usd(50))),
            e.Reserved(at=0.0, payer="run-1", rental=RENTAL.id, amount=RENTAL.reserved),
            e.RentalChanged(at=0.0, rental=RENTAL),
            e.NodeJoined(at=0.0, node=node),
        ]
    )
    for state in states:
        changed = RENTAL.but(state=state, machine="m-1")
        store.append([e.RentalChanged(at=0.0, rental=changed)])
    return store


GOES = (RentalState.REQUESTED, RentalState.BOOTING, RentalState.DRAINING)


def test_nobody_needs_attention_while_a_machine_goes_back() -> None:
    assert attention(a_store(*GOES), 1.0) == []
    assert attention(MemoryStore(), 1.0) == []


def test_a_machine_that_cannot_be_ended_is_shown_in_its_providers_words() -> None:
    store = a_store(*GOES)
    error = Denied("AccessDenied: ec2:TerminateInstances", "Allow it in the role.")
    store.append(Hired(store.world(1.0), 1.0).stuck(RENTAL.id, error, Tried(10, 150.0)))
    (says,) = attention(store, 2.0)
    assert says.startswith(f"{RENTAL.id} cannot be given back, tried 10 times in 150 s: AccessDen")
    assert "Allow it in the role. It is tried again for ever; its cloud ends it by itself" in says


def test_only_a_machine_that_goes_back_can_be_stuck() -> None:
    store = a_store(RentalState.REQUESTED, RentalState.BOOTING)
    error = Denied("no")
    assert Hired(store.world(1.0), 1.0).stuck(RENTAL.id, error, Tried(10, 150.0)) == ()
