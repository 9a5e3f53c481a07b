"""One offer after another that cannot be had: told once, counted, and forgotten when one comes."""

from collections.abc import Sequence

from clouding import an_offer
from makers import a_job

from cloudwhale.cli.fleet import Fleet, Said
from cloudwhale.cli.tries import OVER_AFTER_S, Tries
from cloudwhale.model import event as e
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import NOTHING, micro_usd

JOB = a_job("j-1")
LEASE = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)


def asked(number: int) -> Rental:
    return Rental(
        id=f"rent-{number}", node=f"rent-{number}", payer="run-1", offer="big", lease=LEASE,
        reserved=micro_usd(2), taken=an_offer(type="g5.xlarge"), jobs={"j-1": "default"},
    )  # fmt: skip


class Watcher:
    """A follower's fleet with its tries."""

    def __init__(self) -> None:
        self.fleet, self.tries = Fleet("run-1"), Tries()

    def shown(self, *events: e.Event) -> list[str]:
        found: list[Said] = []
        for event in events:
            if isinstance(event, e.OfJob):
                if not self.tries.holds(JOB, event):
                    found.append(Said(event.job, getattr(event, "kind", ""), event.at))
                continue
            said = self.fleet.take(event)
            found += self.tries.machine(event, self.fleet.named_in(event), said)
        return [f"{one.machine} {one.says}" for one in found]


def a_try(number: int, at: float, code: Code = Code.NO_CAPACITY) -> Sequence[e.Event]:
    """Return what happens when an offer is asked for and cannot be had."""
    rental, no = asked(number), Reason(code=code, says=f"offer-{number}: none left")
    rented = Reason(code=Code.RENTED, says=f"is on its way as {rental.id}")
    back = rental.but(state=RentalState.RETURNED, reserved=NOTHING)
    return (
        e.RentalChanged(at=at, rental=rental),
        e.Waits(at=at, job="j-1", reason=rented),
        e.Noted(at=at, subject=rental.id, reason=no),
        e.Waits(at=at, job="j-1", reason=no),
        e.RentalChanged(at=at, rental=back),
    )


def test_the_first_is_told_and_the_others_are_counted_once_there_is_a_pause() -> None:
    watcher = Watcher()
    first = watcher.shown(*a_try(1, 10.0))
    assert [words.split(":")[0] for words in first] == [
        "rent-1 is asked for", "j-1 waits", "rent-1 offer-1"
    ]  # fmt: skip
    for number in range(2, 40):
        code = Code.QUOTA if number % 10 == 0 else Code.NO_CAPACITY
        assert watcher.shown(*a_try(number, 10.0 + number / 10, code)) == []
    assert watcher.tries.over(14.0) == [] and watcher.tries.waits() == ()
    (said,) = watcher.tries.over(14.0 + OVER_AFTER_S)
    assert (said.machine, said.weight) == ("cloud", "warn")
    assert said.says == "38 more offers tried, none could be had: no-capacity 35, quota 3"
    ((job, event),) = watcher.tries.waits()
    assert job is JOB and event.reason.says == "offer-39: none left", "the newest is told"
    assert watcher.tries.waits() == []


def test_a_machine_that_comes_ends_it_and_is_told_whole() -> None:
    watcher = Watcher()
    for number in range(1, 4):
        watcher.shown(*a_try(number, 10.0))
    rental = asked(4)
    assert watcher.shown(e.RentalChanged(at=11.0, rental=rental)) == []
    boots = rental.but(state=RentalState.BOOTING, requested_at=11.0)
    shown = watcher.shown(e.RentalChanged(at=12.0, rental=boots))
    assert [words[:24] for words in shown] == [
        "cloud 2 more offers trie", "rent-4 is asked for: clo", "rent-4 boots, which take"
    ]  # fmt: skip
    assert watcher.tries.over(100.0) == []
    again = watcher.shown(*a_try(5, 200.0))
    assert again[0].startswith("rent-5 is asked for"), "later ones begin anew"


def test_one_alone_that_cannot_be_had_is_told_as_it_is() -> None:
    watcher = Watcher()
    assert len(watcher.shown(*a_try(1, 10.0))) == 3
    assert watcher.tries.over(10.0 + OVER_AFTER_S) == []
    assert [event.reason.code for _, event in watcher.tries.waits()] == [Code.NO_CAPACITY]


def test_what_else_happens_to_the_job_is_told_at_once() -> None:
    watcher = Watcher()
    watcher.shown(*a_try(1, 10.0))
    assert watcher.shown(e.CancelAsked(at=11.0, job="j-1")) == ["j-1 cancel-asked"]
    watcher.tries.over(30.0)
    assert watcher.tries.waits() == []
