"""Each list of offers once: a round names it by its digest."""

import hashlib
import json
import zlib

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ROUNDS = sa.table("rounds", sa.column("number", sa.Integer), sa.column("body", sa.Text))
LISTS = sa.table("offer_lists", sa.column("digest", sa.String), sa.column("body", sa.LargeBinary))


def upgrade() -> None:
    """Make the table, and move what rounds hold to it."""
    op.create_table(
        "offer_lists",
        sa.Column("digest", sa.String, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    connection = op.get_bind()
    known: set[str] = set()
    # One body at a time: a round may hold a list of megabytes.
    for number in connection.execute(sa.select(ROUNDS.c.number)).scalars().all():
        of = ROUNDS.c.number == number
        body = json.loads(connection.execute(sa.select(ROUNDS.c.body).where(of)).scalar_one())
        text = body.get("offers", "[]")
        body["offers"] = "" if text == "[]" else hashlib.sha256(text.encode()).hexdigest()
        if body["offers"] and body["offers"] not in known:
            known.add(body["offers"])
            row = {"digest": body["offers"], "body": zlib.compress(text.encode())}
            connection.execute(sa.insert(LISTS), row)
        moved = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        connection.execute(sa.update(ROUNDS).where(of).values(body=moved))
