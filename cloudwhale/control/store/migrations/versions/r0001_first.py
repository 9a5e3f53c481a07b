"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make them."""
    _what_happened()
    _jobs_and_runs()
    _machines()
    _money()
    _what_was_decided()


def _what_happened() -> None:
    op.create_table(
        "events",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("epoch", sa.Integer),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("events_of_subject", "events", ["subject", "seq"])
    op.create_table(
        "epochs",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.String, nullable=False),
        sa.Column("began_at", sa.Float, nullable=False),
    )


def _jobs_and_runs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("seq", NUMBER, nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("run", sa.String, nullable=False),
        sa.Column("project", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("submitted_at", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("jobs_in_order", "jobs", ["seq"], unique=True)
    op.create_index("jobs_by_version", "jobs", ["version"])
    op.create_index("jobs_by_state", "jobs", ["state", "seq"])
    op.create_index("jobs_of_run", "jobs", ["run", "seq"])
    op.create_index("jobs_of_run_by_state", "jobs", ["run", "state"])
    op.create_index("jobs_of_project", "jobs", ["project", "seq"])
    op.create_index("jobs_by_name", "jobs", ["name"])
    op.create_table(
        "runs",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("seq", NUMBER, nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("folder", sa.String, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("runs_of_folder", "runs", ["folder", "digest", "seq"])
    op.create_index("runs_by_version", "runs", ["version"])
    op.create_table(
        "families",
        sa.Column("project", sa.String, primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("run_times", sa.Text, nullable=False),
    )
    op.create_index("families_by_version", "families", ["version"])
    op.create_table(
        "secrets",
        sa.Column("run", sa.String, primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )


def _machines() -> None:
    op.create_table(
        "nodes",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "positions",
        sa.Column("node", sa.String, primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
    )
    op.create_table(
        "rentals",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("payer", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("rentals_by_version", "rentals", ["version"])
    op.create_index("rentals_by_state", "rentals", ["state"])


def _money() -> None:
    op.create_table(
        "accounts",
        sa.Column("payer", sa.String, primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("reserved", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("accounts_by_version", "accounts", ["version"])
    op.create_index("accounts_by_reserved", "accounts", ["reserved"])
    op.create_table(
        "charges",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("payer", sa.String, nullable=False),
        sa.Column("rental", sa.String, nullable=False),
        sa.Column("job", sa.String),
        sa.Column("project", sa.String, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
    )
    op.create_index("charges_of_payer", "charges", ["payer", "job"])


def _what_was_decided() -> None:
    op.create_table(
        "rounds",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("now", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "round_jobs",
        sa.Column("job", sa.String, primary_key=True),
        sa.Column("round", sa.Integer, primary_key=True, autoincrement=False),
    )
