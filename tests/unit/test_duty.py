"""An agent's duty towards its orders: obeyed once, and only from the newest controller."""

import math

import pytest
from orders import FACTS, KEY, Told, an_exit, leave, of, posted, start, stop

from cloudwhale.agent import seen
from cloudwhale.agent.actions import Close, Kill, Prepare, Repeat, Signal, StartShim
from cloudwhale.agent.duty import duty, wakes_at
from cloudwhale.agent.state import AgentState, Phase
from cloudwhale.mailbox.documents import (
    AttemptEnded,
    AttemptStarted,
    Joined,
    OrderRefused,
    StartOrder,
)
from cloudwhale.model.reason import Code


def _order(event: seen.Ordered) -> StartOrder:
    assert isinstance(event.order, StartOrder)
    return event.order


# -- orders to start -------------------------------------------------------------------------


def test_a_job_is_prepared_started_and_said_to_run() -> None:
    agent = Told()
    assert agent.tell(start()) == [Prepare(_order(start()))]
    assert agent.tell(seen.Prepared(KEY)) == [StartShim(KEY)]
    [report] = posted(agent.tell(seen.Began(KEY, 5.0)))
    assert isinstance(report, AttemptStarted)
    assert report.resumed_from is None


def test_an_order_posted_twice_is_obeyed_once() -> None:
    agent = Told(start())
    assert agent.tell(start()) == []
    agent.tell(seen.Prepared(KEY))
    assert agent.tell(start()) == []
    assert len(of(Prepare, agent.done)) == len(of(StartShim, agent.done)) == 1


def test_a_repeated_order_of_a_running_attempt_says_again_that_it_runs() -> None:
    agent = Told().running()
    [report] = posted(agent.tell(start()))
    assert isinstance(report, AttemptStarted)


def test_a_repeated_order_of_an_ended_attempt_says_again_how_it_ended() -> None:
    agent = Told(start(), stop())
    assert agent.tell(start()) == [Repeat(KEY)]
    assert agent.tell(stop()) == [Repeat(KEY)]


def test_an_order_with_a_lower_fence_is_refused() -> None:
    agent = Told(start("first", fence=7))
    [report] = posted(agent.tell(start("second", fence=6)))
    assert isinstance(report, OrderRefused)
    assert report.code is Code.STALE_FENCE
    assert report.says == "the order is of controller epoch 6, and 7 was seen already"


def test_the_same_and_a_higher_fence_are_obeyed() -> None:
    agent = Told(start("first", fence=7), start("second", fence=7), start("third", fence=8))
    assert [action.order.job for action in of(Prepare, agent.done)] == ["first", "second", "third"]
    assert agent.state.fence == 8


def test_a_stop_with_a_lower_fence_is_refused() -> None:
    agent = Told().running(fence=7)
    [report] = posted(agent.tell(stop(fence=6)))
    assert isinstance(report, OrderRefused)
    assert of(Signal, agent.done) == []


def test_a_fence_seen_before_a_restart_still_counts() -> None:
    agent = Told()
    agent.tell(seen.Woke(FACTS, "key", fence=9))
    assert isinstance(posted(agent.tell(start(fence=8)))[0], OrderRefused)


def test_an_attempt_older_than_the_newest_is_refused() -> None:
    agent = Told(start(attempt=3), stop(attempt=3))
    [report] = posted(agent.tell(start(attempt=2)))
    assert isinstance(report, OrderRefused)
    assert report.code is Code.STALE_ATTEMPT


def test_an_attempt_accepted_before_a_restart_is_not_run_again() -> None:
    agent = Told()
    agent.tell(seen.Woke(FACTS, "key", newest={"job": 4}))
    assert agent.tell(start(attempt=4)) == [Repeat(("job", 4))]
    assert isinstance(posted(agent.tell(start(attempt=3)))[0], OrderRefused)


def test_a_newer_attempt_cannot_start_while_an_older_one_runs() -> None:
    agent = Told().running()
    [close] = of(Close, agent.tell(start(attempt=2)))
    assert (close.report.how, close.report.exit_code) == ("start-failed", None)
    assert close.report.says == "attempt 1 of the job still runs here"
    agent.tell(seen.Over(KEY, an_exit()), seen.Published(KEY, None))
    assert agent.tell(start(attempt=2)) == [Repeat(("job", 2))], "it was answered, so it never runs"
    assert agent.tell(start(attempt=3)) == [Prepare(_order(start(attempt=3)))]


