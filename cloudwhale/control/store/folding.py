"""What events change: the only place where an event becomes state, for every store."""

from collections.abc import Callable
from typing import Generic, TypeVar

from cloudwhale.control.store.naming import payments
from cloudwhale.control.store.past import Family as Family
from cloudwhale.control.store.past import Named as Named
from cloudwhale.control.store.past import Past as Past
from cloudwhale.control.store.past import Rows as Rows
from cloudwhale.model import event as e
from cloudwhale.model.budget import Budget
from cloudwhale.model.cost import CostLine
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.notice import Notice, after
from cloudwhale.model.peak import History
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.model.world import Account, Use
from cloudwhale.planning import (
    booting,
    bringing,
    cached,
    costing,
    kept,
    ledger,
    lifecycle,
    occupying,
    payers,
    sizing,
    use,
)
from cloudwhale.planning.noticing import POSITION
from cloudwhale.spi.errors import IllegalTransition

RUN_TIMES_KEPT = 20  # a median of twenty is steady, and small enough to travel in every world

K = TypeVar("K")
V = TypeVar("V")


class Changes(Generic[K, V]):
    """Things of one kind as the events leave them, over the rows as they were."""

    def __init__(self, find: Callable[[K], V | None]) -> None:
        self._find = find
        self.after: dict[K, V] = {}
        self.new: set[K] = set()
        """Those that had no row before."""

    def get(self, key: K) -> V | None:
        """Return a thing as it is after the events so far."""
        return self.after[key] if key in self.after else self._find(key)

    def put(self, key: K, value: V) -> None:
        """Set a thing."""
        if key not in self.after and self._find(key) is None:
            self.new.add(key)
        self.after[key] = value


