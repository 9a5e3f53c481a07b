"""What is asked of the rows: jobs, runs, sums, events, rounds."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Executable, bindparam, exists, func, or_, select

from cloudwhale.control.store import tables as t
from cloudwhale.control.store.bodies import body, read, read_event, unpacked
from cloudwhale.control.store.loading import LIVE_VALUES
from cloudwhale.control.store.rounds import decision_of
from cloudwhale.model.event import Event
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.notice import Notice
from cloudwhale.model.plan import Decision, Round
from cloudwhale.model.rental import SETTLED, Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.world import Account
from cloudwhale.spi.store import JobQuery, Told


@dataclass(frozen=True, slots=True)
class Heads:
    """The newest number of everything that is counted, and the revision of the tables."""

    event: int
    epoch: int
    round: int
    revision: str


def _newest(column: Any) -> Any:
    return select(func.coalesce(func.max(column), 0)).scalar_subquery()


_HEADS = select(
    _newest(t.events.c.seq),
    _newest(t.epochs.c.number),
    _newest(t.rounds.c.number),
    select(t.revision.c.version_num).scalar_subquery(),
)
_NEWEST_EVENT = select(func.coalesce(func.max(t.events.c.seq), 0))


def heads(connection: Connection) -> Heads:
    """Return where everything stands; asked once in every write."""
    return Heads(*connection.execute(_HEADS).one())


def newest_event(connection: Connection) -> int:
    """Return the newest event's number, 0 for none."""
    return int(connection.execute(_NEWEST_EVENT).scalar_one())


_BY_OTHERS = select(
    exists()
    .where(t.events.c.seq > bindparam("seen"))
    .where(or_(t.events.c.epoch.is_(None), t.events.c.epoch != bindparam("own")))
)


def others_wrote(connection: Connection, version: int, epoch: int) -> bool:
    """Say whether anybody but an epoch's holder has stored an event since a version."""
    return bool(connection.execute(_BY_OTHERS, {"seen": version, "own": epoch}).scalar_one())


_NUMBERED = (
    select(t.events.c.epoch, t.events.c.body)
    .where(t.events.c.seq.between(bindparam("first"), bindparam("last")))
    .order_by(t.events.c.seq)
)


def holds(connection: Connection, events: Sequence[Event], first: int, epoch: int | None) -> bool:
    """Say whether these events stand under the numbers that begin with `first`."""
    limits = {"first": first, "last": first + len(events) - 1}
    found = [tuple(row) for row in connection.execute(_NUMBERED, limits)]
    return found == [(epoch, body(event)) for event in events]


# -- jobs ------------------------------------------------------------------------------------


def jobs(connection: Connection, query: JobQuery) -> Sequence[Job]:
    """See Store."""
    wanted = select(t.jobs.c.body).order_by(t.jobs.c.seq.desc())
    if query.run is not None:
        wanted = wanted.where(t.jobs.c.run == query.run)
    if query.project is not None:
        wanted = wanted.where(t.jobs.c.project == query.project)
    if query.states:
        wanted = wanted.where(t.jobs.c.state.in_([state.value for state in query.states]))
    if query.names_or_ids:
        wanted = wanted.where(or_(*(_meant(connection, word) for word in query.names_or_ids)))
    if query.limit is not None:
        wanted = wanted.limit(query.limit)
    return [read(Job, text) for (text,) in connection.execute(wanted)]


def _meant(connection: Connection, word: str) -> Any:
    """Return the condition for an id as it is, else a name, else the one id that begins so."""
    for condition in (t.jobs.c.id == word, t.jobs.c.name == word):
        if connection.execute(select(exists().where(condition))).scalar_one():
            return condition
    begins = func.substr(t.jobs.c.id, 1, len(word)) == word
    found = connection.execute(select(t.jobs.c.id).where(begins).limit(2)).scalars().all()
    return t.jobs.c.id.in_(found if len(found) == 1 else [])


_COUNTS = select(t.jobs.c.state, func.count()).group_by(t.jobs.c.state)
_COUNTS_OF_RUN = _COUNTS.where(t.jobs.c.run == bindparam("run"))


