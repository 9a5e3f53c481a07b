"""What a rented machine does while its lease runs, when nobody is heard, and when it ends."""

import math

from orders import FACTS, KEY, Told, leave, of, posted, start, stop

from cloudwhale.agent import seen
from cloudwhale.agent.actions import Close, KeepTenure, Kill, Leave, Post, Prepare, Publish, Signal
from cloudwhale.agent.duty import duty, wakes_at
from cloudwhale.agent.seen import Tenure
from cloudwhale.agent.state import LEASE_S, AgentState
from cloudwhale.agent.tenure import SKEW_S, begun
from cloudwhale.mailbox import documents as d
from cloudwhale.mailbox.documents import AttemptEnded
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.terms import SAVING_S, WATCHED_S

AWAY_S = 7200.0
GRACE_S = 30.0  # of the jobs that `start` makes
LANDS_AT = AWAY_S - GRACE_S - SAVING_S


def rented(away_s: float = AWAY_S, number: int = 1) -> Told:
    """Make the agent of a machine that was just launched with a lease."""
    return Told(seen.Woke(FACTS, "key", tenure=begun(number, away_s, 0.0)))


def lease(
    number: int = 2, watched_s: float = 900.0, away_s: float = AWAY_S, at: float = 0.0
) -> seen.Ordered:
    """Make the arrival of a lease."""
    return seen.Ordered(
        d.LeaseOrder(
            at=at, fence=1, request_id=f"lease-{number}-{at}", number=number,
            watched_s=watched_s, away_s=away_s,
        )
    )  # fmt: skip


def ended(agent: Told) -> list[AttemptEnded]:
    return agent.reports(AttemptEnded)


def test_a_machine_that_boots_waits_for_its_controller_and_then_ends_itself() -> None:
    agent = rented()
    assert not of(Leave, agent.pass_(WATCHED_S - 1.0))
    assert of(Leave, agent.pass_(1.0)) == [Leave(ends_machine=True)]
    assert math.isinf(wakes_at(agent.state))


def test_a_launch_with_a_short_lease_is_not_watched_for_longer() -> None:
    agent = rented(away_s=300.0)
    assert of(Leave, agent.pass_(300.0 - SAVING_S)) == [Leave(ends_machine=True)]


def test_a_renewed_lease_keeps_an_idle_machine_as_long_as_its_controller_is_heard() -> None:
    agent = rented()
    for _ in range(10):
        assert not of(Leave, agent.pass_(450.0))
        agent.tell(lease(watched_s=900.0, away_s=AWAY_S, at=agent.now))
    assert agent.now == 4500.0
    assert of(Leave, agent.pass_(900.0)) == [Leave(ends_machine=True)]


def test_without_its_controller_a_machine_takes_no_orders_and_finishes_what_it_has() -> None:
    agent = rented().running()
    agent.pass_(WATCHED_S)
    refused = agent.tell(start("late"))
    assert not of(Prepare, refused)
    (end,) = [close.report for close in of(Close, refused)]
    assert (end.job, end.how, end.exit_code) == ("late", "stopped", None)
    assert end.says == "this machine's lease was not renewed in time: it takes no new orders"
    assert KEY in agent.state.attempts
    agent.tell(seen.Over(KEY, seen.ExitRecord("exited", 0, agent.now, by_itself=True)))
    assert of(Publish, agent.done)[-1].last
    done = agent.tell(seen.Published(KEY, None))
    assert [close.report.exit_code for close in of(Close, done)] == [0]
    assert of(Leave, done) == [Leave(ends_machine=True)]


def test_a_controller_that_is_back_gives_orders_again() -> None:
    agent = rented().running()
    agent.pass_(WATCHED_S + 60.0)
    agent.tell(lease(at=agent.now))
    assert of(Prepare, agent.tell(start("next", at=agent.now)))


def test_a_refused_attempt_never_starts_later() -> None:
    agent = rented().running()
    agent.pass_(WATCHED_S)
    agent.tell(start("late", at=agent.now), lease(at=agent.now))
    assert not of(Prepare, agent.tell(start("late", at=agent.now)))
    assert of(Prepare, agent.tell(start("late", attempt=2, at=agent.now)))


