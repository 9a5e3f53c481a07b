"""The store in a database: events appended and state derived from them, in one transaction."""

import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection

from cloudwhale.control.store import reading, sqlite, writing
from cloudwhale.control.store.admission import admit, stale
from cloudwhale.control.store.faults import as_sentences
from cloudwhale.control.store.folding import Draft, named_in
from cloudwhale.control.store.loading import catch_up, load
from cloudwhale.control.store.migrate import Schema, prepare
from cloudwhale.control.store.opening import path_of
from cloudwhale.control.store.rows import SqlRows
from cloudwhale.control.store.state import State, world_after
from cloudwhale.model.event import Event
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.node import Node
from cloudwhale.model.plan import Decision, Round
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.spi.errors import (
    CloudwhaleError,
    Fenced,
    IllegalTransition,
    StaleWorld,
    StoreUnusable,
)
from cloudwhale.spi.store import JobQuery, Told

BUSY_TIMEOUT_S: Seconds = 5.0  # a writer holds the lock for milliseconds; five seconds is a fault


class SqlStore:
    """A Store in an SQLite file; see spi/store. Threads may share it, processes open their own."""

    def __init__(
        self,
        url: str,
        *,
        may_migrate: bool = False,
        busy_timeout_s: Seconds = BUSY_TIMEOUT_S,
        schema: Schema | None = None,
    ) -> None:
        self.file = path_of(url)
        self._schema = schema or Schema()
        self._lock = threading.RLock()
        self._state: State | None = None
        """None until a world is asked for: who only appends or reads pays for no state."""
        self._beat = self._version = -1
        sqlite.make_place(self.file)
        self._engine = sqlite.engine_of(self.file, busy_timeout_s)
        self._writer = sqlite.writing(self._engine)
        try:
            with as_sentences(str(self.file)):
                prepare(self._engine, self.file, self._schema, may_migrate=may_migrate)
                self._pulse = sqlite.Pulse(self._engine)
        except CloudwhaleError:
            self._engine.dispose()
            raise

    def close(self) -> None:
        """See Store."""
        with self._lock:
            self._pulse.close()
            self._engine.dispose()

    # -- writing ---------------------------------------------------------------------------

    def append(self, events: Iterable[Event], *, epoch: int | None = None) -> int:
        """See Store."""
        new = list(events)
        with self._writing() as (connection, heads):
            admit(epoch, heads.epoch)
            return self._store(connection, heads.event, new, epoch)

    def record(self, round: Round, events: Iterable[Event], *, epoch: int) -> int:
        """See Store."""
        new = list(events)
        with self._writing() as (connection, heads):
            admit(epoch, heads.epoch)
            if reading.others_wrote(connection, round.version, epoch):
                raise stale(round.version, heads.event)
            self._store(connection, heads.event, new, epoch)
            if not round.plan.steps:
                return 0
            writing.write_round(connection, round.but(number=heads.round + 1))
            return heads.round + 1

    def seal(self, run: str, secrets: Mapping[str, bytes]) -> None:
        """See Store."""
        with self._writing() as (connection, _):
            writing.write_secrets(connection, run, secrets)

    def new_epoch(self, holder: str, now: Instant, at_least: int = 0) -> int:
        """See Store."""
        with self._writing() as (connection, heads):
            number = max(heads.epoch + 1, at_least)
            writing.write_epoch(connection, number, holder, now)
            return number

    def _store(
        self, connection: Connection, newest: int, new: list[Event], epoch: int | None
    ) -> int:
        if not new:
            return newest
        if self._state is not None and self._state.version != newest:
            catch_up(connection, self._state, newest)
        rows = SqlRows(connection, self._state)
        rows.fetch(named_in(new))
        draft = Draft(rows)
        for seq, event in enumerate(new, newest + 1):
            draft.fold(seq, event)
        version = newest + len(new)
        writing.write_events(connection, newest + 1, new, epoch)
        writing.write_draft(connection, draft, version)
        if self._state is not None:
            self._state.take(draft, version)
        return version

    # -- the world -------------------------------------------------------------------------

    def version(self) -> int:
        """See Store."""
        with self._lock, as_sentences(str(self.file)):
            beat = self._pulse.beat()
            if beat != self._beat:
                # In this order: a commit between the two is seen at the next call.
                with self._reading() as connection:
                    self._version = reading.newest_event(connection)
                self._beat = beat
            return self._version

    def world(self, now: Instant) -> World:
        """See Store."""
        with self._lock:
            if self._state is None or self._state.version != self.version():
                with self._reading() as connection:
                    self._bring_up(connection)
            assert self._state is not None
            return self._state.world(now)

    def world_at(self, version: int, now: Instant) -> World:
        """See Store."""
        with self._reading() as connection:
            told = reading.until(connection, version)
            version = min(version, reading.newest_event(connection))
            return world_after(((each.seq, each.event) for each in told), version, now)

    def _bring_up(self, connection: Connection) -> None:
        newest = reading.newest_event(connection)
        if self._state is None:
            self._state = load(connection, newest)
        elif self._state.version != newest:
            catch_up(connection, self._state, newest)

    # -- reading ---------------------------------------------------------------------------

    def jobs(self, query: JobQuery) -> Sequence[Job]:
        """See Store."""
        with self._reading() as connection:
            return reading.jobs(connection, query)

    def nodes(self) -> Sequence[Node]:
        """See Store."""
        with self._reading() as connection:
            return reading.nodes(connection)

    def run(self, run: str) -> Run | None:
        """See Store."""
        with self._reading() as connection:
            return reading.run(connection, run)

    def unfinished_run(self, folder: str, digest: str) -> Run | None:
        """See Store."""
        with self._reading() as connection:
            return reading.unfinished_run(connection, folder, digest)

    def counts(self, run: str | None = None) -> Mapping[JobState, int]:
        """See Store."""
        with self._reading() as connection:
            return reading.counts(connection, run)

    def spent(self, run: str) -> Mapping[str | None, int]:
        """See Store."""
        with self._reading() as connection:
            return reading.spent(connection, run)

    def events(self, subject: str, *, after: int = 0) -> Sequence[Told]:
        """See Store."""
        with self._reading() as connection:
            return reading.events(connection, subject, after)

    def since(self, seq: int, limit: int = 1000) -> Sequence[Told]:
        """See Store."""
        with self._reading() as connection:
            return reading.since(connection, seq, limit)

    def rounds(self, job: str) -> Sequence[tuple[Round, Decision | None]]:
        """See Store."""
        with self._reading() as connection:
            return reading.rounds(connection, job)

    def round(self, number: int) -> Round | None:
        """See Store."""
        with self._reading() as connection:
            return reading.round(connection, number)

    def sealed(self, run: str) -> Mapping[str, bytes]:
        """See Store."""
        with self._reading() as connection:
            return reading.sealed(connection, run)

    def read_to(self) -> Mapping[str, int]:
        """See Store."""
        with self._reading() as connection:
            return reading.read_to(connection)

    # -- transactions ----------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Generator[Connection]:
        """One snapshot."""
        with self._lock, as_sentences(str(self.file)), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Generator[tuple[Connection, reading.Heads]]:
        """All or nothing; the state is forgotten when it may have moved and the rows have not."""
        with self._lock, as_sentences(str(self.file)):
            try:
                with self._writer.begin() as connection:
                    heads = reading.heads(connection)
                    self._check(heads.revision)
                    yield connection, heads
            except (IllegalTransition, Fenced, StaleWorld):
                raise  # nothing has moved
            except BaseException:
                self._state = None
                raise

    def _check(self, revision: str) -> None:
        if revision != self._schema.head:
            raise StoreUnusable(
                f"{self.file} was migrated to revision {revision} while this program ran",
                "Start it again with the newer version of cloudwhale.",
            )
