"""What a planning round needs to know, kept in memory: what lives, and what that depends on."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from cloudwhale.control.store.folding import Draft, Family, Named, Past
from cloudwhale.model.budget import Budget
from cloudwhale.model.event import Event
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.notice import Notice
from cloudwhale.model.peak import History, Peak
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import Account, Sighting, Use, World
from cloudwhale.planning.payers import project_and_month


class State:
    """Things as they are after an event; worlds are copies of it.

    Whatever ended is dropped at once, unless something alive depends on it.
    """

    def __init__(self) -> None:
        self.version = 0
        self.jobs: dict[str, Job] = {}
        self.ended: dict[str, JobState] = {}
        self.nodes: dict[str, Node] = {}
        self.runs: dict[str, Run] = {}
        self.rentals: dict[str, Rental] = {}
        self.accounts: dict[str, Account] = {}
        self.durations: dict[Family, tuple[Seconds, ...]] = {}
        self.peaks: dict[Family, tuple[Peak, ...]] = {}
        self.uses: dict[str, Use] = {}
        self.budgets: dict[str, Budget] = {}
        self.positions: dict[str, int] = {}
        self._months: dict[str, str] = {}
        """Of each project the account of its newest month: what was spent there counts."""
        self._waited_for: Counter[str] = Counter()
        """How many live jobs wait for a job, by its id."""
        self._payers: Counter[str] = Counter()
        """How many live jobs and open rentals a payer has; a run is a payer."""
        self._lacks = Named()
        """Things that a world needs and that have not been put here yet."""
        self._copies: dict[str, Mapping[Any, Any]] = {}
        self._changed = set(_IN_A_WORLD)
        self._newest: World | None = None

    def take(self, draft: Draft, version: int) -> None:
        """Move on to what a draft leaves."""
        for job in draft.jobs.after.values():
            self.put_job(job)
        for rental in draft.rentals.after.values():
            self.put_rental(rental)
        for run in draft.runs.after.values():
            self.put_run(run)
        for account in draft.accounts.after.values():
            self.put_account(account)
        for node in draft.nodes.after.values():
            self.put_node(node)
        for family, history in draft.families.after.items():
            self.put_history(family, history)
        for project, used in draft.uses.after.items():
            self.put_use(project, used)
        for budget in draft.budgets.after.values():
            self.put_budget(budget)
        self.positions.update(draft.positions.after)
        self.complete(draft)
        self.version = version

    def world(self, now: Instant) -> World:
        """Return a snapshot; costs a copy of the mappings that have changed since the last.

        The same one while it is asked for at the same time, and nothing has come.
        """
        newest = self._newest
        if newest is not None and newest.version == self.version and newest.now == now:
            if not self._changed:
                return newest
        self._newest = self._made(now)
        return self._newest

    def _made(self, now: Instant) -> World:
        for name in self._changed:
            self._copies[name] = dict(getattr(self, name))
        self._changed.clear()
        of = self._copies
        return World(
            version=self.version, now=now, jobs=of["jobs"], ended=of["ended"], nodes=of["nodes"],
            runs=of["runs"], rentals=of["rentals"], accounts=of["accounts"],
            durations=of["durations"], peaks=of["peaks"], use=of["uses"], budgets=of["budgets"],
            offers=(), sightings=_NOTHING_SEEN,
        )  # fmt: skip

    # -- putting things in; the same thing twice is fine -----------------------------------

    def put_job(self, job: Job) -> None:
        """Set a job; one that ended is remembered only while a live job waits for it."""
        was = self.jobs.get(job.id)
        if job.ended:
            if was is not None:
                del self.jobs[job.id]
                self._changed.add("jobs")
                self._stop_needing(was)
            self._put_ended(job.id, job.state)
            return
        self.jobs[job.id] = job
        self._changed.add("jobs")
        self._lacks.jobs.discard(job.id)
        if was is None:
            self._start_needing(job)
        elif was.run != job.run:  # the next night has taken it over
            self._need_payer(job.run)
            self._drop_payer(was.run)

    def put_rental(self, rental: Rental) -> None:
        """Set a rental; a returned one is dropped."""
        was = self.rentals.pop(rental.id, None)
        self._changed.add("rentals")
        is_open = rental.state is not RentalState.RETURNED
        if is_open:
            self.rentals[rental.id] = rental
        if is_open and was is None:
            self._need_payer(rental.payer)
        elif not is_open and was is not None:
            self._drop_payer(was.payer)

    def put_run(self, run: Run) -> None:
        """Set a run; one with nothing alive is not kept, but for a night that is to be closed."""
        if run.id in self._payers or _is_open_night(run):
            self.runs[run.id] = run
            self._lacks.runs.discard(run.id)
            self._changed.add("runs")
        elif self.runs.pop(run.id, None) is not None:
            self._changed.add("runs")

    def put_account(self, account: Account) -> None:
        """Set an account; one with nothing alive and nothing reserved is not kept.

        A project's is while it is of its newest month.
        """
        payer = account.payer
        self._changed.add("accounts")
        if self._is_newest_month(payer) or payer in self._payers or account.reserved:
            self.accounts[payer] = account
            self._lacks.accounts.discard(payer)
        else:
            self.accounts.pop(payer, None)

    def _is_newest_month(self, payer: str) -> bool:
        """Say whether an account is its project's newest; the one before is let go of."""
        found = project_and_month(payer)
        if found is None:
            return False
        newest = self._months.get(found[0], "")
        if payer < newest:
            return False
        self._months[found[0]] = payer
        before = self.accounts.get(newest)
        if payer != newest and before is not None and not before.reserved:
            del self.accounts[newest]
        return True

    def put_node(self, node: Node) -> None:
        """Set a node; a removed one is dropped."""
        if node.state is NodeState.REMOVED:
            self.nodes.pop(node.id, None)
        else:
            self.nodes[node.id] = node
        self._changed.add("nodes")

    def put_history(self, family: Family, history: History) -> None:
        """Set what is known of a family."""
        if history.run_times and history.run_times != self.durations.get(family):
            self.durations[family] = history.run_times
            self._changed.add("durations")
        if history.peaks:
            self.peaks[family] = history.peaks
            self._changed.add("peaks")

    def history(self, family: Family) -> History | None:
        """Return what is known of a family."""
        found = History(self.durations.get(family, ()), self.peaks.get(family, ()))
        return found if any(found) else None

    def put_use(self, project: str, use: Use) -> None:
        """Set what a project has used."""
        self.uses[project] = use
        self._changed.add("uses")

    def put_budget(self, budget: Budget) -> None:
        """Set a project's budget; one that was lifted is dropped."""
        if budget.month is None:
            self.budgets.pop(budget.project, None)
        else:
            self.budgets[budget.project] = budget
        self._changed.add("budgets")

    def complete(self, past: Past) -> None:
        """Look up what the living depend on and nobody has put here."""
        lacks, self._lacks = self._lacks, Named()
        if not (lacks.jobs or lacks.runs or lacks.accounts):
            return
        past.fetch(lacks)
        for job in (past.job(job_id) for job_id in sorted(lacks.jobs)):
            if job is not None and job.ended:
                self._put_ended(job.id, job.state)
        for run in (past.run(run_id) for run_id in sorted(lacks.runs)):
            if run is not None:
                self.put_run(run)
        for account in (past.account(payer) for payer in sorted(lacks.accounts)):
            if account is not None:
                self.put_account(account)

    # -- what the living depend on ---------------------------------------------------------

    def _put_ended(self, job_id: str, state: JobState) -> None:
        if job_id in self._waited_for:
            self.ended[job_id] = state
            self._changed.add("ended")
            self._lacks.jobs.discard(job_id)

    def _start_needing(self, job: Job) -> None:
        self._need_payer(job.run)
        for other in job.after:
            self._waited_for[other] += 1
            if self._waited_for[other] == 1 and other not in self.jobs:
                self._lacks.jobs.add(other)

    def _stop_needing(self, job: Job) -> None:
        self._drop_payer(job.run)
        for other in job.after:
            self._waited_for[other] -= 1
            if not self._waited_for[other]:
                del self._waited_for[other]
                self._lacks.jobs.discard(other)
                if self.ended.pop(other, None) is not None:
                    self._changed.add("ended")

    def _need_payer(self, payer: str) -> None:
        self._payers[payer] += 1
        if self._payers[payer] == 1:
            self._lacks.runs.add(payer)
            self._lacks.accounts.add(payer)

    def _drop_payer(self, payer: str) -> None:
        self._payers[payer] -= 1
        if self._payers[payer]:
            return
        del self._payers[payer]
        self._lacks.runs.discard(payer)
        self._lacks.accounts.discard(payer)
        run = self.runs.get(payer)
        if run is not None and not _is_open_night(run):
            del self.runs[payer]
            self._changed.add("runs")
        account = self.accounts.get(payer)
        if account is not None and not account.reserved:
            del self.accounts[payer]
            self._changed.add("accounts")