def counts(connection: Connection, run: str | None) -> Mapping[JobState, int]:
    """See Store."""
    if run is None:
        found = connection.execute(_COUNTS)
    else:
        found = connection.execute(_COUNTS_OF_RUN, {"run": run})
    counted = {JobState(state): count for state, count in found}
    return {state: counted.get(state, 0) for state in JobState}


_NODES = select(t.nodes.c.body)


def nodes(connection: Connection) -> Sequence[Node]:
    """See Store."""
    found = [read(Node, text) for (text,) in connection.execute(_NODES)]
    there = [node for node in found if node.state is not NodeState.REMOVED]
    return sorted(there, key=lambda node: node.id)  # databases sort text by their language


# -- runs ------------------------------------------------------------------------------------

_RUN = select(t.runs.c.body).where(t.runs.c.id == bindparam("run"))
_UNFINISHED = (
    select(t.runs.c.body)
    .where(t.runs.c.folder == bindparam("folder"), t.runs.c.digest == bindparam("digest"))
    .where(
        or_(
            exists().where(t.jobs.c.run == t.runs.c.id, t.jobs.c.state.in_(LIVE_VALUES)),
            exists().where(
                t.rentals.c.payer == t.runs.c.id,
                t.rentals.c.state.not_in([state.value for state in SETTLED]),
            ),
        )
    )
    .order_by(t.runs.c.seq.desc())
    .limit(1)
)
_SPENT = (
    select(t.charges.c.job, func.sum(t.charges.c.amount))
    .where(t.charges.c.payer == bindparam("payer"))
    .group_by(t.charges.c.job)
)
_ACCOUNTS = select(t.accounts.c.body)
_RENTALS = select(t.rentals.c.body)
_OPEN_RENTALS = _RENTALS.where(t.rentals.c.state != RentalState.RETURNED.value)
_RENTALS_OF = _RENTALS.where(t.rentals.c.payer == bindparam("payer"))
_PAST_RENTALS = (
    _RENTALS.where(t.rentals.c.state == RentalState.RETURNED.value)
    .order_by(t.rentals.c.version.desc(), t.rentals.c.id)
    .limit(bindparam("most"))
)
_SEALED = select(t.secrets.c.name, t.secrets.c.sealed).where(t.secrets.c.run == bindparam("run"))
_READ_TO = select(t.positions.c.node, t.positions.c.number)


def run(connection: Connection, run_id: str) -> Run | None:
    """See Store."""
    text = connection.execute(_RUN, {"run": run_id}).scalar()
    return None if text is None else read(Run, text)


def unfinished_run(connection: Connection, folder: str, digest: str) -> Run | None:
    """See Store."""
    text = connection.execute(_UNFINISHED, {"folder": folder, "digest": digest}).scalar()
    return None if text is None else read(Run, text)


# The key of a night's own hours is in no other run's body.
_NIGHTS = (
    select(t.runs.c.body)
    .where(t.runs.c.body.contains('"closes_at":'))
    .order_by(t.runs.c.seq.desc())
    .limit(bindparam("most"))
)


def nights(connection: Connection, limit: int) -> Sequence[Run]:
    """See Store."""
    found = (read(Run, text) for (text,) in connection.execute(_NIGHTS, {"most": limit}))
    return [run for run in found if run.night is not None]


def spent(connection: Connection, run_id: str) -> Mapping[str | None, int]:
    """See Store."""
    # PostgreSQL sums integers to a decimal.
    return {job: int(amount) for job, amount in connection.execute(_SPENT, {"payer": run_id})}


def notices(
    connection: Connection, ids: Collection[str], due: bool, limit: int | None
) -> Sequence[Notice]:
    """See Store."""
    wanted = select(t.notices.c.body).order_by(t.notices.c.version.desc(), t.notices.c.id)
    if ids:
        wanted = wanted.where(t.notices.c.id.in_(ids))
    if due:
        wanted = wanted.where(t.notices.c.state == "due")
    if limit is not None:
        wanted = wanted.limit(limit)
    return [read(Notice, text) for (text,) in connection.execute(wanted)]


