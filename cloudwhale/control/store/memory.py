"""The simulator's store: everything in memory, gone with the process."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from cloudwhale.control.store.admission import admit, stale
from cloudwhale.control.store.folding import Draft
from cloudwhale.control.store.rounds import decision_of, jobs_of
from cloudwhale.control.store.state import Archive, State, world_after
from cloudwhale.control.store.subjects import subject
from cloudwhale.model.cost import CostLine, CostSum
from cloudwhale.model.event import Event, RentalChanged
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.notice import Notice
from cloudwhale.model.plan import Decision, Round
from cloudwhale.model.rental import SETTLED, Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant
from cloudwhale.model.world import Account, World
from cloudwhale.planning import cost_sums
from cloudwhale.spi.store import CostQuery, JobQuery, Told


class MemoryStore:
    """A Store without a database; see spi/store. For one thread."""

    def __init__(self) -> None:
        self._archive = Archive()
        self._state = State()
        self._told: list[Told] = []
        self._wrote: list[int | None] = []
        """The epoch that wrote each event."""
        self._of_subject: dict[str, list[Told]] = {}
        self._rounds: list[Round] = []
        self._rounds_of: dict[str, list[Round]] = {}
        self._offers: dict[str, str] = {}
        """Lists of offers by their digests."""
        self._lines: dict[int, CostLine] = {}
        """What each charge was for, by the number of its event."""
        self._secrets: dict[str, dict[str, bytes]] = {}
        self._epoch = 0

    # -- writing ---------------------------------------------------------------------------

    def append(self, events: Iterable[Event], *, epoch: int | None = None) -> int:
        """See Store."""
        admit(epoch, self._epoch)
        new = list(events)
        draft = Draft(self._archive)
        for seq, event in enumerate(new, self.version() + 1):
            draft.fold(seq, event)
        self._archive.keep(draft)
        self._lines.update(draft.lines)
        self._state.take(draft, self.version() + len(new))
        for event in new:
            told = Told.known(seq=self.version() + 1, event=event)
            self._told.append(told)
            self._wrote.append(epoch)
            self._of_subject.setdefault(subject(event), []).append(told)
        return self.version()

    def record(self, round: Round, events: Iterable[Event], *, epoch: int, offers: str = "") -> int:
        """See Store."""
        admit(epoch, self._epoch)
        if any(wrote != epoch for wrote in self._wrote[round.version :]):
            raise stale(round.version, self.version())
        self.append(events, epoch=epoch)
        if not round.plan.steps:
            return 0
        stored = round.but(number=len(self._rounds) + 1)
        self._rounds.append(stored)
        if offers:
            self._offers.setdefault(stored.offers, offers)
        for job in jobs_of(stored.plan):
            self._rounds_of.setdefault(job, []).append(stored)
        return stored.number

    def seal(self, run: str, secrets: Mapping[str, bytes]) -> None:
        """See Store."""
        self._secrets.setdefault(run, {}).update(secrets)

    def new_epoch(self, holder: str, now: Instant, at_least: int = 0) -> int:
        """See Store."""
        self._epoch = max(self._epoch + 1, at_least)
        return self._epoch

    def close(self) -> None:
        """See Store; there is nothing to let go of."""

    # -- the world -------------------------------------------------------------------------

    def version(self) -> int:
        """See Store."""
        return len(self._told)

    def world(self, now: Instant) -> World:
        """See Store."""
        return self._state.world(now)

    def world_at(self, version: int, now: Instant) -> World:
        """See Store."""
        told = self._told[:version]
        return world_after(((each.seq, each.event) for each in told), len(told), now)

    # -- reading ---------------------------------------------------------------------------

    def jobs(self, query: JobQuery) -> Sequence[Job]:
        """See Store."""
        found: list[Job] = []
        ids = self._meant(query.names_or_ids)
        for job in reversed(self._archive.jobs.values()):
            if query.limit is not None and len(found) >= query.limit:
                break
            if _fits(job, query) and (not query.names_or_ids or job.id in ids):
                found.append(job)
        return found

    def nodes(self) -> Sequence[Node]:
        """See Store."""
        found = sorted(self._archive.nodes.items())
        return [node for _, node in found if node.state is not NodeState.REMOVED]

    def run(self, run: str) -> Run | None:
        """See Store."""
        return self._archive.runs.get(run)

    def unfinished_run(self, folder: str, digest: str) -> Run | None:
        """See Store."""
        alive = {job.run for job in self._state.jobs.values()}
        rentals = self._archive.rentals.values()
        alive |= {rental.payer for rental in rentals if rental.state not in SETTLED}
        for run in reversed(self._archive.runs.values()):
            if (run.folder, run.digest) == (folder, digest) and run.id in alive:
                return run
        return None

    def nights(self, limit: int = 500) -> Sequence[Run]:
        """See Store."""
        found = [run for run in reversed(self._archive.runs.values()) if run.night is not None]
        return found[:limit]

    def counts(self, run: str | None = None) -> Mapping[JobState, int]:
        """See Store."""
        jobs = self._archive.jobs.values()
        counted = Counter(job.state for job in jobs if run is None or job.run == run)
        return {state: counted[state] for state in JobState}

    def spent(self, run: str) -> Mapping[str | None, int]:
        """See Store."""
        sums: Counter[str | None] = Counter()
        for line in self._lines.values():
            if line.run == run:
                sums[line.job] += line.spent
        return dict(sums)

    def costs(self, query: CostQuery) -> Sequence[CostSum]:
        """See Store."""
        return cost_sums.sums(self._lines.values(), query)

    def cost_lines(self, query: CostQuery) -> Iterator[CostLine]:
        """See Store."""
        fitting = [line for line in self._lines.values() if cost_sums.fits(line, query)]
        return iter(sorted(fitting, key=lambda line: line.began_at))

    def notices(
        self, *, ids: Collection[str] = (), due: bool = False, limit: int | None = None
    ) -> Sequence[Notice]:
        """See Store."""
        known = reversed(self._archive.notices.values())
        fits = (one for one in known if not ids or one.id in ids)
        return list(islice((one for one in fits if not due or one.state == "due"), limit))

    def accounts(self) -> Sequence[Account]:
        """See Store."""
        return [account for _, account in sorted(self._archive.accounts.items())]

    def rentals(self, payer: str | None = None) -> Sequence[Rental]:
        """See Store."""
        known = (rental for _, rental in sorted(self._archive.rentals.items()))
        if payer is None:
            return [rental for rental in known if rental.state is not RentalState.RETURNED]
        return [rental for rental in known if rental.payer == payer]

    def past_rentals(self, limit: int = 500) -> Sequence[Rental]:
        """See Store."""
        back = [one for one in self._archive.rentals.values() if one.state is RentalState.RETURNED]
        back.sort(key=lambda one: one.id)
        back.sort(key=lambda one: self._changed_last(one.id), reverse=True)
        return back[:limit]

    def _changed_last(self, rental: str) -> int:
        told = [
            one.seq
            for one in self._of_subject.get(rental, [])
            if isinstance(one.event, RentalChanged)
        ]
        return max(told, default=0)

    def events(self, subject: str, *, after: int = 0) -> Sequence[Told]:
        """See Store."""
        return [told for told in self._of_subject.get(subject, []) if told.seq > after]

    def since(self, seq: int, limit: int = 1000) -> Sequence[Told]:
        """See Store."""
        return self._told[seq : seq + limit]

    def rounds(self, job: str) -> Sequence[tuple[Round, Decision | None]]:
        """See Store."""
        return [(each, decision_of(each.plan, job)) for each in self._rounds_of.get(job, [])]

    def round(self, number: int) -> Round | None:
        """See Store."""
        return self._rounds[number - 1] if 0 < number <= len(self._rounds) else None

    def offer_list(self, digest: str) -> str | None:
        """See Store."""
        return self._offers.get(digest)

    def sealed(self, run: str) -> Mapping[str, bytes]:
        """See Store."""
        return dict(self._secrets.get(run, {}))

    def read_to(self) -> Mapping[str, int]:
        """See Store."""
        return dict(self._state.positions)

    def _meant(self, words: Iterable[str]) -> set[str]:
        return {job for word in words for job in self._meant_by(word)}

    def _meant_by(self, word: str) -> Iterator[str]:
        """Yield an id as it is, else the jobs of a name, else the one id that begins so."""
        jobs = self._archive.jobs
        if word in jobs:
            yield word
            return
        named = [job.id for job in jobs.values() if job.spec.name == word]
        begun = [job_id for job_id in jobs if job_id.startswith(word)]
        yield from named or (begun if len(begun) == 1 else [])


def _fits(job: Job, query: JobQuery) -> bool:
    return (
        (query.run is None or job.run == query.run)
        and (query.project is None or job.spec.project == query.project)
        and (not query.states or job.state in query.states)
    )
