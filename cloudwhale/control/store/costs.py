"""Lines of cost as rows, and their sums, added up by the database."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
)

from cloudwhale.control.store import tables as t
from cloudwhale.model.cost import CostLine, CostSum, Dimension, Items, Purposes
from cloudwhale.model.units import NOTHING, MicroUsd
from cloudwhale.planning.cost_sums import FILTERS, ITEMS, PURPOSES, milliseconds, zone_named
from cloudwhale.spi.store import CostQuery

QUARTER_S = 900
_ENDS: list[ColumnElement[Any]] = [func.min(t.charges.c.began_at), func.max(t.charges.c.began_at)]
QUARTERS = 96
"""Of a day."""
AHEAD_DAYS = 1_000_000  # added before a division that would round to zero what lies before 1970
LINES_AT_ONCE = 2_000

_C = t.charges.c
_COLUMNS: Mapping[str, ColumnElement[Any]] = {"run": _C.payer} | {
    name: _C[name] for name in FILTERS if name != "run"
}
_SUMMED = ("disk", "address", "egress", "boot", "idle", "lost", "failed", "over")
"""What is not in it is the rest: fewer sums take less time."""
_JOBS: ColumnElement[Any] = func.count(_C.job.distinct())
_SUMS: list[ColumnElement[Any]] = [
    func.count(),
    func.sum(_C.amount),
    func.sum(_C.on_demand - _C.amount),
    func.count(_C.on_demand),
    func.sum(_C.gpu_ms),
    *(func.sum(_C[name]) for name in _SUMMED),
]


def row_of(seq: int, line: CostLine) -> dict[str, Any]:
    """Return the row of a line that an event with some number has charged."""
    return {
        "seq": seq, "payer": line.run, "rental": line.rental, "job": line.job,
        "project": line.project, "amount": line.spent, "began_at": line.began_at,
        "ended_at": line.ended_at, "quarter": int(line.began_at // QUARTER_S), "user": line.user,
        "family": line.family, "provider": line.provider, "market": line.market,
        "region": line.region, "zone": line.zone, "type": line.type, "gpu": line.gpu,
        "gpu_ms": milliseconds(line.gpu_s), "on_demand": line.on_demand,
        **dict(line.items), **dict(line.purposes),
    }  # fmt: skip


_AS_THEY_ARE = (
    "rental", "user", "project", "job", "family", "provider", "market", "region", "zone", "type",
    "gpu", "began_at", "ended_at", "on_demand",
)  # fmt: skip
_OF_LINES = (*_AS_THEY_ARE, "payer", "amount", "gpu_ms", "seq")
_READ = [t.charges.c[name] for name in (*_OF_LINES, *ITEMS, *PURPOSES)]
"""In this order lines are read."""


def _line_of(row: Sequence[Any]) -> CostLine:
    """Return the line of a row.

    A copy of another line, as that takes a third of the time: ledgers have hundreds of thousands.
    """
    named, parts = len(_AS_THEY_ARE), len(_OF_LINES)
    run, spent, gpu_ms, _ = row[named:parts]
    items = dict(zip(ITEMS, row[parts : parts + len(ITEMS)], strict=True))
    purposes = dict(zip(PURPOSES, row[parts + len(ITEMS) :], strict=True))
    return _LINE.model_copy(
        update={
            **dict(zip(_AS_THEY_ARE, row, strict=False)),
            "run": run, "spent": spent, "gpu_s": gpu_ms / 1000.0,
            "items": _LINE.items.model_copy(update=items),
            "purposes": _LINE.purposes.model_copy(update=purposes),
        }
    )  # fmt: skip


_LINE = CostLine(
    rental="", run="", user="", project="", job=None, family="", provider="", market="", region="",
    zone="", type="", gpu="", began_at=0.0, ended_at=0.0, spent=NOTHING, items=Items(),
    purposes=Purposes(), on_demand=None, gpu_s=0.0,
)  # fmt: skip


# -- sums ------------------------------------------------------------------------------------


def sums(connection: Connection, query: CostQuery) -> Sequence[CostSum]:
    """See Store."""
    zone = zone_named(query.zone)
    keys = [_key(connection, query, dimension, zone) for dimension in query.by]
    jobs = _JOBS if query.counts_jobs else literal(0)
    wanted = _asked(select(*keys, jobs, *_SUMS), query)
    if keys:
        wanted = wanted.group_by(*keys)
    if query.dearest is not None:
        wanted = wanted.order_by(func.sum(_C.amount).desc(), *keys).limit(query.dearest)
    reads = [_day if dimension == "day" else str for dimension in query.by]
    found = [_sum_of(tuple(row), reads) for row in connection.execute(wanted)]
    # Databases sort text by their language; without keys there is a row of nothing, too.
    return sorted((one for one in found if one.lines), key=lambda one: one.key)


def _key(
    connection: Connection, query: CostQuery, dimension: Dimension, zone: tzinfo
) -> ColumnElement[Any]:
    if dimension == "day":
        return _local_day(connection, query, zone)
    if dimension == "job":
        return func.coalesce(_C.job, "")
    return _COLUMNS[dimension]


def _day(number: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=int(number) - AHEAD_DAYS)).isoformat()


def _sum_of(row: tuple[Any, ...], reads: Sequence[Callable[[Any], str]]) -> CostSum:
    key = tuple(read(value) for read, value in zip(reads, row, strict=False))
    # PostgreSQL sums integers to a decimal; a sum of nothing is NULL.
    sums_of: Sequence[Any] = row[len(key) :]
    jobs, lines, spent, saved, priced, gpu_ms, *parts = (int(one or 0) for one in sums_of)
    disk, address, egress, boot, idle, lost, failed, over = map(MicroUsd, parts)
    useful = MicroUsd(spent - boot - idle - lost - failed - over - egress)
    return CostSum.model_construct(
        key=key, lines=lines, jobs=jobs, spent=MicroUsd(spent),
        saved=MicroUsd(saved), unpriced=lines - priced, gpu_s=gpu_ms / 1000.0,
        items=Items.model_construct(
            machine=MicroUsd(spent - disk - address - egress), disk=disk, address=address,
            egress=egress,
        ),
        purposes=Purposes.model_construct(
            useful=useful, boot=boot, idle=idle, lost=lost, failed=failed, over=over, moved=egress,
        ),
    )  # fmt: skip


def _local_day(connection: Connection, query: CostQuery, zone: tzinfo) -> ColumnElement[Any]:
    """Return the number of the day in a zone in which a line began.

    The database knows nothing of zones: it adds what a zone is ahead, which changes twice a year.
    """
    ends: Select[Any] = select(*_ENDS)
    found: Sequence[Any] = tuple(connection.execute(_asked(ends, query)).one())
    first, last = (int((at or 0.0) // QUARTER_S) for at in found)
    ahead, quarter = _ahead(zone, first, last), _quarter(connection)
    offset: ColumnElement[Any] = (
        case(*((quarter < until, many) for until, many in ahead[:-1]), else_=ahead[-1][1])
        if len(ahead) > 1
        else literal(ahead[0][1])
    )
    # In quarters, as PostgreSQL counts these columns in 32 bits.
    return (quarter + offset + AHEAD_DAYS * QUARTERS) // QUARTERS


def _quarter(connection: Connection) -> ColumnElement[Any]:
    """Return the quarter in which a line began, from what an index holds where that is possible.

    SQLite cuts a number off, as it is meant; PostgreSQL would round it.
    """
    if connection.dialect.name != "sqlite":
        return _C.quarter
    return cast(_C.began_at / QUARTER_S, Integer)


def _ahead(zone: tzinfo, first: int, last: int) -> list[tuple[int, int]]:
    """Return by how many quarters a zone is ahead: each until a quarter, the last for ever."""
    found: list[tuple[int, int]] = []
    at, now = first, _offset(zone, first)
    while at < last:
        following = min(at + QUARTERS, last)
        if _offset(zone, following) != now:
            low, high = at, following
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == now else (low, middle)
            found.append((high, now))
            following, now = high, _offset(zone, high)
        at = following
    return [*found, (last + 1, now)]


def _offset(zone: tzinfo, quarter: int) -> int:
    """Return by how many quarters of an hour a zone is ahead; those of today are of whole ones."""
    offset = datetime.fromtimestamp(quarter * QUARTER_S, UTC).astimezone(zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds() // QUARTER_S)


# -- lines -----------------------------------------------------------------------------------


def newest(connection: Connection) -> int:
    """Return the number of the newest charge, 0 without any."""
    return int(connection.execute(select(func.coalesce(func.max(_C.seq), 0))).scalar_one())


Page = tuple[float, int]
"""When the last line that was read began, and its number."""


def some_lines(
    connection: Connection, query: CostQuery, seen: int, after: Page | None
) -> tuple[list[CostLine], Page | None]:
    """Return the next lines, and where they end: None where no more follow.

    `seen`: the number of the newest charge that there was when this began.
    """
    wanted = _asked(select(*_READ), query).where(_C.seq <= seen)
    if after is not None:
        began_at, seq = after
        later = and_(_C.began_at == began_at, _C.seq > seq)
        wanted = wanted.where(_C.began_at >= began_at, or_(_C.began_at > began_at, later))
    rows = connection.execute(wanted.order_by(_C.began_at, _C.seq).limit(LINES_AT_ONCE)).all()
    lines = [_line_of(tuple(row)) for row in rows]
    if len(rows) < LINES_AT_ONCE:
        return lines, None
    return lines, (rows[-1].began_at, rows[-1].seq)


def all_lines(
    ask: Callable[[Callable[[Connection], Any]], Any], query: CostQuery
) -> Iterator[CostLine]:
    """Yield the lines that a query asks for; `ask` answers a question of a connection."""
    seen: int = ask(newest)
    after: Page | None = None
    while True:
        lines, after = ask(partial(some_lines, query=query, seen=seen, after=after))
        yield from lines
        if after is None:
            return


def _asked(wanted: Select[Any], query: CostQuery) -> Select[Any]:
    if query.since is not None:
        wanted = wanted.where(_C.began_at >= query.since)
    if query.until is not None:
        wanted = wanted.where(_C.began_at < query.until)
    if query.of_jobs:
        wanted = wanted.where(_C.job.is_not(None))
    for name, column in _COLUMNS.items():
        value = getattr(query, name)
        if value is not None:
            wanted = wanted.where(column == value)
    return wanted
