"""Many charges at once, written by the database itself: a ledger of years in seconds."""

from sqlalchemy import Connection, text

from cloudwhale.control.store import tables as t

BEGAN_AT = 1_735_689_600  # 2025-01-01T00:00Z
SPAN_S = 2 * 365 * 86_400
PROJECTS, USERS, RUNS = 40, 25, 5_000

_PLACES = """
    CASE n % 4 WHEN 0 THEN 'north' WHEN 1 THEN 'south' ELSE 'east' END AS provider,
    CASE WHEN n % 3 = 0 THEN 'on-demand' ELSE 'spot' END AS market,
    CASE n % 5 WHEN 0 THEN 'r-1' WHEN 1 THEN 'r-2' ELSE 'r-3' END AS region,
    CASE n % 6 WHEN 0 THEN 'T4' WHEN 1 THEN 'L4' WHEN 2 THEN '' ELSE 'A100-80GB' END AS gpu
"""

_ROWS = f"""
WITH RECURSIVE numbers(n) AS (
    SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows
), drawn AS (
    SELECT n, 1000 + (CAST(n AS BIGINT) * 104729) % 5000000 AS amount,
        {BEGAN_AT} + (CAST(n AS BIGINT) * 7919) % {SPAN_S} AS began_at, {_PLACES}
    FROM numbers
), parted AS (
    SELECT *, amount / 20 AS extra, amount / 10 AS boot, amount / 9 AS idle, amount / 30 AS lost
    FROM drawn
)
INSERT INTO charges (
    seq, payer, rental, job, project, amount, began_at, ended_at, quarter, "user", family,
    provider, market, region, zone, type, gpu, gpu_ms, on_demand,
    machine, disk, address, egress, useful, boot, idle, lost, failed, over, moved
)
SELECT :after + n, 'run-' || CAST(n % {RUNS} AS VARCHAR), 'rent-' || CAST(n / 2 AS VARCHAR),
    'job-' || CAST(n * 3 / 4 AS VARCHAR), 'project-' || CAST(n % {PROJECTS} AS VARCHAR),
    amount, began_at, began_at + 3600, began_at / 900,
    'user-' || CAST(n % {USERS} AS VARCHAR), 'train-' || CAST(n % 300 AS VARCHAR),
    provider, market, region, region || 'a', market || '.large', gpu, 3600000,
    CASE WHEN n % 100 = 0 THEN NULL ELSE amount * 3 END,
    amount - extra, extra - extra / 3, extra / 3, 0,
    amount - boot - idle - lost, boot, idle, lost, 0, 0, 0
FROM parted
"""


def add_charges(connection: Connection, rows: int) -> None:
    """Insert charges that no event has made; items and purposes of each add up to it."""
    after = connection.execute(text("SELECT coalesce(max(seq), 0) FROM events")).scalar_one()
    connection.execute(text(_ROWS), {"rows": rows, "after": int(after) + 1_000_000})


def spent(connection: Connection) -> int:
    """Return all that was charged, in micro-dollars, added up without the store's verbs."""
    total = connection.execute(text(f"SELECT sum(amount) FROM {t.charges.name}")).scalar_one()
    return int(total or 0)
