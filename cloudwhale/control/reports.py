"""Turns what an agent said into events, with the job as it is known now."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from cloudwhale.control.gang_reports import gang_told, landed
from cloudwhale.mailbox import documents as d
from cloudwhale.model import event as e
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState
from cloudwhale.model.node import Measured, Node, NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import GiB, Instant
from cloudwhale.model.world import World
from cloudwhale.planning.lifecycle import apply
from cloudwhale.planning.outcome import End, meaning


@dataclass(frozen=True, slots=True)
class Stray:
    """An attempt that reports work although it has ended or counts as lost."""

    node: str
    job: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A rented machine has been told by its provider that it goes, or may go."""

    node: str
    goes_at: Instant | None
    says: str
    stops: bool = True
    """Whether its jobs stop for that now; False: it goes in hours or days, and is told again."""


class Reading:
    """Events from reports, each seen with what the earlier ones of the same breath changed."""

    def __init__(
        self, world: World, now: Instant, was_rented: Callable[[str], bool] = lambda name: False
    ) -> None:
        """`was_rented`: whether a node that is not known is of a machine that was given back."""
        self._was_rented = was_rented
        self._jobs = dict(world.jobs)
        self._nodes = dict(world.nodes)
        self._gone = {
            rental.node for rental in world.rentals.values() if rental.ended_at is not None
        }
        """Rented machines that are no more: what they said last brings none back."""
        self._going = {
            rental.node for rental in world.rentals.values() if rental.interrupted_at is not None
        }
        """Those that their providers take away: no attempt comes back there."""
        self._rented = {
            rental.node: "" if rental.taken is None else rental.taken.provider
            for rental in world.rentals.values()
        }
        """Who has each rented machine: its agent may join before its launch is answered."""
        self._now = now
        self.fence = 0
        """The highest that an agent says to have obeyed."""
        self.strays: list[Stray] = []
        """Attempts that run although nobody counts on them any more."""
        self.strangers: dict[str, str] = {}
        """Agents that report although their nodes are not known, by the node's name."""
        self.said_at: dict[str, Instant] = {}
        """When each node's newest report was written, by its own clock."""
        self.warned: list[Notice] = []
        """Machines that their providers take away, or may, as these have said to them."""
        self.measured: dict[str, Measured] = {}
        """What is used of each node, as its newest heartbeat says."""

    def events(self, node: str, body: bytes) -> tuple[e.Event, ...]:
        """Return the events that one document means; a heartbeat means none."""
        try:
            report = d.REPORTS.validate_json(body)
        except ValidationError as error:
            return (self._noted(node, Code.CANNOT_ACT, f"unreadable report: {error}"),)
        if isinstance(report, d.Joined | d.OrderRefused):
            self.fence = max(self.fence, report.fence)
        self.said_at[node] = report.at
        if isinstance(report, d.Heartbeat) and report.measured is not None:
            self.measured[node] = report.measured
        found = (*self._asked(node, report), *self._meaning(node, report))
        for event in found:
            self._remember(event)
        return found

    @property
    def jobs(self) -> Mapping[str, Job]:
        """Return the jobs as they are after all that was read or learned so far."""
        return self._jobs

    def learn(self, events: Iterable[e.Event]) -> None:
        """Take in what was heard otherwise in the same breath, like the word of a provider."""
        for event in events:
            self._remember(event)

    def missing(self, node: str, first: int, last: int) -> tuple[e.Event, ...]:
        """Return the events of documents that never came although later ones are there.

        What they said of jobs is asked for again.
        """
        many = f"documents {first} to {last} are" if last > first else f"document {first} is"
        says = f"{many} missing in inbox/{node} of the mailbox; what came after is read"
        noted = self._noted(node, Code.MAIL_MISSING, says)
        doubted = [job for job in self._on(node) if _is_ordered(job, node)]
        found: tuple[e.Event, ...] = (noted, *(self._unconfirmed(job, node) for job in doubted))
        for event in found:
            self._remember(event)
        return found

    def _remember(self, event: e.Event) -> None:
        if isinstance(event, e.OfJob) and event.job in self._jobs:
            self._jobs[event.job] = apply(self._jobs[event.job], event)
        elif isinstance(event, e.NodeJoined):
            self._nodes[event.node.id] = event.node
        elif isinstance(event, e.NodeLost):
            self._nodes[event.node] = self._nodes[event.node].but(state=NodeState.LOST)
        elif isinstance(event, e.RentalChanged) and event.rental.interrupted_at is not None:
            self._going.add(event.rental.node)

    def _asked(self, node: str, report: d.AnyReport) -> Iterator[e.Event]:
        """Return what a rented machine's agent has asked of the store, where it says so."""
        if isinstance(report, d.Left | d.AttemptEnded) and report.store and node in self._rented:
            yield e.StoreUsed(at=self._now, node=node, agent=report.agent, use=report.store)

    def _meaning(self, node: str, report: d.AnyReport) -> Iterator[e.Event]:
        if isinstance(report, d.Joined):
            self.strangers.pop(node, None)
            if node in self._gone:
                return
            if node not in self._rented and node not in self._nodes and self._was_rented(node):
                self.strangers[node] = report.agent  # nobody pays for it: it is to end itself
                return
            yield self._joined(node, report)
            yield from self._unnamed(node, report)
            return
        known = self._nodes.get(node)
        if isinstance(report, d.Left):
            yield from self._left(known, report)
            return
        if known is None:
            self.strangers[node] = report.agent
        if known is not None and known.state is NodeState.LOST and node not in self._gone:
            # Whatever it says: it is there. What it runs, it is asked.
            state = NodeState.DRAINING if known.drained else NodeState.READY
            yield e.NodeJoined(at=self._now, node=known.but(state=state))
            yield from (self._unconfirmed(job, node) for job in self._on(node))
        if isinstance(report, d.AttemptReport):
            yield from self._of_attempt(node, report)
        elif isinstance(report, d.Noticed):
            yield self._noted(node, report.code, report.says)
        elif isinstance(report, d.Warned):
            self._warned(node, report)

    def _warned(self, node: str, report: d.Warned) -> None:
        self.warned.append(Notice(node, report.goes_at, report.says, report.stops))
        if report.goes_at is not None and report.stops and node in self._rented:
            self._going.add(node)

    def _joined(self, node: str, report: d.Joined) -> e.NodeJoined:
        joined = joined_node(self._nodes.get(node), node, report, self._now)
        if node in self._rented:
            joined = joined.but(owned=False, provider=self._rented[node])
        return e.NodeJoined(at=self._now, node=joined)

    def _left(self, known: Node | None, report: d.Left) -> Iterator[e.Event]:
        """An agent that comes by itself is not there any more; others are started when needed."""
        if known is None or known.provider or known.agent != report.agent:
            return
        if known.state is NodeState.LOST:
            return
        yield e.NodeLost(at=self._now, node=known.id, silent_s=0.0)
        for job in self._on(known.id):
            if job.state is not JobState.RECOVERING:
                reason = Reason(
                    code=Code.NODE_LOST,
                    says=f"the agent of {known.id} has left and did not say how it ended",
                    change=f"{known.id} joins again, or its silence lasts longer than its lease",
                )
                yield e.AttemptLost(at=self._now, job=job.id, attempt=job.attempt, reason=reason)

    def _unnamed(self, node: str, report: d.Joined) -> Iterator[e.Event]:
        """Doubt the orders of attempts that the agent does not know of, or has ended since.

        An agent that joins for the first time has not read its orders yet.
        """
        known = self._nodes.get(node)
        if known is None or not known.agent:
            return
        for job in self._on(node):
            if _is_ordered(job, node) and (job.id, job.attempt) not in report.attempts:
                yield self._unconfirmed(job, node)

    def _on(self, node: str) -> list[Job]:
        return [
            job
            for job in self._jobs.values()
            if job.state in HOLDS_A_PLACE
            and job.placement is not None
            and node in job.placement.nodes
        ]

    def _unconfirmed(self, job: Job, node: str) -> e.Unconfirmed:
        rank = 0 if job.placement is None else job.placement.rank_on(node) or 0
        return e.Unconfirmed(at=self._now, job=job.id, attempt=job.attempt, rank=rank)

    def _of_attempt(self, node: str, report: d.AttemptReport) -> Iterator[e.Event]:
        job = self._jobs.get(report.job)
        if job is not None and _is_current(job, node, report.attempt):
            yield from self._told(job, node, report)
            if isinstance(report, d.AttemptStarted) and node in self._going:
                yield _lost_again(job, node, self._now)
            return
        if isinstance(report, d.AttemptStarted | d.CheckpointPublished):
            self.strays.append(Stray(node, report.job, report.attempt))
        if job is not None:
            yield self._noted(job.id, Code.STALE_ATTEMPT, _why_stale(job, node, report.attempt))

    def _told(self, job: Job, node: str, report: d.AttemptReport) -> Iterator[e.Event]:
        match report:
            case d.OrderRefused(code=Code.STALE_FENCE):
                # Posted again, by a controller that rose above it.
                yield self._unconfirmed(job, node)
            case d.OrderRefused() if report.code is not Code.START_FAILED:
                yield self._noted(job.id, report.code, report.says)
            case d.Remark():
                yield self._noted(job.id, report.code, report.says)
            case _ if job.ranks and job.placement is not None:
                rank = job.placement.rank_on(node) or 0
                yield from gang_told(job, rank, report, self._now, is_taken=self._is_taken(job))
            case _:
                yield self._told_alone(job, report)

    def _told_alone(self, job: Job, report: d.AttemptReport) -> e.Event:
        at, attempt = self._now, report.attempt
        match report:
            case d.AttemptStarted():
                return e.Started(
                    at=at, job=job.id, attempt=attempt, resumed_from=report.resumed_from
                )
            case d.CheckpointPublished():
                return e.CheckpointSaved(
                    at=at, job=job.id, attempt=attempt, checkpoint=report.checkpoint
                )
            case d.AttemptEnded():
                end = End(
                    attempt, report.how, report.exit_code, report.says, report.unsaved_s,
                    report.ran_s, report.peaks, self._device_gib(job), self._is_taken(job),
                )  # fmt: skip
                if self._was_landed(job, report):
                    return landed(job, end, at)
                return cast(e.Event, meaning(job, end, at))
            case d.OrderRefused(code=Code.START_FAILED):
                end = End(attempt, "start-failed", None, report.says, 0.0)
                return cast(e.Event, meaning(job, end, at))
            case _:
                raise TypeError(f"a report without a meaning: {report!r}")

    def _was_landed(self, job: Job, report: d.AttemptEnded) -> bool:
        """Say whether a rented machine stopped a job by itself, as its lease ends.

        No retry is spent on that. Whoever ended by itself before the signal came has just ended.
        """
        is_rented = job.placement is not None and job.placement.node in self._rented
        was_stopped = job.wish is None and report.how == "stopped"
        return is_rented and was_stopped and not self._is_taken(job)

    def _is_taken(self, job: Job) -> bool:
        """Say whether the machine of a job's attempt is taken away by its provider."""
        return job.placement is not None and not self._going.isdisjoint(job.placement.nodes)

    def _device_gib(self, job: Job) -> GiB | None:
        """Return the nominal memory of the smallest device that a job was given."""
        place = job.placement
        node = None if place is None else self._nodes.get(place.node)
        if node is None or place is None:
            return None
        given = (one.memory_gib for one in node.facts.devices if one.id in place.devices)
        return min(given, default=None)

    def _noted(self, subject: str, code: Code, says: str) -> e.Noted:
        return e.Noted(at=self._now, subject=subject, reason=Reason(code=code, says=says))


