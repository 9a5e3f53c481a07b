"""Of nights that are over and of what stays in a cloud people are told once, whoever controls."""

import pytest
from makers import a_job, a_run
from notify_house import WHY, House, fails
from stories import completes, submitted

from cloudwhale.control.notifying.message import message_of
from cloudwhale.model import event as e
from cloudwhale.model.night import Night
from cloudwhale.model.notice import NoticeKind
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import MicroUsd

USD = 1_000_000


def test_a_night_that_is_over_is_told_with_each_of_its_jobs_once() -> None:
    house = House()
    night = Night(
        name="lab",
        date="2026-11-30",
        zone="UTC",
        opens_at=0.0,
        closes_at=90.0,
        unfinished="carry-over",
    )
    house.store.append([e.RunOpened(at=1.0, run=a_run(budget=MicroUsd(8 * USD), night=night))])
    house.store.append(submitted(*(a_job(job) for job in ("a", "b", "c", "d"))))
    house.step()
    house.happens(*completes("a"), *fails("b"))
    house.happens(e.NightClosed(at=91.0, run="run-1", unfinished={"c": "carry-over", "d": "park"}))
    house.happens(e.Parked(at=91.0, job="d", reason=WHY))
    house.play(house.now + 10)
    for _ in range(2):  # whoever comes next tells it no more
        house.begin()
        house.play(house.now + 10)
    (notice,) = [one for one in house.store.notices() if one.kind is NoticeKind.NIGHT]
    assert notice.counts == {"completed": 1, "failed": 1, "carry-over": 1, "park": 1}
    message = message_of(notice)
    assert message.title == "the night lab of 2026-11-30 is over"
    assert "Jobs: 1 completed, 1 failed, 1 carried over, 1 parked." in message.text
    assert "0.00 USD of 8.00 USD spent" in message.text
    assert house.all.titles().count(message.title) == 1


@pytest.mark.parametrize("lives", [1, 3])
def test_what_cannot_be_removed_is_told_once_however_many_controllers_find_it(lives: int) -> None:
    house = House()
    house.step()
    stays = Reason(code=Code.LEFTOVER_STAYS, says="cannot remove c/vol-1: it is in use")
    for _ in range(lives):
        house.begin()
        house.happens(e.Noted(at=2.0, subject="c/vol-1", reason=stays))
        house.play(house.now + 10)
    assert house.all.titles() == ["something was left over in a cloud"]


def test_what_cannot_be_done_otherwise_is_no_leak_whatever_it_says() -> None:
    house = House()
    house.step()
    cannot = Reason(code=Code.CANNOT_ACT, says="cannot remove its folder: the disk is full")
    house.happens(e.Noted(at=2.0, subject="job-1", reason=cannot))
    house.play(house.now + 10)
    assert house.all.got == []
