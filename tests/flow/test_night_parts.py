"""Jobs that no single night holds, in simulated time: each night does a part, and nothing twice."""

from typing import Any

import pytest
from clouding import an_offer
from night_world import CLOSES, DAY, HOUR, Evening, Nights, a_night, an_arrival, played

from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import micro_usd

EVERY_S, GRACE_S = 300.0, 20.0
MAY_LOSE_S = EVERY_S + 10.0 + GRACE_S + 30.0  # as promised: save and publish interval, save, upload


def evenings(count: int, unfinished: str = "carry-over", **of: Any) -> list[Evening]:
    first = Evening(0.0, a_night(0, unfinished), ("a",), **of)
    return [first, *(Evening(n * DAY, a_night(n, unfinished), (), **of) for n in range(1, count))]


def machines(of: Nights) -> list[Rental]:
    return [*of.store.past_rentals(), *of.store.rentals()]


def told(of: Nights) -> list[str]:
    return [event.reason.says for event in of.events if isinstance(event, e.Waits)]


def changes(of: Nights) -> list[str]:
    found = (event.reason for event in of.events if isinstance(event, e.Waits))
    return [one.change for one in found if one.code is Code.NIGHT]


def kept_their_hours(of: Nights) -> None:
    nights = {f"night-{n}": one.night for n, one in enumerate(of.evenings, 1)}
    for one in machines(of):
        night = nights[one.payer]
        assert night.opens_at <= one.reserved_at
        assert one.lease.away_until <= night.closes_at
        assert one.ended_at is not None and one.ended_at <= night.closes_at + 180


@pytest.mark.parametrize("restarts", [False, True])
def test_a_job_of_three_nights_does_a_part_in_each_and_is_completed(restarts: bool) -> None:
    of = played([an_arrival("a", 9 * HOUR)], *evenings(3), restarts=restarts)
    job = of.jobs["a"]
    assert job.state is JobState.COMPLETED and job.run == "night-3"
    assert job.run_s < 9 * HOUR + 2 * MAY_LOSE_S, "two nights that end lose two saves at most"
    assert job.attempt == 3 and len(machines(of)) == 3, "one machine a night"
    kept_their_hours(of)
    assert [one.unfinished for one in of.closed] == [{"a": "carry-over"}, {"a": "carry-over"}, {}]
    stops = [event.reason for event in of.events if isinstance(event, e.StopWished)]
    assert all("the next night of lab" in reason.change for reason in stops) and len(stops) == 2
    parts = [says for says in told(of) if "goes on from its checkpoint" in says]
    assert len(parts) == 2 and "of the 32400 s that are left of it" in parts[0], "the third does it"


def test_who_may_be_taken_away_in_its_part_loses_no_more_than_was_promised() -> None:
    spot = an_offer("spot", market="spot", boot_s=120.0, notice_s=30.0, hazard_per_h=0.4)
    of = played([an_arrival("a", 8 * HOUR)], *evenings(4), offer=spot)
    job = of.jobs["a"]
    assert job.state is JobState.COMPLETED and job.interruptions > 0
    assert job.lost_s <= job.interruptions * MAY_LOSE_S
    assert job.run_s < 8 * HOUR + job.interruptions * MAY_LOSE_S
    assert len(machines(of)) > 3, "the rest of a night was worth another machine"
    kept_their_hours(of)


@pytest.mark.parametrize(
    ("unfinished", "rule", "lacks"),
    [
        ("carry-over", None, "`checkpoint`"),
        ("park", CheckpointRule(every_s=EVERY_S, grace_s=GRACE_S), "`unfinished: carry-over`"),
        ("continue", CheckpointRule(every_s=EVERY_S, grace_s=GRACE_S), "`unfinished: carry-over`"),
        ("carry-over", CheckpointRule(every_s=4 * HOUR, grace_s=GRACE_S), "a longer window"),
    ],
)
def test_who_would_lose_its_part_is_not_begun_and_is_told_what_would_change_that(
    unfinished: str, rule: CheckpointRule | None, lacks: str
) -> None:
    of = played([an_arrival("a", 9 * HOUR, checkpoint=rule)], *evenings(2, unfinished))
    assert not machines(of) and of.jobs["a"].attempt == 0
    assert any(lacks in change for change in changes(of))


def test_a_job_whose_deadline_comes_before_another_night_is_not_begun_in_vain() -> None:
    of = played([an_arrival("a", 9 * HOUR, deadline=CLOSES)], *evenings(1))
    assert not machines(of)
    later = played([an_arrival("a", 7 * HOUR, deadline=2 * DAY)], *evenings(2))
    assert later.jobs["a"].state is JobState.COMPLETED


def test_where_the_money_holds_no_whole_night_it_does_as_much_as_that_pays_for() -> None:
    """All of a night is set aside with 14.8 dollars."""
    of = played([an_arrival("a", 8 * HOUR)], *evenings(3, budget=micro_usd(11)))
    assert of.jobs["a"].state is JobState.COMPLETED and len(machines(of)) == 3
    for night in of.store.nights():
        assert 0 < sum(of.store.spent(night.id).values()) <= micro_usd(11)
    kept_their_hours(of)


def test_what_a_night_can_complete_is_not_left_out_for_a_part_of_another() -> None:
    """Both may cost more than there is: a day's worth of waiting is saved by who is done."""
    work = [an_arrival("a", 30 * HOUR), an_arrival("b", 3 * HOUR)]
    both = Evening(0.0, a_night(0, "carry-over"), ("a", "b"), micro_usd(18))
    of = played(work, both)
    assert of.jobs["b"].state is JobState.COMPLETED
    assert of.spent <= micro_usd(18)


def test_started_parts_need_no_money_beyond_their_night() -> None:
    """What is left of them is paid for by another night: nobody else is refused for its sake."""
    work = [an_arrival("a", 60 * HOUR), an_arrival("b", HOUR)]
    late = Evening(0.0, a_night(0, "carry-over"), ("a", "b"), micro_usd(30))
    of = played(work, late)
    assert of.jobs["b"].state is JobState.COMPLETED and of.jobs["a"].kept_s > 3 * HOUR
