"""Nights of files, in simulated time: their hours, their money, and what is left over of them."""

import pytest
from makers import a_node
from night_world import (
    CLOSES,
    DAY,
    HOUR,
    OPENS,
    Evening,
    Nights,
    a_night,
    an_arrival,
    played,
)

from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import micro_usd


def machines(of: Nights) -> list[Rental]:
    return [*of.store.past_rentals(), *of.store.rentals()]


def kept_its_hours(of: Nights) -> None:
    for one in machines(of):
        night = next(each.night for each in of.evenings if each.night.opens_at <= one.reserved_at)
        assert one.reserved_at >= night.opens_at
        assert one.ended_at is not None and one.lease.away_until <= night_of(of, one).closes_at
        assert one.ended_at <= night_of(of, one).closes_at + 180


def night_of(of: Nights, one: Rental):  # type: ignore[no-untyped-def]
    return of.evenings[int(one.payer.removeprefix("night-")) - 1].night


def test_nothing_is_rented_before_a_night_opens_and_what_is_done_closes_it_early() -> None:
    of = played([an_arrival("a", HOUR), an_arrival("b", 0.5 * HOUR)])
    assert {job.state for job in of.jobs.values()} == {JobState.COMPLETED}
    kept_its_hours(of)
    (closed,) = of.closed
    assert closed.unfinished == {} and OPENS + HOUR < closed.at < CLOSES
    assert min(one.reserved_at for one in machines(of)) < OPENS + 60


def test_a_machine_of_ours_runs_jobs_before_the_night_opens() -> None:
    home = a_node("home", cpu=8.0, memory_gib=64.0)
    of = played([an_arrival("a", 1.5 * HOUR), an_arrival("b", 0.4 * HOUR)], nodes=[home])
    assert of.jobs["a"].state is JobState.COMPLETED and not machines(of)
    (closed,) = of.closed
    assert closed.at < OPENS, "all is done: nothing is waited for"


@pytest.mark.parametrize("unfinished", ["park", "carry-over", "continue"])
def test_what_runs_too_long_has_landed_when_its_night_ends(unfinished: str) -> None:
    """It says two hours and runs ten."""
    night = a_night(unfinished=unfinished)
    of = played([an_arrival("a", 10 * HOUR, 2 * HOUR)], Evening(0.0, night, ("a",)))
    kept_its_hours(of)
    (closed,) = of.closed
    assert closed.unfinished == {"a": unfinished} and CLOSES - 120 < closed.at < CLOSES + 900
    job = of.jobs["a"]
    assert job.state is (JobState.PARKED if unfinished == "park" else JobState.PENDING)
    assert job.checkpoint is not None and job.kept_s > 3 * HOUR, "what it did is kept"
    assert job.reason is not None
    assert job.reason.code is (Code.NIGHT if unfinished == "continue" else Code.LEFT_OVER)


def test_what_is_left_over_goes_on_in_the_next_night_from_where_it_was() -> None:
    first = Evening(0.0, a_night(0, "carry-over"), ("a",))
    second = Evening(DAY, a_night(1, "carry-over"), ("b",))
    of = played([an_arrival("a", 5 * HOUR, 2 * HOUR), an_arrival("b", HOUR)], first, second)
    assert {job.state for job in of.jobs.values()} == {JobState.COMPLETED}
    assert {job.run for job in of.jobs.values()} == {"night-2"}
    assert of.jobs["a"].run_s < 6 * HOUR, "it did not begin anew"
    kept_its_hours(of)
    assert [one.unfinished for one in of.closed] == [{"a": "carry-over"}, {}]
    spent = {one.id: of.store.spent(one.id) for one in of.store.nights()}
    assert sum(spent["night-1"].values()) > 0 and sum(spent["night-2"].values()) > 0
    assert sum(sum(one.values()) for one in spent.values()) == of.spent


@pytest.mark.parametrize("unfinished", ["park", "continue"])
def test_at_home_what_is_left_over_stops_or_goes_on_as_its_file_says(unfinished: str) -> None:
    home = a_node("home", cpu=4.0, memory_gib=64.0)
    night = a_night(unfinished=unfinished)
    of = played([an_arrival("a", 6.5 * HOUR)], Evening(0.0, night, ("a",)), nodes=[home])
    goes_on = unfinished == "continue"
    assert of.jobs["a"].state is (JobState.COMPLETED if goes_on else JobState.PARKED)
    assert len(of.closed) == 1 and not machines(of)
    stops = [one for one in of.events if isinstance(one, e.StopWished)]
    assert [one.reason.code for one in stops] == ([] if goes_on else [Code.NIGHT])


def test_who_cannot_be_done_by_morning_is_not_begun_and_told_so() -> None:
    of = played([an_arrival("a", 5 * HOUR)])
    assert not machines(of)
    reasons = [event.reason for event in of.events if isinstance(event, e.Waits)]
    assert any("is not done when its night closes" in reason.says for reason in reasons)


def test_a_controller_that_dies_after_every_turn_changes_nothing() -> None:
    work = [an_arrival("a", 10 * HOUR, 2 * HOUR), an_arrival("b", HOUR)]
    evenings = (
        Evening(0.0, a_night(0, "carry-over"), ("a", "b")),
        Evening(DAY, a_night(1, "carry-over"), ()),
    )
    once, anew = played(work, *evenings), played(work, *evenings, restarts=True)
    for of in (once, anew):
        assert [(one.run, one.unfinished) for one in of.closed] == [
            ("night-1", {"a": "carry-over"}), ("night-2", {"a": "carry-over"}),
        ]  # fmt: skip
        assert {name: job.state for name, job in of.jobs.items()} == {
            "a": JobState.PENDING, "b": JobState.COMPLETED,
        }  # fmt: skip
        kept_its_hours(of)


def test_two_files_have_nights_side_by_side_each_with_its_own_money() -> None:
    other = a_night(name="other", opens_at=OPENS + HOUR, closes_at=CLOSES + HOUR)
    of = played(
        [an_arrival("a", HOUR), an_arrival("b", HOUR)],
        Evening(0.0, a_night(), ("a",)), Evening(0.0, other, ("b",)),
    )  # fmt: skip
    kept_its_hours(of)
    assert {job.state for job in of.jobs.values()} == {JobState.COMPLETED}
    assert {one.payer for one in machines(of)} == {"night-1", "night-2"}


def test_money_that_does_not_hold_all_goes_to_those_worth_most_a_dollar() -> None:
    """The first in the queue are the dearest; each machine may cost some nine dollars an hour."""
    dear = [an_arrival(f"dear-{n}", 2 * HOUR, priority=10) for n in range(3)]
    cheap = [an_arrival(f"worth-{n}", 0.5 * HOUR, value_of_time_usd_h=60) for n in range(3)]
    names = tuple(one.job for one in (*dear, *cheap))
    evening = Evening(0.0, a_night(), names, micro_usd(14))
    of = played([*dear, *cheap], evening)
    done = {name for name, job in of.jobs.items() if job.state is JobState.COMPLETED}
    assert done >= {"worth-0", "worth-1", "worth-2"} and len(done) < len(names)
    assert of.spent <= micro_usd(14)
    told = [event.reason for event in of.events if isinstance(event, e.Waits)]
    assert any(reason.code is Code.WORTH and "none worth more" in reason.says for reason in told)
    (closed,) = of.closed
    assert closed.at < CLOSES, "no money is left that could hold one more"
