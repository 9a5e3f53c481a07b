"""Storms of notices, kills while they are told, and the end of a controller."""

from pathlib import Path

import pytest
from makers import a_job
from notify_house import TOLD, House, fails, opened, told_of
from staging import ControllerDied, Fuse, MortalEffects, MortalStore
from stories import completes, submitted

from cloudwhale.control.effects import InlineEffects
from cloudwhale.control.notifying.message import Answer, Message
from cloudwhale.control.notifying.targets import Target
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import Fenced

# -- storms ----------------------------------------------------------------------------------


def test_a_storm_is_put_together() -> None:
    house = House()
    jobs = [f"j{n}" for n in range(1000)]
    opened(house, *jobs)
    for job in jobs:
        house.happens(*completes(job))
    house.play(house.now + 600)
    assert len(house.all.got) <= 15
    assert (
        told_of(house) == {one.id: 1 for one in house.store.notices()}
        and len(told_of(house)) == 1000
    )


def test_a_steady_stream_is_no_more_than_so_many_messages_in_a_minute() -> None:
    house = House()
    jobs = [f"j{n}" for n in range(120)]
    opened(house, *jobs)
    sent_at: list[Instant] = []

    def answer(target: Target, message: Message) -> Answer:
        sent_at.append(house.now)
        return TOLD

    house.all.answer = answer
    for job in jobs:
        house.happens(*completes(job))
        house.play(house.now + 2.0)
    house.play(house.now + 300)
    most = max(sum(at <= other < at + 60 for other in sent_at) for at in sent_at)
    assert most <= 11, "ten, and what was put together"
    assert len(told_of(house)) == 120 and set(told_of(house).values()) == {1}


def test_who_comes_back_after_an_outage_gets_it_put_together() -> None:
    house, back_at = House(), 100.0 + 3600
    house.all.answer = lambda target, message: (
        TOLD if house.now >= back_at else Answer("again", "nothing in time")
    )
    opened(house, *(f"j{n}" for n in range(60)))
    for n in range(60):
        house.happens(*completes(f"j{n}"))
        house.play(house.now + 30.0)
    before = len(house.all.got)
    house.play(back_at + 4 * 3600)
    assert len(house.all.got) - before < 40
    assert {one.state for one in house.store.notices()} == {"told"}


# -- kills -----------------------------------------------------------------------------------


def _life(house: House, fuse: Fuse) -> None:
    """One controller's life, which may end around any of its writes and messages."""
    house.effects = MortalEffects(fuse)
    house.begin(MortalStore(house.store, fuse))
    house.play(house.now + 200)


@pytest.mark.parametrize("after", [False, True])
def test_whenever_it_is_killed_all_is_told_and_what_comes_twice_is_the_same(after: bool) -> None:
    point = 1
    while True:
        house = House()
        opened(house, *(f"j{n}" for n in range(14)))
        house.happens(*(event for n in range(13) for event in completes(f"j{n}")), *fails("j13"))
        fuse = Fuse(point, after)
        try:
            _life(house, fuse)
        except ControllerDied:
            house.effects = InlineEffects()
            house.begin()
            house.play(house.now + 300)
        bodies = {(name, message.id): message.body() for name, message in house.all.got}
        assert all(bodies[name, message.id] == message.body() for name, message in house.all.got)
        once = told_of(house, distinct=True)
        assert once == {one.id: 1 for one in house.store.notices()} and len(once) == 14
        assert {one.state for one in house.store.notices()} == {"told"}
        if fuse.count < point:
            return
        point += 1


def test_whoever_was_taken_over_from_tells_no_more(tmp_path: Path) -> None:
    store = open_store(sqlite_url(tmp_path / "db"), may_migrate=True)
    house = House(store)
    opened(house, "a")
    house.happens(*completes("a"))
    store.new_epoch("another", house.now)
    with pytest.raises(Fenced):
        house.step()
    assert house.all.got == []
    store.close()


def test_a_database_keeps_what_is_to_betold_of(tmp_path: Path) -> None:
    store = open_store(sqlite_url(tmp_path / "db"), may_migrate=True)
    house = House(store)
    opened(house, "a", "b")
    house.all.answer = lambda target, message: Answer("again", "nothing in time")
    house.happens(*completes("a"), *fails("b"))
    house.play(house.now + 1)
    assert [one.state for one in store.notices(due=True)] == ["due", "due"]
    house.all.answer = lambda target, message: TOLD
    house.begin()
    house.play(house.now + 100)
    assert not store.notices(due=True) and len(store.notices(limit=1)) == 1
    store.close()


def test_nothing_waits_for_a_controller_that_ends_but_what_can_arrive() -> None:
    house = House()
    opened(house, *(f"j{n}" for n in range(40)))
    house.happens(*(event for n in range(40) for event in completes(f"j{n}")))
    while house.telling.out(house.now, house.epoch, house.effects):
        pass
    assert len(told_of(house)) == 40, "nothing is put off"
    house.all.answer = lambda target, message: Answer("again", "nothing in time")
    opened_more = submitted(a_job("last"))
    house.store.append(opened_more)
    house.happens(*completes("last"))
    turns = 0
    while house.telling.out(house.now, house.epoch, house.effects):
        turns += 1
    assert turns < 10, "who does not answer is not waited for"
