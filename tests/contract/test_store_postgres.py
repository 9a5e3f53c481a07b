"""What only a database server can do: be away, refuse, go in the middle, be of another version."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import psycopg
import pytest
from makers import a_job
from postgres import Server, at_statement, name_in
from sqlalchemy import Engine, event, text
from stories import WHY, submitted

from cloudwhale.control.replay import world_of
from cloudwhale.control.store import SqlStore, open_store
from cloudwhale.control.store import postgres as p
from cloudwhale.control.store.database import Schema
from cloudwhale.control.store.migrate import upgrade
from cloudwhale.model import event as e
from cloudwhale.spi.errors import CloudwhaleError, StoreUnusable
from cloudwhale.spi.store import JobQuery

pytestmark = pytest.mark.postgres

OLDEST = Path(__file__).with_name("database_0001.sql")
SECRET = "pass-word-1"


@pytest.fixture
def store(postgres_store: SqlStore) -> SqlStore:
    return postgres_store


def refused(url: str) -> StoreUnusable:
    """Return why a database cannot be opened; whatever it says, it says no password."""
    with pytest.raises(StoreUnusable) as fault:
        open_store(url, may_migrate=True)
    assert SECRET not in str(fault.value)
    return fault.value


# -- what can be wrong -----------------------------------------------------------------------


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    fault = refused(f"postgresql://ann:{SECRET}@/whale?host={tmp_path}")
    assert "postgresql://ann:***@/whale" in fault.says
    assert "cannot be reached" in fault.says
    assert "Is the server running" in fault.remedy


def test_a_host_that_nobody_knows_is_named() -> None:
    fault = refused(f"postgresql://ann:{SECRET}@no-such-host.invalid/whale")
    assert "cannot be reached" in fault.says


@pytest.fixture
def guarded(postgres: Server) -> str:
    """Make a user who needs a password; return the name."""
    rules = postgres.folder / "data" / "pg_hba.conf"
    name = f"guarded_{abs(hash(rules.read_text())) % 10**9}"
    first = f"local all {name} scram-sha-256\nlocal all shut_out reject\n"
    rules.write_text(first + rules.read_text())
    postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'", "SELECT pg_reload_conf()")
    return name


def test_a_wrong_password_is_named_and_not_shown(postgres: Server, guarded: str) -> None:
    fault = refused(f"postgresql://{guarded}:x{SECRET}@/postgres?host={postgres.folder}")
    assert "does not take the password" in fault.says
    assert "~/.pgpass" in fault.remedy


def test_a_missing_password_is_asked_for(postgres: Server, guarded: str) -> None:
    fault = refused(f"postgresql://{guarded}@/postgres?host={postgres.folder}")
    assert "asks for a password" in fault.says


def test_the_right_password_opens(postgres: Server, guarded: str, postgres_url: str) -> None:
    name = name_in(postgres_url)
    postgres.run(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {guarded}", database=name)
    for said in (f"{guarded}:{SECRET}@/{name}?", f"/{name}?user={guarded}&password={SECRET}&"):
        url = f"postgresql+psycopg://{said}host={postgres.folder}"
        with closing(open_store(url, may_migrate=True)) as store:
            assert store.version() == 0


def test_who_may_not_come_in_is_told_so(postgres: Server, guarded: str) -> None:
    postgres.run("DROP ROLE IF EXISTS shut_out", "CREATE ROLE shut_out LOGIN")
    fault = refused(postgres.url(user="shut_out"))
    assert "lets this user not in" in fault.says


def test_an_unknown_user_is_named(postgres: Server) -> None:
    fault = refused(postgres.url(user="nobody_knows"))
    assert "does not know this user" in fault.says
    assert "createuser" in fault.remedy


def test_a_database_that_does_not_exist_is_named(postgres: Server) -> None:
    fault = refused(postgres.url("no_such_database"))
    assert "does not exist" in fault.says
    assert "createdb" in fault.remedy


def test_a_user_who_may_make_no_tables_is_told_so(postgres: Server) -> None:
    url = postgres.new_database("template0")
    postgres.run("DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")
    fault = refused(url.replace("whale@", "guest@"))
    assert "lets this user not do that" in fault.says
    postgres.drop(url)


def test_a_server_that_can_only_be_read_is_read_and_named(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    store.append(submitted(a_job("a")))
    name = name_in(postgres_url)
    postgres.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with closing(open_store(postgres_url, may_migrate=True)) as reader:
        assert len(reader.jobs(JobQuery())) == 1
        with pytest.raises(StoreUnusable, match="can only be read here") as fault:
            reader.append(submitted(a_job("b")))
    assert "primary" in fault.value.remedy


def test_a_full_disk_is_named_and_takes_nothing_that_was_stored(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    store.append(submitted(a_job("a")))
    name = name_in(postgres_url)
    postgres.run(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
        "'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$",
        "CREATE TRIGGER t BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION full_disk()",
        database=name,
    )
    with pytest.raises(StoreUnusable, match="its server's disk is full"):
        store.append(submitted(a_job("b")))
    postgres.run("DROP TRIGGER t ON jobs", database=name)
    assert store.append(submitted(a_job("b"))) == 2
    assert list(store.world(0.0).jobs) == ["a", "b"]


def test_a_database_of_another_encoding_is_refused(postgres: Server) -> None:
    name = "latin"
    postgres.run(f"DROP DATABASE IF EXISTS {name}")
    postgres.run(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0")
    fault = refused(postgres.url(name))
    assert "its encoding is LATIN1" in fault.says
    postgres.drop(postgres.url(name))


def test_a_server_that_is_too_old_is_refused(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(p, "OLDEST_SERVER", 990000)
    assert "too old" in refused(postgres_url).says


def test_a_database_of_another_program_is_left_alone(postgres: Server) -> None:
    url = postgres.new_database("template0")
    name = name_in(url)
    postgres.run("CREATE TABLE recipes (name text)", database=name)
    assert "recipes" in refused(url).says
    postgres.drop(url)


def test_a_writer_who_keeps_others_waiting_is_named(
    postgres_url: str, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(p, "SESSION", b"SET lock_timeout = '50ms'")
    with (
        closing(open_store(postgres_url, may_migrate=False)) as impatient,
        psycopg.connect(postgres_url) as other,
    ):
        other.execute(p.TAKE_WRITE_LOCK.encode())
        with pytest.raises(StoreUnusable, match="is locked by another program"):
            impatient.append(submitted(a_job("a")))
        assert impatient.jobs(JobQuery()) == [], "who only reads does not wait"
        other.rollback()
        assert impatient.append(submitted(a_job("a"))) == 1


def test_a_question_that_takes_too_long_is_named(store: SqlStore) -> None:
    database = store._database  # no question of ours takes a minute, so one is asked directly
    with (
        pytest.raises(StoreUnusable, match="took too long to answer"),
        database.faults(),
        database.reader.connect() as connection,
    ):
        connection.execute(text("SET LOCAL statement_timeout = '20ms'"))
        connection.execute(text("SELECT pg_sleep(30)"))


def test_a_writer_that_sleeps_in_its_turn_loses_it_and_the_others_go_on(
    postgres_url: str, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = p.LET_GO.replace("15s", "100ms")
    monkeypatch.setattr(p, "LET_GO", quick)
    with closing(open_store(postgres_url, may_migrate=False)) as sleeper:

        def sleep() -> None:
            monkeypatch.setattr(p, "LET_GO", quick.replace("100ms", "15s"))
            assert store.append(submitted(a_job("b"))) == 1, "as soon as the sleeper's turn is over"

        with (
            at_statement("INSERT INTO events", sleep),
            pytest.raises(StoreUnusable, match="did nothing for too long|was lost"),
        ):
            sleeper.append(submitted(a_job("a")))
        assert sleeper.append(submitted(a_job("a"))) == 2


def test_a_row_that_is_no_value_is_named(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    store.append(submitted(a_job("a")))
    name = name_in(postgres_url)
    postgres.run("""UPDATE jobs SET body = '{"id": "a"}'""", database=name)
    with pytest.raises(StoreUnusable, match="holds a Job that this program cannot read"):
        store.jobs(JobQuery())


def test_a_table_that_is_gone_is_named(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    name = name_in(postgres_url)
    postgres.run("DROP TABLE positions", database=name)
    with pytest.raises(StoreUnusable, match="has lost a table"):
        store.read_to()


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@host:port/db",
        f"postgresql://ann:{SECRET}:x@host/db",
        f"postgresql://ann:{SECRET}@host/db?no_such_option=1",
        f"postgresql://ann:{SECRET}@host/db?options",
        f"postgresql://ann:%zz{SECRET}@host/db",
    ],
)
def test_a_url_that_makes_no_sense_is_shown_without_its_password(url: str) -> None:
    fault = refused(url)
    assert fault.says and fault.remedy


def test_without_the_driver_the_line_that_installs_it_is_said(postgres_url: str) -> None:
    program = (
        "import sys\n"
        "sys.modules['psycopg'] = None\n"
        "from cloudwhale.control.store import open_store\n"
        "open_store(sys.argv[1], may_migrate=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, postgres_url], capture_output=True, text=True, timeout=60
    )
    assert "StoreUnusable" in done.stderr
    assert "pip install 'cloudwhale[postgres]'" in done.stderr


# -- who else is there -----------------------------------------------------------------------


def test_programs_that_begin_a_new_database_at_once_agree(postgres: Server) -> None:
    url = postgres.new_database("template0")
    together = Barrier(6)

    def begin(_: int) -> int:
        together.wait(timeout=60)
        with closing(open_store(url, may_migrate=False)) as store:
            return store.append([e.Noted(at=0.0, subject="x", reason=WHY)])

    with ThreadPoolExecutor(6) as threads:
        assert sorted(threads.map(begin, range(6))) == [1, 2, 3, 4, 5, 6]
    postgres.drop(url)


def test_two_installations_may_share_a_database_in_schemas_of_their_own(postgres: Server) -> None:
    url = postgres.new_database("template0")
    name = name_in(url)
    postgres.run("CREATE SCHEMA one", "CREATE SCHEMA two", database=name)
    stores = [
        open_store(f"{url}&options=-csearch_path%3D{schema}", may_migrate=True)
        for schema in ("one", "two")
    ]
    stores[0].append(submitted(a_job("a")))
    assert [store.version() for store in stores] == [1, 0]
    for store in stores:
        store.close()
    postgres.drop(url)


def test_whether_anything_happened_is_one_question_outside_of_any_transaction(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    store.append(submitted(a_job("a")))
    store.version()
    asked: list[str] = []

    def note(*call: Any) -> None:
        asked.append(str(call[2]))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        for _ in range(20):
            store.version()
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert asked == []
    states = postgres.run(
        "SELECT DISTINCT state FROM pg_stat_activity WHERE application_name = 'cloudwhale' "
        f"AND datname = '{name_in(postgres_url)}'"
    )
    assert states == [("idle",)]


# -- versions --------------------------------------------------------------------------------


@pytest.fixture
def oldest(postgres: Server) -> Iterator[str]:
    """Make a database as the first revision left it; return its URL."""
    url = as_left(postgres, OLDEST, "0001")
    yield url
    postgres.drop(url)


def as_left(postgres: Server, file: Path, revision: str) -> str:
    """Make a database as the program of a revision left it; return its URL."""
    url = postgres.new_database("template0")
    database = p.PostgresDatabase(url)
    rows = [line for line in file.read_text().splitlines() if line.startswith("INSERT INTO")]
    with database.writer.begin() as connection:
        upgrade(connection, Schema(head=revision))
        for row in rows:
            if "alembic_version" not in row:
                connection.exec_driver_sql(row.replace("%", "%%"))
    database.close()
    return url


def test_a_database_of_the_first_revision_goes_on_as_if_it_had_always_been_of_this(
    oldest: str,
) -> None:
    with pytest.raises(StoreUnusable, match="has revision 0001") as fault:
        open_store(oldest, may_migrate=False)
    assert "pg_dump" in fault.value.remedy
    with closing(open_store(oldest, may_migrate=True)) as store:
        world = store.world(200.0)
        assert world.use["nlp"].device_s == 50.0
        assert world.nodes["host"].cached == ("label:llama", "label:bert")
        assert world == store.world_at(store.version(), 200.0)


def test_offers_that_each_round_held_are_kept_once_and_found_again(postgres: Server) -> None:
    url = as_left(postgres, OLDEST.with_name("database_0003.sql"), "0003")
    with closing(open_store(url, may_migrate=True)) as store:
        rounds = [stored for n in (1, 2, 3, 4) if (stored := store.round(n)) is not None]
        offers = [[offer.id for offer in world_of(store, each).offers] for each in rounds]
    assert offers == [[], ["big", "small"], ["big", "small"], ["big"]]
    kept = postgres.run("SELECT count(*) FROM offer_lists", database=name_in(url))
    assert kept == [(2,)]
    postgres.drop(url)


def columns(postgres: Server, url: str) -> list[tuple[Any, ...]]:
    name = name_in(url)
    return postgres.run(
        "SELECT table_name, column_name, data_type, is_nullable, character_maximum_length "
        "FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2",
        database=name,
    ) + postgres.run(
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
        database=name,
    )


def test_all_migrations_make_the_tables_of_a_new_database(
    postgres: Server, postgres_url: str, oldest: str
) -> None:
    open_store(oldest, may_migrate=True).close()
    assert columns(postgres, oldest) == columns(postgres, postgres_url)


def test_a_program_that_runs_on_refuses_to_write_what_was_migrated_meanwhile(
    postgres: Server, postgres_url: str, store: SqlStore
) -> None:
    name = name_in(postgres_url)
    postgres.run("UPDATE alembic_version SET version_num = '9999'", database=name)
    with pytest.raises(StoreUnusable, match="migrated to revision 9999 while this program ran"):
        store.append(submitted(a_job("b")))
    with pytest.raises(CloudwhaleError, match="written by a newer version"):
        open_store(postgres_url, may_migrate=True)
