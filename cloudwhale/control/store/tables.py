"""The tables that truth is kept in.

Whatever an older program could not read, in a column or inside a body, needs a revision in
`migrations/versions` and a new HEAD.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

HEAD = "0005"
"""The newest revision; they count up."""

metadata = MetaData()

# A plain INTEGER key is SQLite's own row number, which makes appending cheap.
Number = BigInteger().with_variant(Integer(), "sqlite")


def _version() -> Column[int]:
    """Number of the newest event when the row was last written."""
    return Column("version", Number, nullable=False)


PARTS = (
    "machine", "disk", "address", "egress",
    "useful", "boot", "idle", "lost", "failed", "over", "moved",
)  # fmt: skip
"""Columns of a charge: it by what was bought, and by what that was for."""

SUMMED = (
    "amount", "on_demand", "gpu_ms",
    "disk", "address", "egress", "boot", "idle", "lost", "failed", "over",
)  # fmt: skip
"""Columns of a charge that are added up; of the other parts the rest is known."""

revision = Table(
    "alembic_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

events = Table(
    "events",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("kind", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("epoch", Integer),  # NULL: written by a submitter, who holds no lock
    Column("body", Text, nullable=False),
    Index("events_of_subject", "subject", "seq"),
)

epochs = Table(
    "epochs",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("holder", String, nullable=False),
    Column("began_at", Float, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String, primary_key=True),
    Column("seq", Number, nullable=False),  # of the event that submitted it: their order
    _version(),
    Column("run", String, nullable=False),
    Column("project", String, nullable=False),
    Column("name", String, nullable=False),
    Column("state", String, nullable=False),
    Column("submitted_at", Float, nullable=False),
    Column("body", Text, nullable=False),
    Index("jobs_in_order", "seq", unique=True),
    Index("jobs_by_version", "version"),
    Index("jobs_by_state", "state", "seq"),
    Index("jobs_of_run", "run", "seq"),
    Index("jobs_of_run_by_state", "run", "state"),
    Index("jobs_of_project", "project", "seq"),
    Index("jobs_by_name", "name"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", String, primary_key=True),
    Column("seq", Number, nullable=False),  # their order
    _version(),
    Column("folder", String, nullable=False),
    Column("digest", String, nullable=False),
    Column("body", Text, nullable=False),
    Index("runs_of_folder", "folder", "digest", "seq"),
    Index("runs_by_version", "version"),
)

nodes = Table(
    "nodes",
    metadata,
    Column("id", String, primary_key=True),
    _version(),
    Column("body", Text, nullable=False),
)

rentals = Table(
    "rentals",
    metadata,
    Column("id", String, primary_key=True),
    _version(),
    Column("payer", String, nullable=False),
    Column("state", String, nullable=False),
    Column("body", Text, nullable=False),
    Index("rentals_by_version", "version"),
    Index("rentals_by_state", "state"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("payer", String, primary_key=True),
    _version(),
    Column("reserved", BigInteger, nullable=False),  # micro-dollars
    Column("body", Text, nullable=False),
    Index("accounts_by_version", "version"),
    Index("accounts_by_reserved", "reserved"),
)

charges = Table(
    "charges",
    metadata,
    Column("seq", Number, primary_key=True, autoincrement=False),  # of its event
    Column("payer", String, nullable=False),
    Column("rental", String, nullable=False),
    Column("job", String),
    Column("project", String, nullable=False),
    Column("amount", BigInteger, nullable=False),  # micro-dollars, as all sums of this table
    Column("began_at", Float, nullable=False),
    Column("ended_at", Float, nullable=False),
    Column("quarter", Integer, nullable=False),  # of an hour in which it began, since 1970
    Column("user", String, nullable=False),
    Column("family", String, nullable=False),
    Column("provider", String, nullable=False),
    Column("market", String, nullable=False),
    Column("region", String, nullable=False),
    Column("zone", String, nullable=False),
    Column("type", String, nullable=False),
    Column("gpu", String, nullable=False),
    Column("gpu_ms", BigInteger, nullable=False),
    Column("on_demand", BigInteger),  # NULL: nobody knows
    *(Column(name, BigInteger, nullable=False) for name in PARTS),
    Index("charges_of_payer", "payer", "job"),
    Index("charges_in_time", "began_at", "seq"),
    # All that is added up by project lies in it, in its order.
    Index("charges_by_project", "project", "job", "began_at", *SUMMED),
)

notices = Table(
    "notices",
    metadata,
    Column("id", String, primary_key=True),
    _version(),
    Column("state", String, nullable=False),
    Column("body", Text, nullable=False),
    Index("notices_by_version", "version"),
    Index("notices_by_state", "state"),
)

positions = Table(
    "positions",
    metadata,
    Column("node", String, primary_key=True),
    _version(),
    Column("number", Integer, nullable=False),
)

families = Table(
    "families",
    metadata,
    Column("project", String, primary_key=True),
    Column("name", String, primary_key=True),
    _version(),
    Column("run_times", Text, nullable=False),  # JSON list of seconds, newest last
    # JSON list of what ended attempts have used at most, newest last
    Column("peaks", Text, nullable=False, server_default="[]"),
    Index("families_by_version", "version"),
)

uses = Table(
    "uses",
    metadata,
    Column("project", String, primary_key=True),
    _version(),
    Column("device_s", Float, nullable=False),
    Column("at", Float, nullable=False),
    Index("uses_by_version", "version"),
)

budgets = Table(
    "budgets",
    metadata,
    Column("project", String, primary_key=True),
    _version(),
    Column("body", Text, nullable=False),
    Index("budgets_by_version", "version"),
)

secrets = Table(
    "secrets",
    metadata,
    Column("run", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)

rounds = Table(
    "rounds",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("version", Number, nullable=False),
    Column("now", Float, nullable=False),
    Column("body", Text, nullable=False),
)

offer_lists = Table(
    "offer_lists",
    metadata,
    Column("digest", String, primary_key=True),
    Column("body", LargeBinary, nullable=False),  # JSON, packed by zlib: a list has 0.1 MB or more
)

round_jobs = Table(
    "round_jobs",
    metadata,
    Column("job", String, primary_key=True),
    Column("round", Integer, primary_key=True, autoincrement=False),
)
