"""What every store says of rented machines to who does not want the whole world."""

from clouding import an_offer
from makers import a_job, a_run
from stories import submitted

from cloudwhale.model import event as e
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.store import Store

LEASE = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)


def rental(name: str, payer: str) -> Rental:
    return Rental(
        id=name, node=name, payer=payer, offer="big", lease=LEASE, reserved=MicroUsd(5),
        taken=an_offer(), jobs={"a": "default"},
    )  # fmt: skip


def rented(store: Store, made: Rental) -> None:
    reserved = e.Reserved(at=1.0, payer=made.payer, rental=made.id, amount=made.reserved)
    store.append([reserved, e.RentalChanged(at=1.0, rental=made)])


def test_a_payer_s_machines_are_told_those_that_are_back_too(store: Store) -> None:
    runs = [e.RunOpened(at=0.0, run=a_run(name, budget=MicroUsd(100))) for name in ("r", "q")]
    jobs = submitted(a_job("a", run="r"))
    store.append([*runs, *jobs])
    first, second, other = rental("m-1", "r"), rental("m-2", "r"), rental("m-3", "q")
    for made in (second, first, other):
        rented(store, made)
    assert [one.id for one in store.rentals("r")] == ["m-1", "m-2"]
    back = first.but(state=RentalState.RETURNED, reserved=MicroUsd(0))
    released = e.Released(at=2.0, payer="r", rental="m-1", amount=first.reserved)
    store.append([released, e.RentalChanged(at=2.0, rental=back)])
    assert [one.state for one in store.rentals("r")] == [RentalState.RETURNED, RentalState.RESERVED]
    assert [one.id for one in store.rentals()] == ["m-2", "m-3"]
    assert store.rentals("nobody") == []
