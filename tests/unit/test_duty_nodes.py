"""What an agent makes of orders that are about itself: leave, say who you are."""

from orders import FACTS, Told, posted, start, stop

from cloudwhale.agent import seen
from cloudwhale.agent.actions import Leave
from cloudwhale.mailbox.documents import IntroduceOrder, Joined, LeaveOrder


def leave(agent: str) -> seen.Ordered:
    return seen.Ordered(LeaveOrder(at=0.0, fence=1, request_id="leave", agent=agent))


def introduce(fence: int = 1) -> seen.Ordered:
    return seen.Ordered(IntroduceOrder(at=0.0, fence=fence, request_id="introduce"))


def test_an_agent_leaves_when_it_is_meant() -> None:
    for agent in ("", "agent-1"):
        told = Told()
        told.tell(leave(agent))
        assert [type(action) for action in told.pass_(1.0)] == [Leave]


def test_an_order_to_leave_that_meant_its_predecessor_is_no_reason_to_go() -> None:
    told = Told()
    told.tell(leave("agent-0"))
    assert not told.state.leaving
    assert Leave() not in told.pass_(60.0)


def test_an_agent_that_is_asked_who_it_is_says_so_with_what_runs_there() -> None:
    told = Told().running()
    (joined,) = posted(told.tell(introduce()))
    assert isinstance(joined, Joined)
    assert (joined.facts, joined.attempts) == (FACTS, (("job", 1),))


def test_it_says_how_long_its_jobs_run_without_the_store() -> None:
    (joined,) = posted(Told(lease_s=900.0).tell(introduce()))
    assert isinstance(joined, Joined) and joined.lease_s == 900.0


def test_it_says_so_to_a_controller_that_has_forgotten_how_far_it_was() -> None:
    told = Told(start(fence=9), stop(fence=9))
    (joined,) = posted(told.tell(introduce(fence=1)))
    assert isinstance(joined, Joined) and joined.fence == 9