def test_a_job_in_a_container_is_not_run_without_it() -> None:
    [close] = of(Close, Told().tell(start(image="pytorch:2.9")))
    assert close.report.how == "start-failed"
    assert "pytorch:2.9" in close.report.says


@pytest.mark.parametrize("job", ["", "a/b", "..", ".hidden", "a b", "x" * 300, "a\nb"])
def test_a_job_whose_id_cannot_name_a_folder_is_refused(job: str) -> None:
    agent = Told()
    [report] = posted(agent.tell(start(job)))
    assert isinstance(report, OrderRefused)
    assert of(Prepare, agent.done) == []
    assert of(Close, agent.done) == []


def test_an_order_that_cannot_be_read_is_refused_for_the_attempt_that_it_names() -> None:
    agent = Told()
    [report] = posted(agent.tell(seen.Unreadable("order 4 cannot be read", ("job", 2))))
    assert isinstance(report, OrderRefused)
    assert (report.job, report.attempt, report.code) == ("job", 2, Code.START_FAILED)
    assert agent.tell(seen.Unreadable("order 5 cannot be read")) == []


def test_an_order_that_cannot_be_read_changes_nothing_for_an_attempt_that_is_known() -> None:
    agent = Told().running(attempt=2)
    for attempt in (1, 2):
        assert agent.tell(seen.Unreadable("order 4 cannot be read", ("job", attempt))) == []


def test_an_order_that_was_given_to_a_forgotten_agent_is_answered_and_not_obeyed() -> None:
    missed = seen.Ordered(start().order, missed=True)
    agent = Told()
    [close] = of(Close, agent.tell(missed))
    assert close.report.how == "start-failed"
    assert agent.tell(start()) == [Repeat(KEY)]


def test_what_cannot_be_prepared_ends_with_its_reason() -> None:
    for how in ("restore-failed", "start-failed", "disk-full"):
        agent = Told(start())
        [close] = of(Close, agent.tell(seen.CannotStart(KEY, how, "no such file")))
        assert (close.report.how, close.report.exit_code) == (how, None)
        assert close.report.says == "no such file"
        assert agent.state.attempts == {}


# -- orders to stop --------------------------------------------------------------------------


def test_a_stop_before_the_start_ends_the_attempt_at_once() -> None:
    agent = Told(start())
    [close] = of(Close, agent.tell(stop()))
    assert (close.report.how, close.report.exit_code) == ("stopped", None)
    assert agent.tell(seen.Prepared(KEY)) == [], "what was being prepared is not started"


def test_a_stop_of_an_unknown_attempt_says_that_it_is_over_and_stays_so() -> None:
    agent = Told()
    [close] = of(Close, agent.tell(stop(attempt=5)))
    assert (close.report.how, close.report.exit_code) == ("stopped", None)
    assert agent.tell(start(attempt=5)) == [Repeat(("job", 5))]


def test_a_stop_signals_as_the_order_says_then_kills_then_kills_the_shim_too() -> None:
    agent = Told().running()
    actions = agent.tell(stop(signal="SIGUSR1", grace_s=12.0))
    [signal] = of(Signal, actions)
    assert (signal.wish.signal, signal.wish.grace_s) == ("SIGUSR1", 12.0)
    assert of(Kill, agent.pass_(11.9)) == []
    assert of(Kill, agent.pass_(0.2)) == [Kill(KEY)]
    assert of(Kill, agent.pass_(4.8)) == []
    assert of(Kill, agent.pass_(0.3)) == [Kill(KEY, hard=True)]


def test_a_second_stop_changes_nothing() -> None:
    agent = Told().running()
    agent.tell(stop(grace_s=10.0))
    agent.pass_(9.0)
    assert agent.tell(stop(grace_s=10.0)) == []
    assert of(Kill, agent.pass_(1.1)) == [Kill(KEY)]


def test_a_stop_while_the_shim_starts_is_carried_out_when_the_process_runs() -> None:
    agent = Told(start(), seen.Prepared(KEY))
    assert of(Signal, agent.tell(stop())) == []
    assert len(of(Signal, agent.tell(seen.Began(KEY, 0.0)))) == 1


def test_a_stopped_attempt_ends_as_stopped_whatever_its_code() -> None:
    for code in (0, 1, 143):
        agent = Told().running()
        agent.tell(stop(), seen.Over(KEY, an_exit(code)), seen.Published(KEY, None))
        [end] = agent.reports(AttemptEnded)
        assert (end.how, end.exit_code) == ("stopped", code)


