"""The state in memory, read from the rows: whole once, afterwards only what was written since."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, Table, bindparam, func, select

from cloudwhale.control.store import tables as t
from cloudwhale.control.store.bodies import read, read_family
from cloudwhale.control.store.rows import SqlRows
from cloudwhale.control.store.state import State
from cloudwhale.model.budget import Budget
from cloudwhale.model.job import LIVE, Job
from cloudwhale.model.node import Node
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.value import Value
from cloudwhale.model.world import Account, Use
from cloudwhale.planning.cycles import unsought
from cloudwhale.planning.payers import PREFIX

V = TypeVar("V", bound=Value)

LIVE_VALUES = [state.value for state in LIVE]


_LIVE_JOBS = select(t.jobs.c.body).where(t.jobs.c.state.in_(LIVE_VALUES)).order_by(t.jobs.c.seq)
_OPEN_RENTALS = select(t.rentals.c.body).where(t.rentals.c.state != RentalState.RETURNED.value)
_OPEN_NIGHTS = select(t.runs.c.body).where(t.runs.c.body.contains('"closed_at":null'))
_RESERVED = select(t.accounts.c.body).where(t.accounts.c.reserved > 0)
_OF_PROJECTS = select(t.accounts.c.body).where(t.accounts.c.payer.startswith(PREFIX))


def load(connection: Connection, newest: int) -> State:
    """Return the state after the newest event, read from rows of what lives."""
    state = State()
    with unsought():  # ten thousand jobs are a million small values
        _put_all(connection.execute(_LIVE_JOBS), Job, state.put_job)
    _put_all(connection.execute(_OPEN_RENTALS), Rental, state.put_rental)
    _put_all(connection.execute(_OPEN_NIGHTS), Run, state.put_run)
    for kept in (_RESERVED, _OF_PROJECTS):
        _put_all(connection.execute(kept), Account, state.put_account)
    for changed, put in _WHOLE:
        put(state, connection.execute(changed, {"seen": -1}))
    state.complete(SqlRows(connection))
    state.version = newest
    return state


def catch_up(connection: Connection, state: State, newest: int) -> None:
    """Bring a state to the newest event; reads the rows that were written since, no others."""
    newest_of_tables = connection.execute(_NEWEST).one()
    for (_, changed, put), version in zip(_TABLES, newest_of_tables, strict=True):
        if version is not None and version > state.version:
            put(state, connection.execute(changed, {"seen": state.version}))
    state.complete(SqlRows(connection))
    state.version = newest


# -- by table: the rows that were written since a version, and how they are put in -------------

Found = Iterable[Sequence[Any]]


def _since(table: Table, *columns: str) -> Executable:
    wanted = [table.c[name] for name in columns]
    return select(*wanted).where(table.c.version > bindparam("seen"))


def _put_all(rows: Found, kind: type[V], put: Callable[[V], None]) -> None:
    for (text,) in rows:
        put(read(kind, text))


def _put_jobs(state: State, rows: Found) -> None:
    # Sorted here: asked to sort, SQLite may walk all jobs in order instead of the few that changed.
    for _, text in sorted((seq, text) for seq, text in rows):
        state.put_job(read(Job, text))


def _put_rentals(state: State, rows: Found) -> None:
    _put_all(rows, Rental, state.put_rental)


def _put_runs(state: State, rows: Found) -> None:
    _put_all(rows, Run, state.put_run)


def _put_accounts(state: State, rows: Found) -> None:
    _put_all(rows, Account, state.put_account)


def _put_nodes(state: State, rows: Found) -> None:
    _put_all(rows, Node, state.put_node)


def _put_families(state: State, rows: Found) -> None:
    for row in rows:
        state.put_history(*read_family(row))


def _put_read(state: State, rows: Found) -> None:
    state.positions.update((node, number) for node, number in rows)


def _put_budgets(state: State, rows: Found) -> None:
    _put_all(rows, Budget, state.put_budget)


def _put_uses(state: State, rows: Found) -> None:
    for project, device_s, at in rows:
        state.put_use(project, Use(device_s=device_s, at=at))


_NODES = _since(t.nodes, "body")
_FAMILIES = _since(t.families, "project", "name", "run_times", "peaks")
_READ = _since(t.positions, "node", "number")
_USES = _since(t.uses, "project", "device_s", "at")
_BUDGETS = _since(t.budgets, "body")

_WHOLE: list[tuple[Executable, Callable[[State, Found], None]]] = [
    (_NODES, _put_nodes),
    (_FAMILIES, _put_families),
    (_READ, _put_read),
    (_USES, _put_uses),
    (_BUDGETS, _put_budgets),
]
"""Of these a new state takes every row."""

# Jobs and rentals first: whether a run or an account is kept depends on who needs it.
_TABLES: list[tuple[Table, Executable, Callable[[State, Found], None]]] = [
    (t.jobs, _since(t.jobs, "seq", "body"), _put_jobs),
    (t.rentals, _since(t.rentals, "body"), _put_rentals),
    (t.runs, _since(t.runs, "body"), _put_runs),
    (t.accounts, _since(t.accounts, "body"), _put_accounts),
    (t.nodes, _NODES, _put_nodes),
    (t.families, _FAMILIES, _put_families),
    (t.positions, _READ, _put_read),
    (t.uses, _USES, _put_uses),
    (t.budgets, _BUDGETS, _put_budgets),
]
_NEWEST: Executable = select(
    *(select(func.max(table.c.version)).scalar_subquery() for table, _, _ in _TABLES)
)
