"""What the house asks of the place where truth is kept."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from cloudwhale.model.cost import CostLine, CostSum, Dimension
from cloudwhale.model.event import Event
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.node import Node
from cloudwhale.model.notice import Notice
from cloudwhale.model.plan import Decision, Round
from cloudwhale.model.rental import Rental
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant
from cloudwhale.model.value import Value
from cloudwhale.model.world import Account, World


class Told(Value):
    """A stored event with its number."""

    seq: int
    event: Event


class JobQuery(Value):
    """Which jobs to return, newest first."""

    run: str | None = None
    project: str | None = None
    states: tuple[JobState, ...] = ()
    """Empty: any."""
    names_or_ids: tuple[str, ...] = ()
    """Ids, unique beginnings of ids, or names (a name gives every job of that name)."""
    limit: int | None = None


class CostQuery(Value):
    """Which lines of cost to return or to add up: all that was charged, unless something is asked.

    Each of the last fields leaves lines out that have another value there; None: any.
    """

    by: tuple[Dimension, ...] = ()
    """One sum for each value of these; empty: one sum."""
    since: Instant | None = None
    """Lines whose machine's bill began then, or later."""
    until: Instant | None = None
    """Lines whose machine's bill began before."""
    zone: str = "UTC"
    """In which days are told apart; an IANA name."""
    dearest: int | None = None
    """At most so many sums, those of the most money; None: all."""
    of_jobs: bool = False
    """Whether lines without a job are left out."""
    counts_jobs: bool = True
    """Whether sums say of how many jobs they are, which is a third of the time of adding up."""
    run: str | None = None
    user: str | None = None
    project: str | None = None
    job: str | None = None
    family: str | None = None
    rental: str | None = None
    provider: str | None = None
    market: str | None = None
    region: str | None = None
    gpu: str | None = None


class Store(Protocol):
    """Events appended, state derived; every verb raises StoreUnusable with a sentence."""

    def append(self, events: Iterable[Event], *, epoch: int | None = None) -> int:
        """Store events all or none, apply them to the state, and return the newest number.

        With an epoch: raise Fenced when it is no longer the newest. An event that a thing's
        state has no edge for raises IllegalTransition and nothing is stored.
        """
        ...

    def version(self) -> int:
        """Return the newest event's number; cheap, called many times a second."""
        ...

    def world(self, now: Instant) -> World:
        """Return the world without sightings and offers; cached, costs what has changed."""
        ...

    def world_at(self, version: int, now: Instant) -> World:
        """Return the world as it was after an event, by applying the events again."""
        ...

    def record(self, round: Round, events: Iterable[Event], *, epoch: int, offers: str = "") -> int:
        """Store a round and the events it leads to, all or none; return the round's number.

        `offers`: the list that the round names by its digest; a list that is there is kept once.
        Raise StaleWorld when an event was stored since the round's version, other than by
        this epoch's holder.
        """
        ...

    def jobs(self, query: JobQuery) -> Sequence[Job]:
        """Return jobs, newest first; does not read more rows than it returns."""
        ...

    def nodes(self) -> Sequence[Node]:
        """Return every node by id, lost ones too, removed ones not; costs no world."""
        ...

    def run(self, run: str) -> Run | None:
        """Return a run by id."""
        ...

    def unfinished_run(self, folder: str, digest: str) -> Run | None:
        """Return the newest run of this folder and digest that is not over, if any.

        It has a live job, or a machine that is on its way back.
        """
        ...

    def nights(self, limit: int = 500) -> Sequence[Run]:
        """Return the runs that are nights, those that were opened last first; costs no world."""
        ...

    def counts(self, run: str | None = None) -> Mapping[JobState, int]:
        """Return how many jobs are in each state; summed by the database."""
        ...

    def spent(self, run: str) -> Mapping[str | None, int]:
        """Return micro-dollars charged to a run, by job (None: the run's own)."""
        ...

    def costs(self, query: CostQuery) -> Sequence[CostSum]:
        """Return what was charged, added up by the database; by key, and none without lines.

        Machines that are not back are not in it: see `planning/costing`. Raise ValueError for a
        zone that nobody knows.
        """
        ...

    def cost_lines(self, query: CostQuery) -> Iterator[CostLine]:
        """Yield the lines of what was charged when this is asked, those that began first first.

        Reads some at a time, and pays no heed to `by`.
        """
        ...

    def notices(
        self, *, ids: Collection[str] = (), due: bool = False, limit: int | None = None
    ) -> Sequence[Notice]:
        """Return what people were told or are to be told, what has changed last first.

        `ids`: those alone; `due`: those that a target still waits for.
        """
        ...

    def accounts(self) -> Sequence[Account]:
        """Return every account there ever was, of runs and of projects by month, by payer."""
        ...

    def rentals(self, payer: str | None = None) -> Sequence[Rental]:
        """Return the machines that a payer has or had, by id; without one all that are not back.

        Costs no world.
        """
        ...

    def past_rentals(self, limit: int = 500) -> Sequence[Rental]:
        """Return the machines that are back, those that came back last first; costs no world."""
        ...

    def events(self, subject: str, *, after: int = 0) -> Sequence[Told]:
        """Return what happened to a job, a node, a run or a rental, oldest first."""
        ...

    def since(self, seq: int, limit: int = 1000) -> Sequence[Told]:
        """Return every event after a number, oldest first."""
        ...

    def rounds(self, job: str) -> Sequence[tuple[Round, Decision | None]]:
        """Return the rounds that said something of a job, oldest first."""
        ...

    def round(self, number: int) -> Round | None:
        """Return a round by number."""
        ...

    def offer_list(self, digest: str) -> str | None:
        """Return a list of offers as it was given with a round, or None when there is none."""
        ...

    def seal(self, run: str, secrets: Mapping[str, bytes]) -> None:
        """Keep sealed secrets of a run."""
        ...

    def sealed(self, run: str) -> Mapping[str, bytes]:
        """Return the sealed secrets of a run, by name."""
        ...

    def read_to(self) -> Mapping[str, int]:
        """Return up to which number each node's inbox was read."""
        ...

    def new_epoch(self, holder: str, now: Instant, at_least: int = 0) -> int:
        """Begin the next epoch, `at_least` this one; the caller holds the lock.

        A database that was begun anew or restored knows less of its epochs than agents have seen.
        """
        ...

    def close(self) -> None:
        """Let go of connections; may be called twice."""
        ...
