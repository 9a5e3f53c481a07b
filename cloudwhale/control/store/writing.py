"""What a draft leaves, written as rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Insert, Table, Update, bindparam, delete, insert, update

from cloudwhale.control.store import tables as t
from cloudwhale.control.store.bodies import body, family_texts, packed
from cloudwhale.control.store.costs import row_of
from cloudwhale.control.store.folding import Changes, Draft, Family
from cloudwhale.control.store.rounds import jobs_of
from cloudwhale.control.store.subjects import subject
from cloudwhale.model.event import Event
from cloudwhale.model.job import Job
from cloudwhale.model.notice import Notice
from cloudwhale.model.peak import History
from cloudwhale.model.plan import Round
from cloudwhale.model.rental import Rental
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant
from cloudwhale.model.world import Account, Use

K = TypeVar("K")
V = TypeVar("V")
Row = dict[str, Any]


def _update(table: Table) -> Update:
    """Update by key: column `x` of the primary key is given as `key_x`."""
    keys = [column == bindparam(f"key_{column.name}") for column in table.primary_key.columns]
    return update(table).where(*keys)


_WRITES: dict[str, tuple[Insert, Update]] = {
    table.name: (insert(table), _update(table))
    for table in (
        t.jobs,
        t.runs,
        t.nodes,
        t.rentals,
        t.accounts,
        t.positions,
        t.families,
        t.uses,
        t.budgets,
        t.notices,
    )
}
_EVENTS, _CHARGES, _EPOCHS = insert(t.events), insert(t.charges), insert(t.epochs)
_ROUNDS, _ROUND_JOBS, _SECRETS = insert(t.rounds), insert(t.round_jobs), insert(t.secrets)
_OFFER_LISTS = insert(t.offer_lists)
_NO_SECRET = delete(t.secrets).where(
    t.secrets.c.run == bindparam("key_run"), t.secrets.c.name == bindparam("key_name")
)


def write_events(
    connection: Connection, first: int, events: Sequence[Event], epoch: int | None
) -> None:
    """Insert events under the numbers that begin with `first`."""
    rows = [
        {
            "seq": seq, "at": event.at, "kind": event.kind, "subject": subject(event),
            "epoch": epoch, "body": body(event),
        }
        for seq, event in enumerate(events, first)
    ]  # fmt: skip
    connection.execute(_EVENTS, rows)


def write_draft(connection: Connection, draft: Draft, version: int) -> None:
    """Insert what is new and update what has changed, all under one version."""
    write = _Writer(connection, version)
    write(t.jobs, draft.jobs, lambda _, job: _job_row(job, draft.submitted.get(job.id)))
    write(t.runs, draft.runs, lambda _, run: _run_row(run, draft.opened.get(run.id)))
    write(t.rentals, draft.rentals, _rental_row)
    write(t.accounts, draft.accounts, lambda _, account: _account_row(account))
    write(t.positions, draft.positions, lambda node, number: {"node": node, "number": number})
    write(t.families, draft.families, _family_row)
    write(t.budgets, draft.budgets, lambda project, one: {"project": project, "body": body(one)})
    write(t.nodes, draft.nodes, lambda _, node: {"id": node.id, "body": body(node)})
    write(t.uses, draft.uses, _use_row)
    write(t.notices, draft.notices, _notice_row)
    _write_lines(connection, draft)


def write_derived(connection: Connection, draft: Draft, version: int) -> None:
    """Write what older programs did not derive from the events, under one version."""
    write = _Writer(connection, version)
    write(t.rentals, draft.rentals, _rental_row)
    write(t.nodes, draft.nodes, lambda _, node: {"id": node.id, "body": body(node)})
    write(t.uses, draft.uses, _use_row)
    write(t.families, draft.families, _family_row)
    _write_lines(connection, draft)


def _write_lines(connection: Connection, draft: Draft) -> None:
    if draft.lines:
        connection.execute(_CHARGES, [row_of(seq, line) for seq, line in draft.lines.items()])


class _Writer:
    """Writes the changes of one kind after the other."""

    def __init__(self, connection: Connection, version: int) -> None:
        self._connection, self._version = connection, version

    def __call__(self, table: Table, changes: Changes[K, V], row: Callable[[K, V], Row]) -> None:
        new: list[Row] = []
        old: list[Row] = []
        for key, value in changes.after.items():
            whole = row(key, value) | {"version": self._version}
            (new if key in changes.new else old).append(whole)
        insert_all, update_all = _WRITES[table.name]
        if new:
            self._connection.execute(insert_all, new)
        if old:
            self._connection.execute(update_all, [_with_keys(table, each) for each in old])


def write_round(connection: Connection, round: Round) -> None:
    """Insert a numbered round and the jobs that it said something of."""
    connection.execute(
        _ROUNDS,
        {
            "number": round.number, "version": round.version, "now": round.now,
            "body": body(round),
        },
    )  # fmt: skip
    jobs = sorted(jobs_of(round.plan))
    if jobs:
        connection.execute(_ROUND_JOBS, [{"job": job, "round": round.number} for job in jobs])


def write_offer_list(connection: Connection, digest: str, text: str) -> None:
    """Insert a list of offers that is new."""
    connection.execute(_OFFER_LISTS, {"digest": digest, "body": packed(text)})


def write_epoch(connection: Connection, number: int, holder: str, now: Instant) -> None:
    """Insert an epoch."""
    connection.execute(_EPOCHS, {"number": number, "holder": holder, "began_at": now})


def write_secrets(connection: Connection, run: str, secrets: Mapping[str, bytes]) -> None:
    """Keep sealed secrets; one of the same name is replaced."""
    if secrets:
        connection.execute(_NO_SECRET, [{"key_run": run, "key_name": name} for name in secrets])
        connection.execute(
            _SECRETS,
            [{"run": run, "name": name, "sealed": sealed} for name, sealed in secrets.items()],
        )


# -- rows ------------------------------------------------------------------------------------


def _with_keys(table: Table, row: Row) -> Row:
    keys = {column.name for column in table.primary_key.columns}
    return {f"key_{name}" if name in keys else name: value for name, value in row.items()}


def _job_row(job: Job, seq: int | None) -> Row:
    """Return a new job's row, or (`seq` is None) only what changes in the row of an old one."""
    row: Row = {"id": job.id, "state": job.state.value, "run": job.run, "body": body(job)}
    if seq is not None:
        row |= {
            "seq": seq, "project": job.spec.project, "name": job.spec.name,
            "submitted_at": job.submitted_at,
        }  # fmt: skip
    return row


def _run_row(run: Run, seq: int | None) -> Row:
    """Return a new run's row, or (`seq` is None) only what changes in the row of an old one."""
    row: Row = {"id": run.id, "body": body(run)}
    if seq is not None:
        row |= {"seq": seq, "folder": run.folder, "digest": run.digest}
    return row


def _rental_row(_: str, rental: Rental) -> Row:
    return {
        "id": rental.id, "payer": rental.payer, "state": rental.state.value, "body": body(rental),
    }  # fmt: skip


def _account_row(account: Account) -> Row:
    return {"payer": account.payer, "reserved": account.reserved, "body": body(account)}


def _notice_row(_: str, notice: Notice) -> Row:
    return {"id": notice.id, "state": notice.state, "body": body(notice)}


def _family_row(family: Family, history: History) -> Row:
    project, name = family
    times, peaks = family_texts(history)
    return {"project": project, "name": name, "run_times": times, "peaks": peaks}


def _use_row(project: str, use: Use) -> Row:
    return {"project": project, "device_s": use.device_s, "at": use.at}