def test_a_job_that_had_finished_before_the_stop_reached_it_has_finished() -> None:
    for code, how in ((0, "exited"), (1, "stopped")):
        agent = Told().running()
        exit = an_exit(code, by_itself=True)
        agent.tell(stop(), seen.Over(KEY, exit), seen.Published(KEY, None))
        [end] = agent.reports(AttemptEnded)
        assert (end.how, end.exit_code) == (how, code)


def test_a_stop_that_comes_after_the_end_does_not_change_how_it_ended() -> None:
    agent = Told().running()
    agent.tell(seen.Over(KEY, an_exit(0)), stop(), seen.Published(KEY, None))
    [end] = agent.reports(AttemptEnded)
    assert (end.how, end.exit_code) == ("exited", 0)


# -- ends ------------------------------------------------------------------------------------


def test_an_end_that_is_seen_before_the_beginning_is_told_after_it() -> None:
    agent = Told(start(), seen.Prepared(KEY))
    agent.tell(seen.Over(KEY, an_exit(3)), seen.Published(KEY, None))
    told = [type(report) for report in agent.reports(object)]
    assert told == [Joined, AttemptStarted, AttemptEnded]


def test_a_lost_shim_ends_its_attempt_without_a_code() -> None:
    agent = Told().running()
    agent.tell(seen.Lost(KEY, 42.0, "Killed"), seen.Published(KEY, None))
    [end] = agent.reports(AttemptEnded)
    assert (end.how, end.exit_code, end.ran_s) == ("shim-lost", None, 42.0)
    assert end.says.endswith("(Killed)")


def test_what_is_said_of_an_attempt_that_is_closed_is_ignored() -> None:
    agent = Told(start(), stop())
    for event in (
        seen.Prepared(KEY), seen.Began(KEY, 1.0), seen.Over(KEY, an_exit()), seen.Lost(KEY, 1.0),
        seen.Whole(KEY, "a", 1.0), seen.Published(KEY, None), seen.PublishFailed(KEY, "full"),
    ):  # fmt: skip
        assert agent.tell(event) == []


# -- waking up -------------------------------------------------------------------------------


def test_a_restarted_agent_says_which_attempts_it_adopts_and_that_they_run() -> None:
    runs = seen.Found(_order(start()), began_at=5.0)
    waits = seen.Found(_order(start("waits")))
    state = AgentState("host", "agent-2")
    state, todo = duty(state, seen.Woke(FACTS, "key", (runs, waits)), 100.0)
    joined, started = posted(list(todo))
    assert isinstance(joined, Joined)
    assert joined.attempts == (KEY, ("waits", 1))
    assert isinstance(started, AttemptStarted)
    assert of(Prepare, list(todo)) == [Prepare(_order(start("waits")))]
    assert state.attempts[KEY].phase is Phase.RUNNING


def test_a_stop_that_was_under_way_goes_on_after_a_restart() -> None:
    wish = seen.StopWish("SIGTERM", 30.0, "stopped as ordered")
    found = seen.Found(_order(start()), began_at=5.0, stop=wish)
    agent = Told()
    actions = agent.tell(seen.Woke(FACTS, "key", (found,)))
    assert of(Signal, actions) == [Signal(KEY, wish)]
    assert of(Kill, agent.pass_(31.0)) == [Kill(KEY)]


def test_an_attempt_that_was_stopped_before_it_began_is_closed_after_a_restart() -> None:
    wish = seen.StopWish("SIGTERM", 30.0, "stopped as ordered")
    agent = Told()
    actions = agent.tell(seen.Woke(FACTS, "key", (seen.Found(_order(start()), stop=wish),)))
    [close] = of(Close, actions)
    assert (close.report.how, close.report.exit_code) == ("stopped", None)
    assert of(Prepare, actions) == []


def test_a_duty_never_asks_to_be_woken_for_nothing() -> None:
    agent = Told(start("waits")).running()
    agent.tell(stop(), seen.StoreFailed(0.0), seen.Orphaned(), leave(), seen.Whole(KEY, "a", 1.0))
    ticks = 0
    while agent.now < 2000.0 and not agent.state.left:
        agent.now = max(agent.now, min(wakes_at(agent.state), 2000.0))
        agent.tell(seen.Tick())
        ticks += 1
    assert ticks < 1000
    assert wakes_at(agent.state) is math.inf or not agent.state.left