def _lost_again(job: Job, node: str, now: Instant) -> e.AttemptLost:
    """An agent may still say that an attempt has started: it ends with its machine all the same."""
    reason = job.reason
    if reason is None or reason.code is not Code.TAKEN_AWAY:
        says = f"{node}, where it has started, is taken away by its provider"
        reason = Reason(code=Code.TAKEN_AWAY, says=says, change="its attempt there has ended")
    return e.AttemptLost(at=now, job=job.id, attempt=job.attempt, reason=reason)


def joined_node(known: Node | None, name: str, report: d.Joined, now: Instant) -> Node:
    """Return a node as its agent describes it; one that nobody knew came by itself."""
    drained = known is not None and (known.drained or known.state is NodeState.DRAINING)
    return Node(
        id=name,
        facts=report.facts,
        state=NodeState.DRAINING if drained else NodeState.READY,
        owned=True if known is None else known.owned,
        provider="" if known is None else known.provider,
        agent=report.agent,
        public_key=report.public_key,
        lease_s=report.lease_s,
        drained=drained,
        joined_at=now,
    )


def _why_stale(job: Job, node: str, attempt: int) -> str:
    if attempt == job.attempt:
        return f"attempt {attempt} on {node} reports, but it has ended or counts as lost"
    return f"attempt {attempt} on {node} reports, but attempt {job.attempt} is the newest"


def _is_current(job: Job, node: str, attempt: int) -> bool:
    if attempt != job.attempt or job.placement is None or node not in job.placement.nodes:
        return False
    return job.state in HOLDS_A_PLACE


def _is_ordered(job: Job, node: str) -> bool:
    """Say whether the order that starts a job on a node is known to be posted."""
    rank = None if job.placement is None else job.placement.rank_on(node)
    return job.ranks[rank].order_posted if job.ranks and rank is not None else job.order_posted
