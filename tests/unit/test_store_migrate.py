"""Databases of other versions: who migrates them, after what, and who refuses."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from clouding import an_offer
from makers import a_job
from stories import WHY, submitted

from cloudwhale.control.offers import read_json
from cloudwhale.control.replay import world_of
from cloudwhale.control.store import SqlStore, open_store, sqlite_url
from cloudwhale.control.store import migrate as m
from cloudwhale.control.store.database import SCRIPTS, Schema
from cloudwhale.control.store.sqlite import SqliteDatabase, engine_of, writing
from cloudwhale.model import event as e
from cloudwhale.model.job import Placement
from cloudwhale.model.plan import Round
from cloudwhale.model.rental import Lease, Rental
from cloudwhale.model.units import MicroUsd
from cloudwhale.model.world import Use
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.store import CostQuery

NEXT = '''
"""A queue for every job."""
import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("queue", sa.String, server_default="default"))
'''

OLDEST = Path(__file__).parents[1] / "contract" / "database_0001.sql"

OF_OFFERS = OLDEST.with_name("database_0003.sql")

OF_CHARGES = OLDEST.with_name("database_0004.sql")

BROKEN = NEXT + "    op.drop_table('no_such_table')\n"


def a_later_schema(folder: Path, script: str = NEXT) -> Schema:
    """Return the schema of a program one revision ahead."""
    shutil.copytree(SCRIPTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "r0006_queue.py").write_text(script)
    return Schema(head="0006", scripts=folder)


def stored_in(home: Path, **options: Any) -> SqlStore:
    return SqlStore(SqliteDatabase(home / "cloudwhale.db"), **options)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a folder with a database of today's revision that holds one job."""
    folder = tmp_path / "home"
    store = open_store(sqlite_url(folder), may_migrate=True)
    store.append(submitted(a_job("a")))
    store.close()
    return folder


def tables_of(file: Path) -> dict[str, str]:
    """Return what SQLite was told of every table and index, blanks and quotes aside."""
    connection = sqlite3.connect(file)
    rows = connection.execute("SELECT type || ' ' || name, sql FROM sqlite_master").fetchall()
    connection.close()
    return {name: "".join((sql or "").replace('"', "").split()) for name, sql in rows}


def test_all_migrations_on_an_empty_database_make_the_tables_of_a_new_one(tmp_path: Path) -> None:
    open_store(sqlite_url(tmp_path / "new"), may_migrate=True).close()
    file = tmp_path / "migrated.db"
    engine = engine_of(file, 1.0)
    with writing(engine).begin() as connection:
        m.upgrade(connection, Schema())
    engine.dispose()
    assert tables_of(file) == tables_of(tmp_path / "new" / "cloudwhale.db")


def test_the_newest_script_is_the_head_that_new_databases_are_stamped_with() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    assert ScriptDirectory.from_config(config).get_heads() == [Schema().head]


def test_the_holder_of_the_lock_migrates_after_a_copy(home: Path, tmp_path: Path) -> None:
    schema = a_later_schema(tmp_path / "scripts")
    store = stored_in(home, may_migrate=True, schema=schema)
    assert list(store.world(0.0).jobs) == ["a"]
    store.append(submitted(a_job("b")))
    store.close()
    copy = home / "cloudwhale.db.before-0006"
    assert "queueVARCHAR" in tables_of(home / "cloudwhale.db")["table jobs"]
    assert "queueVARCHAR" not in tables_of(copy)["table jobs"]
    kept = SqlStore(SqliteDatabase(copy))
    assert list(kept.world(0.0).jobs) == ["a"]


def test_a_database_of_the_first_revision_goes_on_as_if_it_had_always_been_of_this(
    tmp_path: Path,
) -> None:
    file = tmp_path / "cloudwhale.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(OLDEST.read_text())
    connection.close()
    store = open_store(sqlite_url(tmp_path), may_migrate=True)
    world = store.world(200.0)
    assert list(world.jobs) == ["running", "waiting"]
    assert world.use == {"nlp": Use(device_s=50.0, at=112.0)}
    assert world.nodes["host"].cached == ("label:llama", "label:bert")
    assert world == store.world_at(store.version(), 200.0), "a replay sees what a round saw"
    store.append([e.Finished(at=214.0, job="running", attempt=1)])
    assert store.world(214.0) == store.world_at(store.version(), 214.0)
    assert store.world(214.0).use["nlp"].device_s == pytest.approx(100.0, rel=1e-2)


