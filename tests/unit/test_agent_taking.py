"""What an agent does whose machine is taken away: in minutes, in days, at once, and at last."""

from collections.abc import Sequence

import pytest
from orders import FACTS, KEY, Told, a_checkpoint, an_exit, of, posted, start

from cloudwhale.agent import seen
from cloudwhale.agent.actions import Action, Close, Kill, Leave, Prepare, SaveOutputs, Signal
from cloudwhale.agent.tenure import begun
from cloudwhale.mailbox import documents as d
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.reason import Code
from cloudwhale.model.terms import SOON_S

DAY_S = 86_400.0
SAYS = "AWS takes this machine back"


def rented() -> Told:
    return Told(seen.Woke(FACTS, "key", tenure=begun(1, 5 * DAY_S, 0.0)), heard())


def heard() -> seen.Ordered:
    """Make a lease under which the controller is heard for days."""
    lease = d.LeaseOrder(
        at=0.0, fence=1, request_id="lease", number=2, watched_s=5 * DAY_S, away_s=5 * DAY_S
    )
    return seen.Ordered(lease)


def warned(agent: Told, in_s: float, at_once: bool = False) -> list[Action]:
    return agent.tell(seen.Warned(agent.now + in_s, SAYS, at_once))


def remarks(agent: Told) -> list[str]:
    return [one.says for one in agent.reports(d.Remark) if one.code is Code.TAKEN_AWAY]


def told(actions: Sequence[Action]) -> list[tuple[float | None, bool]]:
    """Return what is told of its going: when, and whether its jobs stop for that."""
    return [(one.goes_at, one.stops) for one in posted(list(actions)) if isinstance(one, d.Warned)]


def ends(agent: Told, code: int, by_itself: bool = False, ran_s: float = 100.0) -> None:
    """Let the job's process end now."""
    exit = an_exit(code, ended_at=agent.now, ran_s=ran_s, by_itself=by_itself)
    agent.tell(seen.Over(KEY, exit))


# -- far away --------------------------------------------------------------------------------


def test_what_goes_in_days_is_told_at_once_and_works_on() -> None:
    agent = rented().running()
    actions = warned(agent, 2 * DAY_S)
    assert told(actions) == [(2 * DAY_S, False)]
    assert not of(Signal, agent.pass_(DAY_S))
    assert of(Prepare, agent.tell(start("other", at=agent.now)))


def test_what_goes_in_days_lands_in_time_and_is_told_again_when_it_is_near() -> None:
    agent = rented().running(checkpoint=CheckpointRule(grace_s=30.0))
    warned(agent, 2 * DAY_S)
    assert not of(Signal, agent.pass_(2 * DAY_S - SOON_S - 1.0))
    actions = agent.pass_(1.0)
    assert told(actions) == [(2 * DAY_S, True)]
    (signal,) = of(Signal, actions)
    assert (signal.wish.grace_s, signal.wish.why) == (30.0, SAYS)


def test_a_job_that_needs_long_to_save_begins_so_much_sooner() -> None:
    agent = rented().running(checkpoint=CheckpointRule(grace_s=600.0))
    warned(agent, DAY_S)
    assert not of(Signal, agent.pass_(DAY_S - 1201.0))
    (signal,) = of(Signal, agent.pass_(1.0))
    assert signal.wish.grace_s == 600.0


def test_nothing_that_could_not_land_in_time_is_started() -> None:
    agent = rented()
    warned(agent, DAY_S)
    agent.pass_(DAY_S - 1000.0)
    late = agent.tell(start("late", at=agent.now, checkpoint=CheckpointRule(grace_s=600.0)))
    (close,) = of(Close, late)
    assert close.report.says == "the provider takes this machine away"
    assert of(Prepare, agent.tell(start("quick", at=agent.now)))


def test_an_idle_machine_that_goes_in_days_ends_as_ever_without_its_controller() -> None:
    agent = Told(seen.Woke(FACTS, "key", tenure=begun(1, 7200.0, 0.0)))
    warned(agent, 2 * DAY_S)
    assert of(Leave, agent.pass_(900.0)) == [Leave(ends_machine=True)]


def test_the_sooner_of_two_notices_counts() -> None:
    agent = rented().running()
    warned(agent, DAY_S)
    warned(agent, 2 * DAY_S)
    assert agent.state.goes_at == DAY_S
    (signal,) = of(Signal, warned(agent, 120.0))
    assert signal.wish.grace_s == 30.0 and agent.state.goes_at == 120.0


