"""What projects may spend in a month, and for how long each job held its place on a rental."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table; bodies of accounts, rentals and money's events have new fields."""
    op.create_table(
        "budgets",
        sa.Column("project", sa.String, primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("budgets_by_version", "budgets", ["version"])