def test_jobs_have_landed_when_the_lease_ends_and_the_machine_with_it() -> None:
    agent = rented().running()
    agent.tell(lease(watched_s=AWAY_S))
    assert not of(Signal, agent.pass_(LANDS_AT - 1.0))
    (signal,) = of(Signal, agent.pass_(1.0))
    assert signal.wish.grace_s == GRACE_S
    assert signal.wish.why == f"this machine's lease ends in {GRACE_S + SAVING_S:.0f} s"
    agent.pass_(5.0)
    agent.tell(seen.Over(KEY, seen.ExitRecord("exited", 143, agent.now)))
    agent.tell(seen.Published(KEY, None))
    assert [(end.how, end.says) for end in ended(agent)] == [("stopped", signal.wish.why)]
    assert of(Leave, agent.done) == [Leave(ends_machine=True)]
    assert agent.now == LANDS_AT + 5.0


def test_with_no_time_left_nothing_is_started_although_the_controller_is_heard() -> None:
    agent = rented().running(checkpoint=CheckpointRule(grace_s=0.0))
    agent.tell(lease(watched_s=AWAY_S))
    agent.pass_(LANDS_AT)
    (close,) = of(Close, agent.tell(start("more")))
    assert close.report.says == f"this machine's lease ends in {GRACE_S + SAVING_S:.0f} s"
    assert not agent.state.left


def test_a_lease_that_comes_while_jobs_land_keeps_the_machine() -> None:
    agent = rented().running()
    agent.tell(lease(watched_s=AWAY_S))
    agent.pass_(LANDS_AT + 1.0)
    agent.tell(lease(number=3, watched_s=900.0, away_s=AWAY_S, at=agent.now))
    agent.tell(seen.Over(KEY, seen.ExitRecord("exited", 143, agent.now)))
    agent.tell(seen.Published(KEY, None))
    assert not of(Leave, agent.pass_(60.0))
    assert of(Prepare, agent.tell(start(attempt=2, at=agent.now)))


def test_what_has_not_landed_when_the_lease_ends_is_killed_and_the_machine_ended() -> None:
    agent = rented().running()
    agent.tell(lease(watched_s=AWAY_S))
    agent.pass_(AWAY_S - 0.5)
    assert not agent.state.left
    actions = agent.pass_(0.5)
    assert Kill(KEY, hard=True) in of(Kill, actions)
    assert of(Leave, actions) == [Leave(ends_machine=True)]


def test_jobs_with_more_grace_land_earlier() -> None:
    rule = {"checkpoint": CheckpointRule(grace_s=300.0)}
    agent = rented().running(job="slow", **rule).running(job="quick")
    agent.tell(lease(watched_s=AWAY_S))
    agent.pass_(AWAY_S - 300.0 - SAVING_S)
    assert [one.key[0] for one in of(Signal, agent.done)] == ["slow"]
    agent.pass_(270.0)
    assert [one.key[0] for one in of(Signal, agent.done)] == ["slow", "quick"]


def test_a_later_number_may_shorten_a_lease_and_an_earlier_one_changes_nothing() -> None:
    agent = rented(number=3).running()
    assert agent.tell(lease(number=2, away_s=60.0)) == []
    (kept,) = of(KeepTenure, agent.tell(lease(number=4, watched_s=900.0, away_s=600.0)))
    assert kept.tenure == Tenure(4, 600.0, 600.0)
    assert of(Signal, agent.pass_(600.0 - GRACE_S - SAVING_S))


def test_the_same_number_renews_the_watch_and_never_the_end() -> None:
    agent = rented(number=3)
    agent.pass_(400.0)
    (kept,) = of(KeepTenure, agent.tell(lease(number=3, watched_s=900.0, at=400.0)))
    assert kept.tenure == Tenure(3, 1300.0, AWAY_S)


def test_a_lease_that_lay_long_counts_from_when_it_was_written() -> None:
    agent = rented()
    agent.now = 800.0
    (kept,) = of(KeepTenure, agent.tell(lease(watched_s=900.0, away_s=1000.0, at=200.0)))
    late_s = 600.0 - SKEW_S
    assert kept.tenure == Tenure(2, 800.0 - late_s + 900.0, 800.0 - late_s + 1000.0)


def test_a_clock_that_is_ahead_makes_no_lease_longer() -> None:
    agent = rented()
    (kept,) = of(KeepTenure, agent.tell(lease(at=1e6)))
    assert kept.tenure.away_until == AWAY_S