def test_offers_that_each_round_held_are_kept_once_and_found_again(tmp_path: Path) -> None:
    file = tmp_path / "cloudwhale.db"
    with sqlite3.connect(file) as connection:
        connection.executescript(OF_OFFERS.read_text())
    connection.close()
    before = held_by_rounds(file)
    store = open_store(sqlite_url(tmp_path), may_migrate=True)
    rounds = [store.round(number) for number in (1, 2, 3, 4)]
    assert None not in rounds
    for was, now in zip(before, rounds, strict=True):
        assert now is not None and world_of(store, now).offers == read_json(was["offers"])
        # Read as today's round: what has come to it since then has its defaults.
        then = Round.model_validate(was | {"offers": ""})
        assert now.but(offers="") == then, "nothing else has changed"
    store.close()
    with sqlite3.connect(file) as connection:
        (kept,) = connection.execute("SELECT count(*) FROM offer_lists").fetchone()
    connection.close()
    assert kept == 2, "two rounds had the same, one had less, one had none"


def held_by_rounds(file: Path) -> list[dict[str, Any]]:
    """Return the bodies of the rounds."""
    connection = sqlite3.connect(file)
    found = connection.execute("SELECT body FROM rounds ORDER BY number").fetchall()
    connection.close()
    return [json.loads(body) for (body,) in found]


def test_others_refuse_an_older_database(home: Path, tmp_path: Path) -> None:
    schema = a_later_schema(tmp_path / "scripts")
    with pytest.raises(StoreUnusable, match="has revision 0005, this program needs 0006") as fault:
        stored_in(home, may_migrate=False, schema=schema)
    assert "cloudwhale controller" in fault.value.remedy
    assert not (home / "cloudwhale.db.before-0006").exists()


def test_everybody_refuses_a_newer_database(home: Path, tmp_path: Path) -> None:
    schema = a_later_schema(tmp_path / "scripts")
    stored_in(home, may_migrate=True, schema=schema).close()
    with pytest.raises(StoreUnusable, match="written by a newer version") as fault:
        open_store(sqlite_url(home), may_migrate=True)
    assert "cloudwhale.db.before-0006" in fault.value.remedy


def test_a_program_that_runs_on_refuses_to_write_what_was_migrated_meanwhile(
    home: Path, tmp_path: Path
) -> None:
    older = open_store(sqlite_url(home), may_migrate=False)
    schema = a_later_schema(tmp_path / "scripts")
    stored_in(home, may_migrate=True, schema=schema).close()
    with pytest.raises(StoreUnusable, match="migrated to revision 0006 while this program ran"):
        older.append(submitted(a_job("b")))


def test_a_migration_that_fails_leaves_the_database_as_it_was(home: Path, tmp_path: Path) -> None:
    before = tables_of(home / "cloudwhale.db")
    schema = a_later_schema(tmp_path / "scripts", BROKEN)
    with pytest.raises(StoreUnusable, match="no_such_table"):
        stored_in(home, may_migrate=True, schema=schema)
    assert tables_of(home / "cloudwhale.db") == before
    assert list(open_store(sqlite_url(home), may_migrate=True).world(0.0).jobs) == ["a"]


def test_nothing_is_migrated_when_the_copy_cannot_be_written(home: Path, tmp_path: Path) -> None:
    (home / "cloudwhale.db.before-0006" / "in-the-way").mkdir(parents=True)
    schema = a_later_schema(tmp_path / "scripts")
    with pytest.raises(StoreUnusable, match="was not migrated: its copy .* cannot be written"):
        stored_in(home, may_migrate=True, schema=schema)
    assert list(open_store(sqlite_url(home), may_migrate=True).world(0.0).jobs) == ["a"]


