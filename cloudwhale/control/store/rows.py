"""Rows as values, looked up one by one while events are folded."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Generic, TypeVar

from sqlalchemy import Connection, Executable, Table, bindparam, select

from cloudwhale.control.store import tables as t
from cloudwhale.control.store.bodies import read, read_family
from cloudwhale.control.store.folding import Family, Named
from cloudwhale.control.store.state import State
from cloudwhale.model.budget import Budget
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.notice import Notice
from cloudwhale.model.peak import History
from cloudwhale.model.rental import Rental
from cloudwhale.model.run import Run
from cloudwhale.model.value import Value
from cloudwhale.model.world import Account, Use

KEYS_AT_ONCE = 500  # SQLite takes 32,766 parameters, other databases fewer

V = TypeVar("V", bound=Value)


def _by_key(table: Table) -> Executable:
    key = table.primary_key.columns[0]
    return select(key, table.c.body).where(key.in_(bindparam("keys", expanding=True)))


_JOBS, _RUNS, _ACCOUNTS = _by_key(t.jobs), _by_key(t.runs), _by_key(t.accounts)
_NODES, _RENTALS, _BUDGETS = _by_key(t.nodes), _by_key(t.rentals), _by_key(t.budgets)
_NOTICES = _by_key(t.notices)
_POSITION = select(t.positions.c.number).where(t.positions.c.node == bindparam("of"))
_FAMILY = select(
    t.families.c.project, t.families.c.name, t.families.c.run_times, t.families.c.peaks
).where(t.families.c.project == bindparam("of_project"), t.families.c.name == bindparam("of_name"))
_USE = select(t.uses.c.device_s, t.uses.c.at).where(t.uses.c.project == bindparam("of"))


class _Table(Generic[V]):
    """Values of one table: from memory those that live, from their rows the others, once."""

    def __init__(
        self,
        connection: Connection,
        by_key: Executable,
        kind: type[V],
        living: Mapping[str, V],
    ) -> None:
        self._connection, self._by_key, self._kind = connection, by_key, kind
        self._living = living
        self._known: dict[str, V | None] = {}

    def get(self, key: str) -> V | None:
        """Return a value, or None when there is no row."""
        if key in self._living:
            return self._living[key]
        if key not in self._known:
            self.read([key])
        return self._known[key]

    def read(self, keys: Iterable[str]) -> None:
        """Read these ahead."""
        here, known = self._living, self._known
        wanted = iter([key for key in keys if key not in here and key not in known])
        while some := list(islice(wanted, KEYS_AT_ONCE)):
            known.update(dict.fromkeys(some))
            for key, text in self._connection.execute(self._by_key, {"keys": some}):
                known[key] = read(self._kind, text)


class SqlRows:
    """The rows as one transaction sees them; see folding.Rows.

    A state that is up to date in that transaction answers for whatever lives.
    """

    def __init__(self, connection: Connection, state: State | None = None) -> None:
        self._connection = connection
        self._state = state
        living = state or State()
        self._jobs = _Table(connection, _JOBS, Job, living.jobs)
        self._runs = _Table(connection, _RUNS, Run, living.runs)
        self._accounts = _Table(connection, _ACCOUNTS, Account, living.accounts)
        self._nodes = _Table(connection, _NODES, Node, living.nodes)
        self._rentals = _Table(connection, _RENTALS, Rental, living.rentals)
        self._budgets = _Table(connection, _BUDGETS, Budget, living.budgets)
        self._notices = _Table(connection, _NOTICES, Notice, {})

    def fetch(self, named: Named) -> None:
        """See Past."""
        self._jobs.read(named.jobs)
        self._runs.read(named.runs)
        self._accounts.read(named.accounts)
        self._notices.read(named.notices)

    def job(self, job: str) -> Job | None:
        """See Past."""
        return self._jobs.get(job)

    def run(self, run: str) -> Run | None:
        """See Past."""
        return self._runs.get(run)

    def account(self, payer: str) -> Account | None:
        """See Past."""
        return self._accounts.get(payer)

    def node(self, node: str) -> Node | None:
        """See Rows."""
        return self._nodes.get(node)

    def rental(self, rental: str) -> Rental | None:
        """See Rows."""
        return self._rentals.get(rental)

    def position(self, node: str) -> int | None:
        """See Rows."""
        if self._state is not None:
            return self._state.positions.get(node)
        return self._connection.execute(_POSITION, {"of": node}).scalar()

    def history(self, family: Family) -> History | None:
        """See Rows."""
        if self._state is not None:
            return self._state.history(family)
        project, name = family
        found = self._connection.execute(_FAMILY, {"of_project": project, "of_name": name}).first()
        return None if found is None else read_family(found)[1]

    def use(self, project: str) -> Use | None:
        """See Rows."""
        if self._state is not None:
            return self._state.uses.get(project)
        found = self._connection.execute(_USE, {"of": project}).first()
        return None if found is None else Use(device_s=found[0], at=found[1])

    def budget(self, project: str) -> Budget | None:
        """See Rows."""
        return self._budgets.get(project)

    def notice(self, notice: str) -> Notice | None:
        """See Rows."""
        return self._notices.get(notice)
