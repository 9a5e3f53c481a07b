"""What each project has used of devices."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table; attempts that ended before it count for nothing."""
    op.create_table(
        "uses",
        sa.Column("project", sa.String, primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("device_s", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("uses_by_version", "uses", ["version"])
