"""Makers of orders and of what an agent sees, and a duty that is told one thing after another."""

from typing import Any, TypeVar

from cloudwhale.agent import seen
from cloudwhale.agent.actions import Action, Post
from cloudwhale.agent.duty import duty, wakes_at
from cloudwhale.agent.state import AgentState
from cloudwhale.mailbox.documents import AnyReport, LeaveOrder, StartOrder, StopOrder
from cloudwhale.model.job import Checkpoint, CheckpointRule
from cloudwhale.model.node import Facts
from cloudwhale.model.units import Instant

KEY = ("job", 1)
FACTS = Facts(cpu=2.0, memory_gib=8.0, disk_gib=50.0)
RULE = CheckpointRule(every_s=60.0, grace_s=30.0, keep=2)

T = TypeVar("T")


def start(job: str = "job", attempt: int = 1, **fields: Any) -> seen.Ordered:
    """Make the arrival of an order to start."""
    order = StartOrder(
        **{
            "at": 0.0, "fence": 1, "request_id": f"start-{job}-{attempt}", "job": job,
            "attempt": attempt, "project": "p", "name": job, "command": "true", "cpu": 1.0,
            "checkpoint": RULE, **fields,
        }
    )  # fmt: skip
    return seen.Ordered(order)


def stop(job: str = "job", attempt: int = 1, **fields: Any) -> seen.Ordered:
    """Make the arrival of an order to stop."""
    order = StopOrder(
        **{
            "at": 0.0, "fence": 1, "request_id": f"stop-{job}-{attempt}", "job": job,
            "attempt": attempt, "grace_s": 30.0, **fields,
        }
    )  # fmt: skip
    return seen.Ordered(order)


def leave(fence: int = 1) -> seen.Ordered:
    """Make the arrival of an order to leave."""
    return seen.Ordered(LeaveOrder(at=0.0, fence=fence, request_id="leave"))


def an_exit(code: int | None = 0, **fields: Any) -> seen.ExitRecord:
    """Make an exit record of a process that ran from 0 to 100."""
    return seen.ExitRecord(
        **{"how": "exited", "code": code, "ended_at": 100.0, "ran_s": 100.0} | fields
    )


def a_checkpoint(seq: int = 1, saved_at: Instant = 50.0) -> Checkpoint:
    """Make a published checkpoint."""
    return Checkpoint(
        attempt=1, seq=seq, name=f"step-{seq}", size_bytes=9, saved_at=saved_at, manifest=f"m{seq}"
    )


class Told:
    """An agent's state, and all that its duty ever wanted."""

    def __init__(self, *events: seen.Seen, lease_s: float = 600.0) -> None:
        self.state = AgentState("host", "agent-1", lease_s=lease_s)
        self.now: Instant = 0.0
        self.done: list[Action] = []
        self.tell(seen.Woke(FACTS, "key"))
        self.tell(*events)

    def tell(self, *events: seen.Seen) -> list[Action]:
        """Tell events at this moment; return what the duty wants done now."""
        wanted: list[Action] = []
        for event in events:
            self.state, todo = duty(self.state, event, self.now)
            wanted += todo
        self.done += wanted
        return wanted

    def pass_(self, seconds: float) -> list[Action]:
        """Let time pass, with a tick whenever the duty asks for one."""
        end, wanted = self.now + seconds, list[Action]()
        while (at := wakes_at(self.state)) <= end:
            self.now = max(self.now, at)
            wanted += self.tell(seen.Tick())
        self.now = end
        return wanted + self.tell(seen.Tick())

    def running(self, **fields: Any) -> "Told":
        """Start a job and let it begin now."""
        order = start(**fields)
        assert isinstance(order.order, StartOrder)
        key = (order.order.job, order.order.attempt)
        self.tell(order, seen.Prepared(key), seen.Began(key, self.now))
        return self

    def reports(self, kind: type[T]) -> list[T]:
        """Return the reports of a kind that were posted or come with a close."""
        found = [action.report for action in self.done if hasattr(action, "report")]
        return [report for report in found if isinstance(report, kind)]


def of(kind: type[T], actions: list[Action]) -> list[T]:
    """Return the actions of a kind."""
    return [action for action in actions if isinstance(action, kind)]


def posted(actions: list[Action]) -> list[AnyReport]:
    """Return what is posted."""
    return [action.report for action in of(Post, actions)]
