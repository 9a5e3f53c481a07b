"""What each charge was for, what attempts of a family used, and whom was told of what."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXTS = ("user", "family", "provider", "market", "region", "zone", "type", "gpu")
SUMS = (
    "machine", "disk", "address", "egress",
    "useful", "boot", "idle", "lost", "failed", "over", "moved",
)  # fmt: skip

SUMMED = (
    "amount", "on_demand", "gpu_ms",
    "disk", "address", "egress", "boot", "idle", "lost", "failed", "over",
)  # fmt: skip


def upgrade() -> None:
    """Make the tables; charges are written anew from the events that they came from."""
    op.drop_table("charges")
    op.create_table(
        "charges",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("payer", sa.String, nullable=False),
        sa.Column("rental", sa.String, nullable=False),
        sa.Column("job", sa.String),
        sa.Column("project", sa.String, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("began_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float, nullable=False),
        sa.Column("quarter", sa.Integer, nullable=False),
        *(sa.Column(name, sa.String, nullable=False) for name in TEXTS),
        sa.Column("gpu_ms", sa.BigInteger, nullable=False),
        sa.Column("on_demand", sa.BigInteger),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in SUMS),
    )
    op.create_index("charges_of_payer", "charges", ["payer", "job"])
    op.create_index("charges_in_time", "charges", ["began_at", "seq"])
    op.create_index("charges_by_project", "charges", ["project", "job", "began_at", *SUMMED])
    op.create_table(
        "notices",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("notices_by_version", "notices", ["version"])
    op.create_index("notices_by_state", "notices", ["state"])
    # SQLite adds a column as text behind the keys; made anew, the table is that of a new database.
    with op.batch_alter_table("families", recreate="auto") as families:
        families.add_column(sa.Column("peaks", sa.Text, nullable=False, server_default="[]"))
