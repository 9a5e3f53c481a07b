"""What every store does with the offers that rounds were made with: each list is kept once."""

import random
from contextlib import closing
from pathlib import Path

import pytest
from makers import a_job
from stories import a_place, a_round, submitted, was_placed

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.control.store.sqlite import SqliteDatabase
from cloudwhale.spi.errors import IllegalTransition, StaleWorld, StoreUnusable
from cloudwhale.spi.store import Store

LIST = '[{"id":"größe"},{"id":"small"}]'


@pytest.fixture
def begun(store: Store) -> Store:
    """Return a store with three jobs and a controller."""
    store.append(submitted(a_job("a"), a_job("b"), a_job("c")))
    store.new_epoch("host", 0.0)
    return store


def record(store: Store, job: str, digest: str = "", offers: str = "") -> int:
    made = a_round(store.version(), a_place(job)).but(offers=digest)
    return store.record(made, [was_placed(job)], epoch=1, offers=offers)


def test_a_list_of_offers_comes_back_as_it_was_given(begun: Store) -> None:
    number = record(begun, "a", "one", LIST)
    stored = begun.round(number)
    assert stored is not None and stored.offers == "one"
    assert begun.offer_list("one") == LIST


def test_rounds_of_the_same_list_share_it(begun: Store) -> None:
    numbers = [record(begun, job, "one", LIST) for job in ("a", "b")]
    numbers.append(record(begun, "c", "two", "[]"))
    rounds = [begun.round(number) for number in numbers]
    assert [stored.offers for stored in rounds if stored is not None] == ["one", "one", "two"]
    assert (begun.offer_list("one"), begun.offer_list("two")) == (LIST, "[]")


def test_where_nothing_is_offered_no_list_is_kept(begun: Store) -> None:
    record(begun, "a")
    assert begun.offer_list("") is None


def test_a_list_that_nobody_gave_is_not_there(store: Store) -> None:
    assert store.offer_list("one") is None


def test_a_round_that_is_not_stored_leaves_no_list(begun: Store) -> None:
    seen = begun.version()
    begun.append(submitted(a_job("d")))
    with pytest.raises(StaleWorld):
        begun.record(a_round(seen, a_place("a")).but(offers="one"), [], epoch=1, offers=LIST)
    ghost = a_round(begun.version(), a_place("ghost")).but(offers="one")
    with pytest.raises(IllegalTransition):
        begun.record(ghost, [was_placed("ghost")], epoch=1, offers=LIST)
    nothing = a_round(begun.version()).but(offers="one")
    assert begun.record(nothing, [], epoch=1, offers=LIST) == 0
    assert begun.offer_list("one") is None


def test_another_program_reads_the_list_that_one_has_kept(tmp_path: Path) -> None:
    with closing(open_store(sqlite_url(tmp_path), may_migrate=True)) as store:
        store.append(submitted(a_job("a")))
        store.new_epoch("host", 0.0)
        record(store, "a", "one", LIST)
    with closing(open_store(sqlite_url(tmp_path), may_migrate=False)) as store:
        assert store.offer_list("one") == LIST


def test_ten_rounds_of_a_long_list_take_hardly_more_room_than_one(tmp_path: Path) -> None:
    drawn = random.Random(7)
    offers = str([{"id": f"offer-{n}", "price": drawn.random()} for n in range(5000)])
    sizes: list[int] = []
    for rounds in (1, 10):
        folder = tmp_path / str(rounds)
        with closing(open_store(sqlite_url(folder), may_migrate=True)) as store:
            jobs = [a_job(f"job-{n}") for n in range(rounds)]
            store.append(submitted(*jobs))
            store.new_epoch("host", 0.0)
            for job in jobs:
                record(store, job.id, "one", offers)
        sizes.append((folder / "cloudwhale.db").stat().st_size)
    assert sizes[1] - sizes[0] < len(offers) / 4, sizes


def test_a_list_that_is_broken_is_named(tmp_path: Path) -> None:
    with closing(open_store(sqlite_url(tmp_path), may_migrate=True)) as store:
        store.append(submitted(a_job("a")))
        store.new_epoch("host", 0.0)
        record(store, "a", "one", LIST)
        database = SqliteDatabase(tmp_path / "cloudwhale.db")
        with database.writer.begin() as connection:
            connection.exec_driver_sql("UPDATE offer_lists SET body = x'00ff'")
        database.close()
        with pytest.raises(StoreUnusable, match="list of offers that this program cannot read"):
            store.offer_list("one")