# -- saving ----------------------------------------------------------------------------------


def test_what_was_saved_within_a_notice_is_said_with_its_size_and_times() -> None:
    agent = rented().running()
    agent.pass_(99.0)
    warned(agent, 120.0)
    agent.pass_(1.0)
    ends(agent, 143)
    agent.pass_(2.0)
    agent.tell(seen.Published(KEY, a_checkpoint(1, saved_at=99.5)))
    assert remarks(agent) == [
        "step-1 (9 bytes) was saved after the notice and stored 3.0 s later, 117.0 s before the "
        "machine goes: 0.5 s of work are lost"
    ]
    (end,) = agent.reports(d.AttemptEnded)
    assert (end.how, end.unsaved_s) == ("stopped", 0.5)


def test_a_job_that_ignores_its_signal_is_killed_and_what_it_lost_is_said() -> None:
    agent = rented().running()
    agent.tell(seen.Published(KEY, a_checkpoint(1, saved_at=50.0)))
    agent.pass_(60.0)
    warned(agent, 40.0)
    assert of(Kill, agent.pass_(20.0)), "half of the notice is over"
    ends(agent, 137, ran_s=80.0)
    agent.tell(seen.Published(KEY, None))
    assert remarks(agent) == [
        "nothing that it saved after the notice was stored in time, so step-1 (9 bytes), saved "
        "30.0 s before its end, is the newest: 30.0 s of work are lost; it was killed after its "
        "grace of 20 s"
    ]


def test_who_never_saved_has_lost_all_and_it_is_said() -> None:
    agent = rented().running()
    agent.pass_(100.0)
    warned(agent, 120.0)
    ends(agent, 143)
    agent.tell(seen.Published(KEY, None))
    assert remarks(agent) == ["nothing that it saved was stored in time: 100.0 s of work are lost"]


def test_what_is_not_stored_just_before_the_machine_goes_is_given_up_and_said() -> None:
    agent = rented().running()
    agent.pass_(10.0)
    warned(agent, 120.0)
    ends(agent, 143, ran_s=10.0)
    assert not of(Close, agent.pass_(116.0)), "its last checkpoint is on its way"
    (close,) = of(Close, agent.pass_(1.0))
    assert close.report.how == "stopped"
    dropped = [one for one in agent.reports(d.Remark) if one.code is Code.CHECKPOINT_DROPPED]
    assert [one.says for one in dropped] == [
        "the last checkpoint could not be published before the machine was taken away"
    ]


def test_a_machine_that_goes_at_once_stops_and_stores_as_far_as_it_comes() -> None:
    agent = rented().running()
    agent.pass_(10.0)
    (signal,) = of(Signal, warned(agent, 120.0, at_once=True))
    assert signal.wish.grace_s == 0.0
    assert of(Kill, agent.pass_(0.0))
    ends(agent, 137, ran_s=10.0)
    agent.pass_(5.0)
    agent.tell(seen.Published(KEY, a_checkpoint(1, saved_at=9.0)))
    (end,) = agent.reports(d.AttemptEnded)
    assert end.unsaved_s == 1.0


@pytest.mark.parametrize("first", ["notice", "end"])
def test_who_completes_in_the_second_of_the_notice_has_completed_with_its_outputs(
    first: str,
) -> None:
    agent = rented().running(outputs=("results/",))
    agent.pass_(100.0)
    if first == "notice":
        warned(agent, 120.0)
    ends(agent, 0, by_itself=True)
    if first == "end":
        warned(agent, 120.0)
    assert of(SaveOutputs, agent.tell(seen.Published(KEY, None)))
    (close,) = of(Close, agent.tell(seen.OutputsSaved(KEY)))
    assert (close.report.how, close.report.exit_code) == ("exited", 0)
    assert remarks(agent) == []


def test_who_saves_and_ends_with_0_when_it_is_told_to_has_not_completed() -> None:
    agent = rented().running()
    agent.pass_(100.0)
    warned(agent, 120.0)
    ends(agent, 0)
    agent.tell(seen.Published(KEY, a_checkpoint(1, saved_at=100.0)))
    (end,) = agent.reports(d.AttemptEnded)
    assert (end.how, end.exit_code) == ("stopped", 0)
