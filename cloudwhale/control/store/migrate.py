"""Brings the tables to this program's revision, or says why not."""

import logging

from sqlalchemy import Connection, inspect, select

from cloudwhale.control.store import tables
from cloudwhale.control.store.database import Database, Schema
from cloudwhale.spi.errors import StoreUnusable

log = logging.getLogger("cloudwhale.store")


def prepare(database: Database, schema: Schema, *, may_migrate: bool) -> None:
    """Make the tables of a new database, or migrate those of an older one.

    Only who holds the controller's lock may migrate. Raise StoreUnusable for a newer database,
    and for an older one that may not be migrated.
    """
    with database.reader.connect() as connection:
        found = revision_of(connection, database)
    if found == schema.head:
        return
    with database.writer.begin() as connection:
        found = revision_of(connection, database)  # somebody else may have been faster
        if found is None:
            _create(connection, schema)
        elif found != schema.head:
            _judge(found, database, schema, may_migrate=may_migrate)
            database.before_migration(connection, schema.head)
            upgrade(connection, schema)
            _rederive(connection)
            log.info("migrated: %s, revision %s to %s", database.name, found, schema.head)


def _rederive(connection: Connection) -> None:
    from cloudwhale.control.store.rederiving import rederive  # only a migration needs it

    rederive(connection)


def revision_of(connection: Connection, database: Database) -> str | None:
    """Return a database's revision, None when it is empty.

    Raise StoreUnusable for tables of somebody else.
    """
    looked = inspect(connection)
    if looked.has_table(tables.revision.name):
        return str(connection.execute(select(tables.revision.c.version_num)).scalar_one())
    if names := looked.get_table_names():
        raise StoreUnusable(
            f"{database.name} is a database of another program (it has a table {names[0]!r})",
            database.advice.another,
        )
    return None


def _create(connection: Connection, schema: Schema) -> None:
    tables.metadata.create_all(connection)
    connection.execute(tables.revision.insert().values(version_num=tables.HEAD))
    if schema.head != tables.HEAD:
        upgrade(connection, schema)


def _judge(found: str, database: Database, schema: Schema, *, may_migrate: bool) -> None:
    if not found.isdecimal() or int(found) > int(schema.head):
        raise StoreUnusable(
            f"{database.name} has revision {found}, this program knows {schema.head} at most: "
            "it was written by a newer version",
            database.advice.newer.format(name=database.name, found=found),
        )
    if not may_migrate:
        raise StoreUnusable(
            f"{database.name} has revision {found}, this program needs {schema.head}, and only "
            "the controller may migrate it",
            database.advice.older,
        )


def upgrade(connection: Connection, schema: Schema) -> None:
    """Run every script between the database's revision and the head, in this transaction."""
    # Alembic costs a quarter of a second, so only a migration that is due imports it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(schema.scripts).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, schema.head)