class Draft:
    """What some events change; nothing is stored and no state touched until all were legal."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.jobs: Changes[str, Job] = Changes(rows.job)
        self.runs: Changes[str, Run] = Changes(rows.run)
        self.nodes: Changes[str, Node] = Changes(rows.node)
        self.rentals: Changes[str, Rental] = Changes(rows.rental)
        self.accounts: Changes[str, Account] = Changes(rows.account)
        self.positions: Changes[str, int] = Changes(rows.position)
        self.families: Changes[Family, History] = Changes(rows.history)
        self.uses: Changes[str, Use] = Changes(rows.use)
        self.budgets: Changes[str, Budget] = Changes(rows.budget)
        self.notices: Changes[str, Notice] = Changes(rows.notice)
        self.submitted: dict[str, int] = {}
        """The number of the event that submitted a new job, by job."""
        self.opened: dict[str, int] = {}
        """The number of the event that opened a new run, by run."""
        self.lines: dict[int, CostLine] = {}
        """What each charge was for, by the number of its event."""

    def fold(self, seq: int, event: e.Event) -> None:
        """Work one event in; raise IllegalTransition when the state cannot meet it."""
        match event:
            case e.Submitted():
                self._submit(seq, event)
            case e.OfJob():
                self._move(event)
            case e.OfNode() | e.NodeJoined() | e.Read():
                self._fold_node(event)
            case e.RunOpened():
                self._open(seq, event)
            case e.NightClosed():
                self._close(event)
            case e.RentalChanged() | e.BootTold() | e.Brought():
                self._fold_rental(event)
            case e.BudgetSet() | e.RunBudgetSet():
                self._bound(event)
            case e.Reserved() | e.Charged() | e.Released():
                self._pay(seq, event)
            case e.Noticed() | e.Notified() | e.Noted() | e.StoreUsed():
                self._tell(event)

    # -- as a Past: what the state needs and does not have -----------------------------------

    def fetch(self, named: Named) -> None:
        """See Past."""
        self._rows.fetch(named)

    def job(self, job: str) -> Job | None:
        """See Past."""
        return self.jobs.get(job)

    def run(self, run: str) -> Run | None:
        """See Past."""
        return self.runs.get(run)

    def account(self, payer: str) -> Account | None:
        """See Past."""
        return self.accounts.get(payer)

    # -- jobs ----------------------------------------------------------------------------

    def _submit(self, seq: int, event: e.Submitted) -> None:
        if self.jobs.get(event.job) is not None:
            raise IllegalTransition(f"job {event.job} was submitted already")
        if event.first.id != event.job or event.first.state is not JobState.PENDING:
            raise IllegalTransition(
                f"job {event.job} cannot begin as {event.first.id}, {event.first.state}"
            )
        self.jobs.put(event.job, event.first)
        self.submitted[event.job] = seq

    def _move(self, event: e.OfJob) -> None:
        old = self.jobs.get(event.job)
        if old is None:
            raise IllegalTransition(f"{type(event).__name__} of job {event.job}: nobody knows it")
        new = lifecycle.apply(old, event)
        if new is old:
            self._let_go(old, event)
            return
        begins = old.started_at is None and new.started_at is not None
        if new.checkpoint is not old.checkpoint or (begins and new.checkpoint is None):
            new = self._saved(new)
        self.jobs.put(new.id, new)
        if old.state in HOLDS_A_PLACE and new.state not in HOLDS_A_PLACE:
            self._leave_place(old, new, event)
        if old.started_at is None and new.started_at is not None:
            self._leave_behind(new)
        if new.run_s > old.run_s:
            self._count_use(old, new.run_s - old.run_s, event.at)
        self._learn(old, new, event)

    def _learn(self, old: Job, new: Job, event: e.OfJob) -> None:
        """Remember how long a job of a family took, and what an attempt of it used."""
        before = self.families.get(new.family) or History()
        times, peaks = before
        if new.state is JobState.COMPLETED:
            times = (*times, new.run_s)[-RUN_TIMES_KEPT:]
        if isinstance(event, e.Leaves) and old.placement is not None:
            peak = sizing.peak_of(old, event, self.nodes.get(old.placement.node))
            peaks = peaks if peak is None else sizing.with_newest(peaks, peak)
        if (times, peaks) != before:
            self.families.put(new.family, History(times, peaks))

    def _count_use(self, ended: Job, ran_s: Seconds, at: Instant) -> None:
        """Add an attempt that has ended, as it was before its end, to what its project has used."""
        node = None if ended.placement is None else self.nodes.get(ended.placement.node)
        device_s = ran_s * use.rate(ended, node)
        if device_s > 0:
            project = ended.spec.project
            self.uses.put(project, use.after(self.uses.get(project), device_s, at))

    def _saved(self, job: Job) -> Job:
        place = job.placement
        there = None if place is None else self.rentals.get(place.node)
        return bringing.saved_there(job, there)

    def _bring(self, event: e.Brought) -> None:
        """A checkpoint lies where the job goes on; what that costs is paid with the machine."""
        rental, job = self.rentals.get(event.rental), self.jobs.get(event.job)
        if rental is not None and rental.state is not RentalState.RETURNED:
            self.rentals.put(rental.id, bringing.brought(rental, event))
        if job is not None and not job.ended and bringing.is_of(job, event):
            self.jobs.put(job.id, bringing.saved_there(job, rental))

    def _leave_place(self, old: Job, new: Job, event: e.OfJob) -> None:
        """Remember how long a job has held its place on a rented machine: so its cost is split."""
        for name in () if old.placement is None else old.placement.nodes:
            self._leave_node(name, old, new, event)

    def _leave_node(self, name: str, old: Job, new: Job, event: e.OfJob) -> None:
        rental = self.rentals.get(name)
        if rental is None or rental.state is RentalState.RETURNED:
            return
        now = occupying.left(old, new, rental, event)
        if new.state is JobState.FAILED:
            now = kept.kept_for(now, new, event.at)
        self.rentals.put(rental.id, now)

    def _let_go(self, ended: Job, event: e.OfJob) -> None:
        """Who cancels a job that has failed wants its machine no longer."""
        place = ended.placement
        if isinstance(event, e.CancelAsked) and place is not None:
            for name in place.nodes:
                rental = self.rentals.get(name)
                if rental is not None and rental.kept_for == ended.id:
                    self.rentals.put(rental.id, kept.let_go(rental, ended.id))

    def _leave_behind(self, started: Job) -> None:
        """Remember on a job's node what the next one like it will find there."""
        for name in () if started.placement is None else started.placement.nodes:
            self._leave_on(name, started)

    def _leave_on(self, name: str, started: Job) -> None:
        left, node = cached.left_by(started.spec), self.nodes.get(name)
        if node is None or not left or node.state is NodeState.REMOVED:
            return
        now_there = cached.with_newest(node.cached, left)
        if now_there != node.cached:
            self.nodes.put(node.id, node.but(cached=now_there))

    # -- runs and money ------------------------------------------------------------------

    def _open(self, seq: int, event: e.RunOpened) -> None:
        run = event.run
        if self.runs.get(run.id) is not None:
            raise IllegalTransition(f"run {run.id} was opened already")
        self.runs.put(run.id, run)
        self.opened[run.id] = seq
        account = self.accounts.get(run.id) or Account(payer=run.id)
        self.accounts.put(run.id, account.but(limit=run.budget, soft=run.soft_share))
        for job in (self.jobs.get(name) for name in run.night.carried) if run.night else ():
            # Who has ended meanwhile, or runs, stays where it is.
            if job is not None and not job.ended and job.state not in HOLDS_A_PLACE:
                self.jobs.put(job.id, job.but(run=run.id))

    def _close(self, event: e.NightClosed) -> None:
        run = self.runs.get(event.run)
        night = None if run is None else run.night
        if run is None or night is None or night.closed_at is not None:
            raise IllegalTransition(f"{event.run} is no night that could be closed")
        self.runs.put(run.id, run.but(night=night.but(closed_at=event.at)))

    def _bound(self, event: e.BudgetSet | e.RunBudgetSet) -> None:
        if isinstance(event, e.BudgetSet):
            self._bound_project(event)
            return
        run = self.runs.get(event.run)
        if run is None:
            raise IllegalTransition(f"nobody knows run {event.run}")
        self.runs.put(run.id, run.but(budget=event.limit))
        self.accounts.put(run.id, self._account(run.id).but(limit=event.limit))

    def _bound_project(self, event: e.BudgetSet) -> None:
        """A budget holds for its month and those that follow; months before keep what they had."""
        budget = event.budget
        self.budgets.put(budget.project, budget)
        month = payers.month_of(event.at)
        now = payers.account_name(budget.project, month)
        self.accounts.put(now, payers.bounded(self._account(now), budget))
        # There is one already when another host's clock is ahead.
        then = payers.account_name(budget.project, payers.month_after(month))
        following = self.accounts.get(then)
        if following is not None:
            self.accounts.put(then, payers.bounded(following, budget))

    def _pay(self, seq: int, event: e.Reserved | e.Charged | e.Released) -> None:
        try:
            for payer, amount in payments(event).items():
                account = ledger.moved(self._account(payer), event.kind, amount)
                self.accounts.put(payer, account)
        except ValueError as error:
            raise IllegalTransition(str(error)) from error
        if isinstance(event, e.Charged):
            self._charge(seq, event)

    def _charge(self, seq: int, event: e.Charged) -> None:
        job = self.jobs.get(event.job) if event.job else None
        if job is not None and not job.ended:
            self.jobs.put(job.id, job.but(spent=MicroUsd(job.spent + event.amount)))
        rental, run = self.rentals.get(event.rental), self.runs.get(event.payer)
        self.lines[seq] = costing.of_charge(event, rental, job, run)

    def _account(self, payer: str) -> Account:
        found = self.accounts.get(payer)
        if found is not None:
            return found
        whose = payers.project_and_month(payer)
        return payers.opened(payer, None if whose is None else self.budgets.get(whose[0]))

    def _fold_rental(self, event: e.RentalChanged | e.BootTold | e.Brought) -> None:
        match event:
            case e.RentalChanged():
                self._move_rental(event)
            case e.BootTold():
                self._boot(event)
            case e.Brought():
                self._bring(event)

    def _move_rental(self, event: e.RentalChanged) -> None:
        old = self.rentals.get(event.rental.id)
        new = lifecycle.moved(old, event.rental)
        # Who decides or reports what becomes of a machine may not know yet who has left it.
        if old is not None:
            new = kept.still_kept(old, occupying.as_held(old, new))
            new = booting.moved(old, new, event.at)
        self.rentals.put(new.id, new)

    def _boot(self, event: e.BootTold) -> None:
        """Take in how far a boot is; nothing once the machine's agent is there, or it goes back."""
        rental = self.rentals.get(event.rental)
        if rental is None:
            raise IllegalTransition(f"nobody knows rental {event.rental}")
        node = None if rental.node is None else self.nodes.get(rental.node)
        new = booting.told(rental, node, event)
        if new is not rental:
            self.rentals.put(new.id, new)

    # -- notices -------------------------------------------------------------------------

    def _tell(self, event: e.Noticed | e.Notified | e.Noted | e.StoreUsed) -> None:
        """Keep what people are to be told, each once for ever, and what became of it.

        What is noted is worth telling, and changes no state.
        """
        if isinstance(event, e.Noticed):
            self.positions.put(POSITION, max(event.to, self.positions.get(POSITION) or 0))
            for notice in event.notices:
                if self.notices.get(notice.id) is None:
                    self.notices.put(notice.id, notice)
        elif isinstance(event, e.Notified):
            for known in filter(None, map(self.notices.get, event.notices)):
                self.notices.put(known.id, after(known, event))

    # -- nodes ---------------------------------------------------------------------------

    def _fold_node(self, event: e.NodeJoined | e.OfNode | e.Read) -> None:
        match event:
            case e.NodeJoined():
                self._join(event)
            case e.OfNode():
                self._change(event)
            case e.Read():
                if event.number > (self.positions.get(event.node) or 0):
                    self.positions.put(event.node, event.number)

    def _join(self, event: e.NodeJoined) -> None:
        """What the agent says replaces what was known; what jobs left there, it does not know."""
        node, before = event.node, self.nodes.get(event.node.id)
        if node.joined_at is None and node.state is not NodeState.EXPECTED:
            node = node.but(joined_at=event.at)
        if before is not None and before.state is not NodeState.REMOVED:
            node = node.but(cached=cached.with_newest(before.cached, node.cached))
        self.nodes.put(node.id, node)

    def _change(self, event: e.OfNode) -> None:
        node = self.nodes.get(event.node)
        if node is None:
            raise IllegalTransition(f"nobody knows node {event.node}")
        new = _after(node, event)
        if new is not node:
            self.nodes.put(node.id, new)


def _after(node: Node, event: e.OfNode) -> Node:
    """Return a known node after an event; a removed one swallows what is said of it late."""
    if node.state is NodeState.REMOVED:
        return node
    match event:
        case e.NodeLost() if node.state is not NodeState.LOST:
            return node.but(state=NodeState.LOST, lost_at=event.at)
        case e.NodeDrained():
            # A lost node stays lost: draining would say that its agent is still heard.
            lost = node.state is NodeState.LOST
            return node.but(drained=True, state=node.state if lost else NodeState.DRAINING)
        case e.NodeResumed() if node.state is NodeState.DRAINING:
            # One whose agent was never heard is not ready, only expected again.
            heard = node.joined_at is not None
            state = NodeState.READY if heard else NodeState.EXPECTED
            return node.but(drained=False, state=state)
        case e.NodeResumed():
            return node.but(drained=False)
        case e.NodeRemoved():
            return node.but(state=NodeState.REMOVED)
        case _:
            return node  # it is so already
