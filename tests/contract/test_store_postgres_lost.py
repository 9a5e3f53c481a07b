"""A database server that goes away: in a question, in a write, or when it is asked to commit."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from makers import a_job
from postgres import Server, at_statement, name_in
from sqlalchemy import Connection, Engine, event
from stories import WHY, a_place, a_round, completes, submitted, was_placed

from cloudwhale.control.store import SqlStore
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.store import JobQuery

pytestmark = pytest.mark.postgres


@pytest.fixture
def store(postgres_store: SqlStore) -> SqlStore:
    return postgres_store


def test_a_connection_that_was_idle_when_its_server_went_is_no_error(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    store.append(submitted(a_job("a")))
    assert store.version() == 1
    assert list(store.world(0.0).jobs) == ["a"]
    assert postgres.end_sessions(postgres_url) == 2
    assert store.version() == 1
    assert postgres.end_sessions(postgres_url) >= 1
    assert len(store.jobs(JobQuery())) == 1
    assert postgres.end_sessions(postgres_url) >= 1
    assert store.append(submitted(a_job("b"))) == 2
    assert list(store.world(0.0).jobs) == ["a", "b"]


def test_a_connection_lost_in_a_write_loses_nothing_and_the_next_write_connects_again(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    store.append(submitted(a_job("a")))
    store.world(0.0)
    with (
        at_statement("INSERT INTO events", lambda: postgres.end_sessions(postgres_url)),
        pytest.raises(StoreUnusable, match="was lost while this program talked to it") as fault,
    ):
        store.append(submitted(a_job("b")))
    assert "Nothing is lost" in fault.value.remedy
    assert store.append(submitted(a_job("b"))) == 2
    assert list(store.world(0.0).jobs) == ["a", "b"]


def test_a_question_whose_connection_is_lost_is_asked_again(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    store.append(submitted(a_job("a")))
    with at_statement("FROM jobs", lambda: postgres.end_sessions(postgres_url)):
        assert len(store.jobs(JobQuery())) == 1
    with at_statement("FROM nodes", lambda: postgres.end_sessions(postgres_url)):
        assert list(store.world(0.0).jobs) == ["a"]


def test_a_question_to_a_server_that_stays_away_is_answered_with_a_sentence(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    postgres.let_in(postgres_url, False)
    postgres.end_sessions(postgres_url)
    for _ in range(2):
        with pytest.raises(StoreUnusable, match="not currently accepting connections"):
            store.jobs(JobQuery())
        with pytest.raises(StoreUnusable, match="not currently accepting connections"):
            store.version()
    postgres.let_in(postgres_url, True)
    assert (store.jobs(JobQuery()), store.version()) == ([], 0)


class Commits:
    """Strikes at commits: before or after the server has heard them, each once."""

    def __init__(self, *, heard: bool, times: int = 1) -> None:
        self._heard, self._left = heard, times

    def __call__(self, connection: Connection) -> None:
        if not self._left:
            return
        self._left -= 1
        driver: Any = connection.connection.driver_connection
        if self._heard:
            driver.commit()
        driver.close()  # the answer never comes


@pytest.fixture
def strikes() -> Iterator[Callable[[Commits], None]]:
    begun: list[Commits] = []

    def begin(commits: Commits) -> None:
        begun.append(commits)
        event.listen(Engine, "commit", commits)

    yield begin
    for each in begun:
        event.remove(Engine, "commit", each)


@pytest.mark.parametrize("heard", [True, False])
def test_events_whose_commit_got_no_answer_are_stored_once(
    store: SqlStore, strikes: Callable[[Commits], None], heard: bool
) -> None:
    store.append(submitted(a_job("a"), a_job("b")))
    strikes(Commits(heard=heard))
    assert store.append(completes("a")) == 5
    assert [told.event.kind for told in store.events("a")][1:] == ["placed", "started", "finished"]
    assert store.world(9.0) == store.world_at(5, 9.0)


@pytest.mark.parametrize("heard", [True, False])
def test_who_appends_again_what_was_in_doubt_with_what_came_since_stores_each_once(
    postgres: Server,
    postgres_url: str,
    store: SqlStore,
    strikes: Callable[[Commits], None],
    heard: bool,
) -> None:
    store.append(submitted(a_job("a"), a_job("b")))
    epoch = store.new_epoch("host", 0.0)
    strikes(Commits(heard=heard))
    # The server stays away for a while: nobody can say whether the commit was heard.
    paused = e.Paused(at=4.0, job="a", reason=WHY)
    batch = [*completes("a")[:2], paused]
    with (
        at_statement("UPDATE jobs", lambda: postgres.let_in(postgres_url, False)),
        pytest.raises(StoreUnusable),
    ):
        store.append(batch, epoch=epoch)
    postgres.let_in(postgres_url, True)
    noted = e.Noted(at=5.0, subject="a", reason=WHY)
    assert store.append([*batch, noted], epoch=epoch) == 6
    kinds = [told.event.kind for told in store.events("a")]
    assert kinds == ["submitted", "placed", "started", "paused", "noted"]
    assert store.append([noted], epoch=epoch) == 7, "the doubt is over"


def test_a_round_whose_commit_got_no_answer_is_planned_again_from_what_was_stored(
    store: SqlStore, strikes: Callable[[Commits], None]
) -> None:
    epoch = store.new_epoch("host", 0.0)
    seen = store.append(submitted(a_job("a")))
    strikes(Commits(heard=True))
    with pytest.raises(StoreUnusable):
        store.record(a_round(seen, a_place("a")), [was_placed("a")], epoch=epoch)
    assert store.world(1.0).jobs["a"].state is JobState.STARTING
    assert store.version() == 2


def test_a_server_that_came_back_knowing_less_is_believed(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    store.append(submitted(a_job("a"), a_job("b")))
    assert store.version() == 2
    assert list(store.world(0.0).jobs) == ["a", "b"]
    name = name_in(postgres_url)
    # As a standby that had not heard of the last event when it took over.
    postgres.run(
        "DELETE FROM events WHERE seq = 2", "DELETE FROM jobs WHERE seq = 2", database=name
    )
    postgres.end_sessions(postgres_url)
    assert list(store.world(0.0).jobs) == ["a"]
    assert store.append(submitted(a_job("c"))) == 2
    assert list(store.world(0.0).jobs) == ["a", "c"]
