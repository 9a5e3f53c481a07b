"""What every store says of rented machines to who does not want the whole world."""

from clouding import an_offer
from makers import a_job, a_run
from stories import submitted

from cloudwhale.model import event as e
from cloudwhale.model.job import Checkpoint, Placement
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import MicroUsd
from cloudwhale.model.where import Where
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


def test_what_a_machine_tells_of_its_boot_is_kept_with_it_once(store: Store) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run("r", budget=MicroUsd(100)))])
    made = rental("m-1", "r")
    rented(store, made)
    requested = made.but(state=RentalState.REQUESTED, requested_at=2.0)
    booting = requested.but(state=RentalState.BOOTING)
    store.append([e.RentalChanged(at=2.0, rental=one) for one in (requested, booting)])
    begun = e.BootTold(
        at=3.0, rental="m-1", number=1, phase="docker", state="begun", since=2.5, says="apt"
    )
    done = begun.but(at=9.0, number=2, state="done", since=8.0, took_s=5.5)
    for events in ([begun], [begun, done], [done]):
        store.append(events)
    (kept,) = store.rentals("r")
    assert kept == store.world(10.0).rentals["m-1"]
    assert (kept.boot.read, kept.boot.phase, kept.boot.state) == (2, "docker", "done")
    assert kept.boot.took_s == {"docker": 5.5}
    store.append([e.RentalChanged(at=12.0, rental=booting.but(state=RentalState.READY))])
    store.append([done.but(at=13.0, number=3, state="failed")])
    (ready,) = store.rentals("r")
    assert ready.boot == kept.boot, "who moves it on need not know; who is ready has booted"
    assert [told.event.kind for told in store.events("m-1")].count("boot-told") == 5


def test_machines_that_are_back_are_told_newest_first_and_no_more_than_are_asked_for(
    store: Store,
) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run("r", budget=MicroUsd(100)))])
    for name in ("m-1", "m-2", "m-3", "m-4"):
        rented(store, rental(name, "r"))
    assert store.past_rentals() == []
    for name in ("m-2", "m-4", "m-1"):
        back = rental(name, "r").but(state=RentalState.RETURNED, reserved=MicroUsd(0))
        released = e.Released(at=2.0, payer="r", rental=name, amount=MicroUsd(5))
        store.append([released, e.RentalChanged(at=2.0, rental=back)])
    assert [one.id for one in store.past_rentals()] == ["m-1", "m-4", "m-2"]
    assert [one.id for one in store.past_rentals(2)] == ["m-1", "m-4"]


def test_what_a_job_brings_to_a_machine_is_kept_with_it_and_where_it_lies_with_the_job(
    store: Store,
) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run("r", budget=MicroUsd(100)))])
    store.append(submitted(a_job("a", run="r")))
    made = rental("m-1", "r")
    rented(store, made)
    place = Placement(node="m-1")
    why = Reason(code=Code.PLACED, says="there is room")
    saved = Checkpoint(attempt=1, seq=1, name="c", size_bytes=7, saved_at=3.0, manifest="m")
    store.append([
        e.Placed(at=2.0, job="a", attempt=1, placement=place, reason=why),
        e.Started(at=2.5, job="a", attempt=1),
    ])  # fmt: skip
    here = Where(provider="cloud", region="r")
    assert store.world(2.7).jobs["a"].saved_from == here, "what it saves will lie there"
    store.append([e.CheckpointSaved(at=3.0, job="a", attempt=1, checkpoint=saved)])
    assert store.world(4.0).jobs["a"].saved_from == here
    there = rental("m-2", "r").but(taken=an_offer("snow", provider="snow", region="s"))
    rented(store, there)
    brought = e.Brought(
        at=5.0, job="a", rental="m-2", checkpoint="c", left=here, size_bytes=7, cost=MicroUsd(3)
    )
    store.append([brought])
    world = store.world(6.0)
    assert world.jobs["a"].saved_from == Where(provider="snow", region="s")
    (egress,) = world.rentals["m-2"].egress
    assert (egress.job, egress.provider, egress.cost) == ("a", "cloud", MicroUsd(3))
    store.append([e.RentalChanged(at=7.0, rental=there.but(state=RentalState.REQUESTED))])
    assert store.world(8.0).rentals["m-2"].egress == (egress,), "who moves it on need not know"
    assert brought in [told.event for told in store.events("a")]