def test_a_new_database_is_made_at_the_newest_revision(tmp_path: Path) -> None:
    schema = a_later_schema(tmp_path / "scripts")
    stored_in(tmp_path, may_migrate=True, schema=schema).close()
    stored_in(tmp_path, may_migrate=False, schema=schema).close()
    with pytest.raises(StoreUnusable, match="has revision 0006"):
        open_store(sqlite_url(tmp_path), may_migrate=True)


def test_programs_that_begin_a_new_database_at_once_agree(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from cloudwhale.control.store import open_store\n"
        "import cloudwhale.control.store.sql\n"
        "sys.stdin.readline()\n"
        "open_store(sys.argv[1], may_migrate=False).close()\n"
    )
    beginners = [
        subprocess.Popen(
            [sys.executable, "-c", program, sqlite_url(tmp_path)], stdin=subprocess.PIPE
        )
        for _ in range(3)
    ]
    for beginner in beginners:
        beginner.communicate(b"\n", timeout=60)
    assert [beginner.returncode for beginner in beginners] == [0, 0, 0]
    assert open_store(sqlite_url(tmp_path), may_migrate=False).version() == 0


def test_an_older_database_learns_for_how_long_places_on_rented_machines_were_held(
    home: Path,
) -> None:
    store = open_store(sqlite_url(home), may_migrate=True)
    lease = Lease(number=1, watched_until=1.0, away_until=9e9, stop_at=9e9)
    rental = Rental(
        id="m", node="m", payer="run-1", offer="big", lease=lease, taken=an_offer(),
        reserved=MicroUsd(9), jobs={"a": "default"},
    )  # fmt: skip
    place = Placement(node="m")
    store.append(
        [
            e.RentalChanged(at=0.0, rental=rental),
            e.Placed(at=10.0, job="a", attempt=1, placement=place, reason=WHY),
            e.Started(at=20.0, job="a", attempt=1),
            e.Finished(at=900.0, job="a", attempt=1, ran_s=70.0),
        ]
    )
    held_s = store.world(900.0).rentals["m"].held_s
    store.close()
    with sqlite3.connect(home / "cloudwhale.db") as connection:  # as revision 2 would have left it
        connection.execute("UPDATE rentals SET body = json_remove(body, '$.held_s')")
        connection.execute("DROP TABLE budgets")
        connection.execute("DROP TABLE offer_lists")
        connection.execute("DROP TABLE notices")
        connection.execute("ALTER TABLE families DROP COLUMN peaks")
        connection.execute("UPDATE alembic_version SET version_num = '0002'")
    connection.close()
    store = open_store(sqlite_url(home), may_migrate=True)
    world = store.world(900.0)
    assert world.rentals["m"].held_s == held_s == {"a": 80.0 * part_of_it()}
    assert world == store.world_at(store.version(), 900.0), "a replay sees what a round saw"


def part_of_it() -> float:
    return a_job("a").wants.cpu / an_offer().facts.cpu


def test_charges_of_old_become_lines_that_say_what_is_known(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "cloudwhale.db") as connection:
        connection.executescript(OF_CHARGES.read_text())
        before = connection.execute("SELECT payer, rental, job, project, amount FROM charges")
        charged = before.fetchall()
    connection.close()
    store = open_store(sqlite_url(tmp_path), may_migrate=True)
    lines = list(store.cost_lines(CostQuery()))
    now = [(one.run, one.rental, one.job, one.project, one.spent) for one in lines]
    assert sorted(now) == sorted(charged) and len(now) == 2
    machines = {one.id: one for one in store.past_rentals()}
    for line in lines:
        assert sum(dict(line.items).values()) == line.spent
        assert sum(dict(line.purposes).values()) == line.spent
        machine = machines[line.rental]
        if machine.ready_at is None:
            assert line.purposes.boot == line.spent, "it never came up"
        else:
            assert line.purposes.boot > 0 and line.purposes.useful > 0
        assert (line.began_at, line.ended_at) == (machine.requested_at, machine.ended_at)
        assert (line.user, line.family, line.provider) == ("play", line.job, "cloud")
        assert line.on_demand is not None
    assert {one.ready_at is None for one in machines.values()} == {True, False}
    world = store.world(9e4)
    assert world == store.world_at(store.version(), 9e4), "a replay sees what a round saw"
    assert [one.spent for one in store.costs(CostQuery())] == [sum(one[4] for one in charged)]
