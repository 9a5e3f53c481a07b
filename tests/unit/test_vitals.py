"""What is counted in ticks: refusals by whom, machines that were taken, once each."""

from clouding import an_offer
from makers import a_world

from cloudwhale.control.effects import Key, Result
from cloudwhale.control.vitals import Vitals
from cloudwhale.model import event as e
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.errors import NoCapacity, QuotaExceeded, StoreUnusable, Unreachable

LEASE = Lease(number=1, watched_until=1.0, away_until=2.0, stop_at=3.0)
HIRED = Rental(
    id="m-1", payer="run-1", offer="o", state=RentalState.READY, lease=LEASE,
    reserved=MicroUsd(1), taken=an_offer(),
)  # fmt: skip


def counted(vitals: Vitals, name: str) -> dict[tuple[str, ...], float]:
    world = a_world([], rentals={"m-1": HIRED})
    vitals.ends(world, lambda now: world, {}, "")
    assert vitals.newest is not None
    return dict(vitals.newest.counts.get(f"cloudwhale_{name}", {}))


def begun() -> Vitals:
    vitals = Vitals()
    vitals.is_asked = True
    counted(vitals, "jobs")
    return vitals


def test_refusals_are_counted_by_the_provider_that_was_asked_and_by_what_it_said() -> None:
    vitals, of = begun(), an_offer().provider
    for key, error in (
        (Key("launch", "m-1"), NoCapacity("none")),
        (Key("launch", "m-1"), NoCapacity("none")),
        (Key("extend", "m-1"), QuotaExceeded("no more")),
        (Key("look", "elsewhere"), Unreachable("silence")),
        (Key("remove", "elsewhere/vol-1"), Unreachable("silence")),
        (Key("read", "m-1"), StoreUnusable("a store is no provider")),
        (Key("launch", "unknown"), NoCapacity("of a machine that nobody knows")),
    ):
        vitals.answered(Result(key, error=error))
    assert counted(vitals, "api_errors_total") == {
        (of, "no-capacity"): 2, (of, "quota-exceeded"): 1, ("elsewhere", "unreachable"): 2,
    }  # fmt: skip


def test_a_machine_that_is_taken_away_counts_once_however_often_that_is_told() -> None:
    vitals = begun()
    taken = HIRED.but(interrupted_at=5.0)
    again = taken.but(state=RentalState.LOST)
    vitals.happened([e.RentalChanged(at=5.0, rental=HIRED)])
    vitals.happened([e.RentalChanged(at=5.0, rental=one) for one in (taken, again)])
    offer = an_offer()
    assert counted(vitals, "preemptions_total") == {(offer.provider, offer.market): 1}


def test_nobody_who_does_not_ask_pays_for_what_is_left_behind() -> None:
    vitals = Vitals()
    world = a_world()
    vitals.ends(world, lambda now: 1 / 0, {}, "")  # type: ignore[arg-type, return-value]
    assert vitals.newest is None
