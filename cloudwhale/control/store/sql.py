"""The store in a database: events appended and state derived from them, in one transaction."""

import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from cloudwhale.control.store import costs, reading, writing
from cloudwhale.control.store.admission import admit, stale
from cloudwhale.control.store.batches import Batch, Write
from cloudwhale.control.store.database import Database, Schema
from cloudwhale.control.store.folding import Draft
from cloudwhale.control.store.loading import catch_up, load
from cloudwhale.control.store.migrate import prepare
from cloudwhale.control.store.naming import named_in
from cloudwhale.control.store.rows import SqlRows
from cloudwhale.control.store.state import State, world_after
from cloudwhale.model.cost import CostLine, CostSum
from cloudwhale.model.event import Event
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.node import Node
from cloudwhale.model.notice import Notice
from cloudwhale.model.plan import Decision, Round
from cloudwhale.model.rental import Rental
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant
from cloudwhale.model.world import Account, World
from cloudwhale.spi.errors import (
    CloudwhaleError,
    Fenced,
    IllegalTransition,
    StaleWorld,
    StoreUnusable,
)
from cloudwhale.spi.store import CostQuery, JobQuery, Told

T = TypeVar("T")


class SqlStore:
    """A Store in a database; see spi/store. Threads may share it, processes open their own."""

    def __init__(
        self, database: Database, *, may_migrate: bool = False, schema: Schema | None = None
    ) -> None:
        self._database = database
        self._schema = schema or Schema()
        self._lock = threading.RLock()
        self._state: State | None = None
        """None until a world is asked for: who only appends or reads pays for no state."""
        self._returned = 0
        self._beat = self._version = -1
        self._doubt: Batch | None = None
        """Events of which nobody knows whether they were stored: the database went away then."""
        try:
            with database.faults():
                prepare(database, self._schema, may_migrate=may_migrate)
        except CloudwhaleError:
            database.close()
            raise

    def close(self) -> None:
        """See Store."""
        with self._lock:
            self._database.close()

    # -- writing ---------------------------------------------------------------------------

    def append(self, events: Iterable[Event], *, epoch: int | None = None) -> int:
        """See Store; whoever appends again what was in doubt stores it once."""
        batch = Batch(tuple(events), epoch)
        try:
            return self._append(batch)
        except StoreUnusable:
            if self._doubt is None:
                raise
            return self._append(batch)

    def _append(self, batch: Batch) -> int:
        with self._writing() as write:
            admit(batch.epoch, write.heads.epoch)
            new = list(self._beyond_doubt(write.connection, batch))
            return self._store(write, new, batch.epoch)

    def _beyond_doubt(self, connection: Connection, batch: Batch) -> Sequence[Event]:
        """Return the events of a batch that are not stored yet.

        Whoever was in doubt has the write lock again, so what it left is final.
        """
        doubt = self._doubt
        if doubt is None or not reading.holds(connection, doubt.events, doubt.first, doubt.epoch):
            return batch.events
        return batch.without(doubt)

    def record(self, round: Round, events: Iterable[Event], *, epoch: int, offers: str = "") -> int:
        """See Store."""
        new = list(events)
        with self._writing() as write:
            heads = write.heads
            admit(epoch, heads.epoch)
            if reading.others_wrote(write.connection, round.version, epoch):
                raise stale(round.version, heads.event)
            self._store(write, new, epoch)
            write.batch = None  # in doubt, a round is planned again
            if not round.plan.steps:
                return 0
            if offers and not reading.has_offer_list(write.connection, round.offers):
                writing.write_offer_list(write.connection, round.offers, offers)
            writing.write_round(write.connection, round.but(number=heads.round + 1))
            return heads.round + 1

    def seal(self, run: str, secrets: Mapping[str, bytes]) -> None:
        """See Store."""
        with self._writing() as write:
            writing.write_secrets(write.connection, run, secrets)

    def new_epoch(self, holder: str, now: Instant, at_least: int = 0) -> int:
        """See Store."""
        with self._writing() as write:
            number = max(write.heads.epoch + 1, at_least)
            writing.write_epoch(write.connection, number, holder, now)
            return number

    def _store(self, write: Write, new: list[Event], epoch: int | None) -> int:
        newest = write.heads.event
        if not new:
            return newest
        connection = write.connection
        if self._state is not None:
            self._bring_up(connection, newest)
        rows = SqlRows(connection, self._state)
        rows.fetch(named_in(new))
        draft = Draft(rows)
        for seq, event in enumerate(new, newest + 1):
            draft.fold(seq, event)
        version = newest + len(new)
        writing.write_events(connection, newest + 1, new, epoch)
        writing.write_draft(connection, draft, version)
        write.batch = Batch(tuple(new), epoch, first=newest + 1)
        if self._state is not None:
            self._state.take(draft, version)
        return version

    # -- the world -------------------------------------------------------------------------

    def version(self) -> int:
        """See Store."""
        with self._lock, self._database.faults():
            beat = self._database.beat()
            if beat != self._beat:
                # In this order: a commit between the two is seen at the next call.
                self._version = self._ask(reading.newest_event)
                self._beat = beat
            return self._version

    def world(self, now: Instant) -> World:
        """See Store."""
        with self._lock:
            state = self._state
            if state is None or state.version != self.version() or self._may_be_another():
                state = self._ask(self._up_to_date)
            return state.world(now)

    def world_at(self, version: int, now: Instant) -> World:
        """See Store."""

        def world_of(connection: Connection) -> World:
            told = reading.until(connection, version)
            newest = min(version, reading.newest_event(connection))
            return world_after(((each.seq, each.event) for each in told), newest, now)

        return self._ask(world_of)

    def _up_to_date(self, connection: Connection) -> State:
        return self._bring_up(connection, reading.newest_event(connection))

    def _bring_up(self, connection: Connection, newest: int) -> State:
        """Return the state as of the newest event."""
        state = self._state
        if state is None or state.version > newest or self._may_be_another():
            self._returned = self._database.returned()
            self._state = state = load(connection, newest)
        elif state.version != newest:
            catch_up(connection, state, newest)
        return state

    def _may_be_another(self) -> bool:
        """Say whether the rows may be those of another server, one that knows less."""
        return self._returned != self._database.returned()

    # -- reading ---------------------------------------------------------------------------

    def jobs(self, query: JobQuery) -> Sequence[Job]:
        """See Store."""
        return self._ask(lambda connection: reading.jobs(connection, query))

    def nodes(self) -> Sequence[Node]:
        """See Store."""
        return self._ask(lambda connection: reading.nodes(connection))

    def run(self, run: str) -> Run | None:
        """See Store."""
        return self._ask(lambda connection: reading.run(connection, run))

    def unfinished_run(self, folder: str, digest: str) -> Run | None:
        """See Store."""
        return self._ask(lambda connection: reading.unfinished_run(connection, folder, digest))

    def nights(self, limit: int = 500) -> Sequence[Run]:
        """See Store."""
        return self._ask(lambda connection: reading.nights(connection, limit))

    def counts(self, run: str | None = None) -> Mapping[JobState, int]:
        """See Store."""
        return self._ask(lambda connection: reading.counts(connection, run))

    def spent(self, run: str) -> Mapping[str | None, int]:
        """See Store."""
        return self._ask(lambda connection: reading.spent(connection, run))

    def costs(self, query: CostQuery) -> Sequence[CostSum]:
        """See Store."""
        return self._ask(lambda connection: costs.sums(connection, query))

    def cost_lines(self, query: CostQuery) -> Iterator[CostLine]:
        """See Store."""
        return costs.all_lines(self._ask, query)

    def notices(
        self, *, ids: Collection[str] = (), due: bool = False, limit: int | None = None
    ) -> Sequence[Notice]:
        """See Store."""
        return self._ask(lambda connection: reading.notices(connection, ids, due, limit))

    def accounts(self) -> Sequence[Account]:
        """See Store."""
        return self._ask(reading.accounts)

    def rentals(self, payer: str | None = None) -> Sequence[Rental]:
        """See Store."""
        return self._ask(lambda connection: reading.rentals(connection, payer))

    def past_rentals(self, limit: int = 500) -> Sequence[Rental]:
        """See Store."""
        return self._ask(lambda connection: reading.past_rentals(connection, limit))

    def events(self, subject: str, *, after: int = 0) -> Sequence[Told]:
        """See Store."""
        return self._ask(lambda connection: reading.events(connection, subject, after))

    def since(self, seq: int, limit: int = 1000) -> Sequence[Told]:
        """See Store."""
        return self._ask(lambda connection: reading.since(connection, seq, limit))

    def rounds(self, job: str) -> Sequence[tuple[Round, Decision | None]]:
        """See Store."""
        return self._ask(lambda connection: reading.rounds(connection, job))

    def round(self, number: int) -> Round | None:
        """See Store."""
        return self._ask(lambda connection: reading.round(connection, number))

    def offer_list(self, digest: str) -> str | None:
        """See Store."""
        return self._ask(lambda connection: reading.offer_list(connection, digest))

    def sealed(self, run: str) -> Mapping[str, bytes]:
        """See Store."""
        return self._ask(lambda connection: reading.sealed(connection, run))

    def read_to(self) -> Mapping[str, int]:
        """See Store."""
        return self._ask(lambda connection: reading.read_to(connection))

    # -- transactions ----------------------------------------------------------------------

    def _ask(self, question: Callable[[Connection], T]) -> T:
        """Answer a question from one snapshot; asked again when the connection was lost."""
        with self._lock, self._database.faults():
            try:
                with self._database.reader.connect() as connection:
                    return question(connection)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
            with self._database.reader.connect() as connection:
                return question(connection)

    @contextmanager
    def _writing(self) -> Generator[Write]:
        """All or nothing; the state is forgotten when it may have moved and the rows have not."""
        write: Write | None = None
        with self._lock, self._database.faults():
            try:
                with self._begun() as connection:
                    heads = reading.heads(connection)
                    self._check(heads.revision)
                    write = Write(connection, heads)
                    yield write
                    write.committing = True
                self._doubt = None
            except (IllegalTransition, Fenced, StaleWorld):
                raise  # nothing has moved
            except BaseException:
                self._state = None
                if write is not None and write.committing and write.batch is not None:
                    self._doubt = write.batch
                raise

    @contextmanager
    def _begun(self) -> Generator[Connection]:
        """A transaction that has its turn; a connection that was lost meanwhile is replaced."""
        writer = self._database.writer
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(writer.begin())
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                connection = stack.enter_context(writer.begin())
            yield connection

    def _check(self, revision: str) -> None:
        if revision != self._schema.head:
            raise StoreUnusable(
                f"{self._database.name} was migrated to revision {revision} while this program ran",
                "Start it again with the newer version of cloudwhale.",
            )
