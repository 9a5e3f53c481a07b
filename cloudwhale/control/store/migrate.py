"""Brings the tables to this program's revision, or says why not."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, select

from cloudwhale.control.store import rederiving, sqlite, tables
from cloudwhale.spi.errors import StoreUnusable

SCRIPTS = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True)
class Schema:
    """The revision that a program needs, and the folder of scripts that lead to it."""

    head: str = tables.HEAD
    scripts: Path = SCRIPTS


def prepare(engine: Engine, file: Path, schema: Schema, *, may_migrate: bool) -> None:
    """Make the tables of a new database, or migrate those of an older one.

    Only who holds the controller's lock may migrate, after a copy of the file. Raise
    StoreUnusable for a newer database, and for an older one that may not be migrated.
    """
    with engine.connect() as connection:
        found = revision_of(connection, file)
    if found == schema.head:
        return
    with sqlite.writing(engine).begin() as connection:
        found = revision_of(connection, file)  # somebody else may have been faster
        if found is None:
            _create(connection, schema)
        elif found != schema.head:
            _judge(found, file, schema, may_migrate=may_migrate)
            _copy(file, schema)
            upgrade(connection, schema)
            rederiving.rederive(connection)


def revision_of(connection: Connection, file: Path) -> str | None:
    """Return a database's revision, None when it is empty.

    Raise StoreUnusable for tables of somebody else.
    """
    looked = inspect(connection)
    if looked.has_table(tables.revision.name):
        return str(connection.execute(select(tables.revision.c.version_num)).scalar_one())
    if names := looked.get_table_names():
        raise StoreUnusable(
            f"{file} is a database of another program (it has a table {names[0]!r})",
            "Choose another file with `database` or CLOUDWHALE_HOME.",
        )
    return None


def _create(connection: Connection, schema: Schema) -> None:
    tables.metadata.create_all(connection)
    connection.execute(tables.revision.insert().values(version_num=tables.HEAD))
    if schema.head != tables.HEAD:
        upgrade(connection, schema)


def _judge(found: str, file: Path, schema: Schema, *, may_migrate: bool) -> None:
    if not found.isdecimal() or int(found) > int(schema.head):
        raise StoreUnusable(
            f"{file} has revision {found}, this program knows {schema.head} at most: it was "
            "written by a newer version",
            f"Upgrade cloudwhale here. ({file.name}.before-{found} is a copy from before that, "
            "without what happened since.)",
        )
    if not may_migrate:
        raise StoreUnusable(
            f"{file} has revision {found}, this program needs {schema.head}, and only the "
            "controller may migrate it",
            "End the controller that runs (it is of an older version), then start "
            "`cloudwhale controller` or `cloudwhale run` of this version: it migrates.",
        )


def _copy(file: Path, schema: Schema) -> None:
    copy = file.with_name(f"{file.name}.before-{schema.head}")
    try:
        sqlite.copy(file, copy)
    except OSError as error:
        raise StoreUnusable(
            f"{file} was not migrated: its copy {copy} cannot be written: {error.strerror}",
            "Free some space there, and make the folder writable.",
        ) from error


def upgrade(connection: Connection, schema: Schema) -> None:
    """Run every script between the database's revision and the head, in this transaction."""
    # Alembic costs a quarter of a second, so only a migration that is due imports it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(schema.scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, schema.head)