def accounts(connection: Connection) -> Sequence[Account]:
    """See Store."""
    found = [read(Account, text) for (text,) in connection.execute(_ACCOUNTS)]
    return sorted(found, key=lambda account: account.payer)


def rentals(connection: Connection, payer: str | None) -> Sequence[Rental]:
    """See Store."""
    if payer is None:
        rows = connection.execute(_OPEN_RENTALS)
    else:
        rows = connection.execute(_RENTALS_OF, {"payer": payer})
    return sorted((read(Rental, text) for (text,) in rows), key=lambda rental: rental.id)


def past_rentals(connection: Connection, limit: int) -> Sequence[Rental]:
    """See Store."""
    rows = connection.execute(_PAST_RENTALS, {"most": limit})
    return [read(Rental, text) for (text,) in rows]


def sealed(connection: Connection, run_id: str) -> Mapping[str, bytes]:
    """See Store."""
    return {name: bytes(value) for name, value in connection.execute(_SEALED, {"run": run_id})}


def read_to(connection: Connection) -> Mapping[str, int]:
    """See Store."""
    return {node: number for node, number in connection.execute(_READ_TO)}


# -- events and rounds -----------------------------------------------------------------------

_EVENTS = select(t.events.c.seq, t.events.c.kind, t.events.c.body).order_by(t.events.c.seq)
_OF_SUBJECT: Executable = _EVENTS.where(
    t.events.c.subject == bindparam("of"), t.events.c.seq > bindparam("seen")
)
_SINCE: Executable = _EVENTS.where(t.events.c.seq > bindparam("seen")).limit(bindparam("most"))
_UNTIL: Executable = _EVENTS.where(t.events.c.seq <= bindparam("last"))
_ROUND = select(t.rounds.c.body).where(t.rounds.c.number == bindparam("number"))
_ROUNDS = (
    select(t.rounds.c.body)
    .join(t.round_jobs, t.round_jobs.c.round == t.rounds.c.number)
    .where(t.round_jobs.c.job == bindparam("job"))
    .order_by(t.rounds.c.number)
)


def events(connection: Connection, subject: str, after: int) -> Sequence[Told]:
    """See Store."""
    return _told(connection.execute(_OF_SUBJECT, {"of": subject, "seen": after}))


def since(connection: Connection, seq: int, limit: int) -> Sequence[Told]:
    """See Store."""
    return _told(connection.execute(_SINCE, {"seen": seq, "most": limit}))


def until(connection: Connection, version: int) -> Iterable[Told]:
    """Yield every event up to a number, oldest first."""
    for row in connection.execute(_UNTIL, {"last": version}):
        yield from _told([row])


def rounds(connection: Connection, job: str) -> Sequence[tuple[Round, Decision | None]]:
    """See Store."""
    found = [read(Round, text) for (text,) in connection.execute(_ROUNDS, {"job": job})]
    return [(each, decision_of(each.plan, job)) for each in found]


def round(connection: Connection, number: int) -> Round | None:
    """See Store."""
    text = connection.execute(_ROUND, {"number": number}).scalar()
    return None if text is None else read(Round, text)


_OFFERS = select(t.offer_lists.c.body).where(t.offer_lists.c.digest == bindparam("of"))
_HAS_OFFERS = select(exists().where(t.offer_lists.c.digest == bindparam("of")))


def offer_list(connection: Connection, digest: str) -> str | None:
    """See Store."""
    packed = connection.execute(_OFFERS, {"of": digest}).scalar()
    return None if packed is None else unpacked(bytes(packed))


def has_offer_list(connection: Connection, digest: str) -> bool:
    """Say whether a list of offers is kept."""
    return bool(connection.execute(_HAS_OFFERS, {"of": digest}).scalar_one())


def _told(rows: Iterable[Sequence[Any]]) -> list[Told]:
    return [Told.model_construct(seq=seq, event=read_event(kind, text)) for seq, kind, text in rows]