def _is_open_night(run: Run) -> bool:
    return run.night is not None and run.night.closed_at is None


_NOTHING_SEEN: Mapping[str, Sighting] = {}
_IN_A_WORLD = (
    "jobs", "ended", "nodes", "runs", "rentals", "accounts", "durations", "peaks", "uses",
    "budgets",
)  # fmt: skip


class Archive:
    """Everything that there ever was, in memory: the rows of the memory store."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.runs: dict[str, Run] = {}
        self.nodes: dict[str, Node] = {}
        self.rentals: dict[str, Rental] = {}
        self.accounts: dict[str, Account] = {}
        self.positions: dict[str, int] = {}
        self.families: dict[Family, History] = {}
        self.uses: dict[str, Use] = {}
        self.budgets: dict[str, Budget] = {}
        self.notices: dict[str, Notice] = {}

    def keep(self, draft: Draft) -> None:
        """Store what a draft leaves."""
        self.jobs.update(draft.jobs.after)
        self.runs.update(draft.runs.after)
        self.nodes.update(draft.nodes.after)
        self.rentals.update(draft.rentals.after)
        self.accounts.update(draft.accounts.after)
        self.positions.update(draft.positions.after)
        self.families.update(draft.families.after)
        self.uses.update(draft.uses.after)
        self.budgets.update(draft.budgets.after)
        for notice in draft.notices.after.values():
            self.notices.pop(notice.id, None)  # what was changed last stands last
            self.notices[notice.id] = notice

    def fetch(self, named: Named) -> None:
        """See Rows; everything is here already."""

    def job(self, job: str) -> Job | None:
        """See Rows."""
        return self.jobs.get(job)

    def run(self, run: str) -> Run | None:
        """See Rows."""
        return self.runs.get(run)

    def node(self, node: str) -> Node | None:
        """See Rows."""
        return self.nodes.get(node)

    def rental(self, rental: str) -> Rental | None:
        """See Rows."""
        return self.rentals.get(rental)

    def account(self, payer: str) -> Account | None:
        """See Rows."""
        return self.accounts.get(payer)

    def position(self, node: str) -> int | None:
        """See Rows."""
        return self.positions.get(node)

    def history(self, family: Family) -> History | None:
        """See Rows."""
        return self.families.get(family)

    def use(self, project: str) -> Use | None:
        """See Rows."""
        return self.uses.get(project)

    def budget(self, project: str) -> Budget | None:
        """See Rows."""
        return self.budgets.get(project)

    def notice(self, notice: str) -> Notice | None:
        """See Rows."""
        return self.notices.get(notice)


def world_after(events: Iterable[tuple[int, Event]], version: int, now: Instant) -> World:
    """Return the world that numbered events lead to, from nothing."""
    archive, state = Archive(), State()
    draft = Draft(archive)
    for seq, event in events:
        draft.fold(seq, event)
    archive.keep(draft)
    state.take(draft, version)
    return state.world(now)
