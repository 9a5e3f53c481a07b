"""An agent's duty towards its end: heartbeats, leaving, and jobs over before its lease."""

from orders import KEY, Told, an_exit, leave, of, posted, start, stop

from cloudwhale.agent import seen
from cloudwhale.agent.actions import Close, Kill, Leave, Signal
from cloudwhale.agent.duty import HEARTBEAT_S, IDLE_S
from cloudwhale.mailbox.documents import Heartbeat

# -- leaving and heartbeats ------------------------------------------------------------------


def test_an_agent_beats_every_ten_seconds_unless_it_has_said_something() -> None:
    agent = Told()
    beats = agent.pass_(95.0)
    assert [type(report) for report in posted(beats)] == [Heartbeat] * 9
    agent.running()
    assert posted(agent.pass_(HEARTBEAT_S - 0.1)) == []
    assert len(posted(agent.pass_(0.2))) == 1


def test_an_agent_leaves_as_ordered_once_nothing_runs() -> None:
    agent = Told().running()
    agent.tell(leave())
    assert of(Leave, agent.pass_(100.0)) == []
    agent.tell(seen.Over(KEY, an_exit()), seen.Published(KEY, None))
    assert of(Leave, agent.pass_(1.0)) == [Leave()]
    assert agent.pass_(100.0) == [], "it leaves once, and says nothing more"


def test_an_order_to_start_takes_back_an_earlier_one_to_leave() -> None:
    agent = Told(leave(), start("next"))
    agent.tell(seen.Tick())
    assert of(Leave, agent.done) == []
    assert agent.state.leaving is False


def test_a_missed_order_to_leave_is_not_obeyed() -> None:
    agent = Told(seen.Ordered(leave().order, missed=True))
    assert of(Leave, agent.pass_(30.0)) == []


def test_an_order_to_leave_of_an_older_controller_is_not_obeyed() -> None:
    agent = Told(start(fence=4), stop(fence=4), leave(fence=3))
    assert of(Leave, agent.pass_(30.0)) == []


def test_an_agent_that_is_told_to_go_stops_everything_with_less_grace() -> None:
    agent = Told(start("waits")).running()
    actions = agent.tell(seen.LeaveAsked(20.0))
    assert [close.report.job for close in of(Close, actions)] == ["waits"]
    [signal] = of(Signal, actions)
    assert (signal.wish.signal, signal.wish.grace_s) == ("SIGTERM", 20.0)
    [close] = of(Close, agent.tell(start("late")))
    assert (close.report.how, close.report.says) == (
        "start-failed",
        "this machine's agent is leaving",
    )
    agent.tell(seen.Over(KEY, an_exit(143)), seen.Published(KEY, None))
    assert of(Leave, agent.pass_(0.0)) == [Leave()]


def test_an_agent_that_goes_does_not_wait_for_a_store_that_takes_nothing() -> None:
    agent = Told().running()
    agent.tell(seen.LeaveAsked(20.0), seen.Over(KEY, an_exit(143)))
    agent.tell(seen.PublishFailed(KEY, "gone"))
    assert of(Leave, agent.pass_(19.0)) == []
    assert of(Leave, agent.pass_(1.0)) == [Leave()]


def test_what_is_saved_last_has_time_to_be_stored_before_an_agent_goes() -> None:
    agent = Told().running()
    agent.tell(seen.LeaveAsked(15.0, 7.0))
    agent.pass_(15.0)
    agent.tell(seen.Over(KEY, an_exit(137)))
    assert of(Leave, agent.pass_(6.0)) == [], "its last checkpoint is on its way"
    agent.tell(seen.Published(KEY, None))
    assert of(Leave, agent.pass_(0.0)) == [Leave()]


def test_what_is_whole_already_is_stored_as_soon_as_an_agent_is_told_to_go() -> None:
    agent = Told().running()
    agent.tell(seen.LeaveAsked(15.0, 7.0))
    assert agent.state.attempts[KEY].publish_at == agent.now, "while the job still saves"


def test_an_agent_whose_starter_is_gone_leaves_a_minute_after_its_last_job() -> None:
    agent = Told().running()
    agent.tell(seen.Orphaned())
    assert of(Leave, agent.pass_(500.0)) == []
    agent.tell(seen.Over(KEY, an_exit()), seen.Published(KEY, None))
    assert of(Leave, agent.pass_(IDLE_S - 1.0)) == []
    assert of(Leave, agent.pass_(2.0)) == [Leave()]


def test_an_agent_with_a_starter_stays() -> None:
    assert of(Leave, Told().pass_(10 * IDLE_S)) == []


# -- the store -------------------------------------------------------------------------------


def test_jobs_are_over_before_the_lease_of_a_silent_store_ends() -> None:
    agent = Told().running()
    agent.now = 50.0
    agent.tell(seen.StoreFailed(since=10.0))
    quiet = agent.pass_(510.0)
    assert agent.now == 560.0
    assert of(Signal, quiet) == []
    [signal] = of(Signal, agent.pass_(11.0))
    assert signal.wish.why.startswith("the store was silent for 56")
    kills = of(Kill, agent.pass_(609.0 - agent.now))
    assert [kill.hard for kill in kills] == [False, True], "even a hung shim is dead by 610"


def test_a_store_that_works_again_in_time_stops_nothing() -> None:
    agent = Told().running()
    agent.tell(seen.StoreFailed(since=0.0))
    agent.pass_(500.0)
    agent.tell(seen.StoreWorks())
    assert of(Signal, agent.pass_(2000.0)) == []


def test_a_lease_shorter_than_the_grace_still_leaves_time_to_kill() -> None:
    agent = Told(lease_s=8.0).running()
    agent.tell(seen.StoreFailed(since=0.0))
    [signal] = of(Signal, agent.pass_(2.1))
    assert signal.wish.grace_s == 4.0
    assert of(Kill, agent.pass_(4.0)) == [Kill(KEY)]