def test_an_order_to_leave_ends_a_rented_machine_and_an_owned_agent_alone() -> None:
    assert of(Leave, rented().tell(leave(), seen.Tick())) == [Leave(ends_machine=True)]
    assert of(Leave, Told().tell(leave(), seen.Tick())) == [Leave()]


def test_an_agent_that_is_restarted_does_not_end_its_machine() -> None:
    actions = rented().tell(seen.LeaveAsked(20.0), seen.Tick())
    assert of(Leave, actions) == [Leave(ends_machine=False)]


def test_an_owned_machine_has_no_lease_and_takes_none() -> None:
    agent = Told().running()
    assert agent.tell(lease(away_s=10.0)) == []
    agent.pass_(3600.0)
    assert not of(Signal, agent.done) and not of(Leave, agent.done)


def test_a_restarted_agent_holds_to_what_its_predecessor_was_told() -> None:
    state, _ = duty(
        AgentState("host", "agent-2"),
        seen.Woke(FACTS, "key", tenure=Tenure(5, 50.0, 100.0)),
        0.0,
    )
    assert state.tenure == Tenure(5, 50.0, 100.0)
    assert wakes_at(state) <= 50.0


def test_a_notice_stops_the_jobs_in_half_of_the_time_and_publishes_at_once() -> None:
    agent = rented().running()
    agent.pass_(10.0)
    agent.tell(seen.Whole(KEY, "step-9", 9.0))
    assert not of(Publish, agent.done)
    actions = agent.tell(seen.Warned(agent.now + 120.0, "AWS takes it at 12:00"))
    (told,) = [one for one in posted(actions) if isinstance(one, d.Warned)]
    assert (told.goes_at, told.says) == (130.0, "AWS takes it at 12:00")
    (signal,) = of(Signal, actions)
    assert (signal.wish.grace_s, signal.wish.why) == (30.0, "AWS takes it at 12:00")
    assert of(Publish, agent.tell(seen.Tick())) or of(Publish, actions)
    agent.tell(seen.Published(KEY, None))
    agent.tell(seen.Over(KEY, seen.ExitRecord("exited", 143, agent.now)))
    agent.tell(seen.Published(KEY, None))
    assert [end.how for end in ended(agent)] == ["stopped"]


def test_a_short_notice_leaves_half_of_it_for_uploads() -> None:
    agent = rented().running()
    (signal,) = of(Signal, agent.tell(seen.Warned(40.0, "it goes")))
    assert signal.wish.grace_s == 20.0


def test_after_a_notice_nothing_is_started_and_the_machine_waits_to_be_taken() -> None:
    agent = rented()
    agent.tell(seen.Warned(120.0, "it goes"))
    (close,) = of(Close, agent.tell(start()))
    assert close.report.says == "the provider takes this machine away"
    assert not of(Leave, agent.pass_(WATCHED_S + 100.0))
    assert of(Leave, agent.pass_(AWAY_S)) == [Leave(ends_machine=True)]  # its money ends there


def test_a_machine_that_may_be_taken_some_day_goes_on() -> None:
    agent = rented().running()
    agent.tell(seen.Warned(None, "it may go"))
    assert not of(Signal, agent.done)
    assert of(Prepare, agent.tell(start("other", at=agent.now)))
    assert [one.goes_at for one in agent.reports(d.Warned)] == [None]


def test_a_stop_that_was_ordered_before_keeps_its_name() -> None:
    agent = rented().running()
    agent.tell(lease(watched_s=AWAY_S))
    agent.pass_(LANDS_AT - 10.0)
    agent.tell(stop())
    agent.pass_(15.0)
    (signal,) = of(Signal, agent.done)
    assert signal.wish.why == "stopped as ordered"
    assert not of(Post, agent.tell(seen.Tick()))


def test_an_order_that_lay_unread_for_a_lease_is_not_obeyed_as_its_job_may_run_elsewhere() -> None:
    agent = rented().running()
    agent.pass_(LEASE_S)
    refused = agent.tell(start("old", at=agent.now - LEASE_S))
    assert not of(Prepare, refused)
    (end,) = [close.report for close in of(Close, refused)]
    assert (end.job, end.how) == ("old", "stopped")
    assert end.says == "it was ordered 600 s ago, longer than the lease of this machine's agent"
    assert of(Prepare, agent.tell(start("young", at=agent.now - LEASE_S + 1.0)))
