"""An agent's duty towards what its jobs save: published in time, once more at the end, and told."""

import pytest
from orders import FACTS, KEY, Told, a_checkpoint, an_exit, of, posted, start, stop

from cloudwhale.agent import seen
from cloudwhale.agent.actions import Close, Forget, Post, Publish
from cloudwhale.agent.course import PUBLISH_AGAIN_S
from cloudwhale.agent.state import LEASE_S
from cloudwhale.mailbox.documents import (
    AttemptEnded,
    AttemptStarted,
    CheckpointPublished,
    Remark,
    StartOrder,
)
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.reason import Code


def whole(name: str = "step-1", saved_at: float = 50.0) -> seen.Whole:
    """Make the news that a checkpoint is whole."""
    return seen.Whole(KEY, name, saved_at)


def test_a_whole_checkpoint_is_published_when_the_interval_is_over() -> None:
    agent = Told().running()
    assert of(Publish, agent.tell(whole())) == []
    assert of(Publish, agent.pass_(59.9)) == []
    assert of(Publish, agent.pass_(0.2)) == [Publish(KEY, 1)]


def test_one_that_comes_late_is_published_at_once() -> None:
    agent = Told().running()
    agent.pass_(100.0)
    assert of(Publish, agent.tell(whole())) == [Publish(KEY, 1)]


def test_only_one_is_published_at_a_time() -> None:
    agent = Told().running()
    agent.pass_(100.0)
    agent.tell(whole("step-1", 90.0))
    assert of(Publish, agent.tell(whole("step-2", 95.0))) == []
    agent.tell(seen.Published(KEY, a_checkpoint(1, 90.0)))
    assert of(Publish, agent.pass_(61.0)) == [Publish(KEY, 2)], "the newer one still waits"


def test_what_was_published_is_told_and_the_interval_begins_anew() -> None:
    agent = Told().running()
    agent.pass_(100.0)
    agent.tell(whole())
    [report] = posted(agent.tell(seen.Published(KEY, a_checkpoint())))
    assert isinstance(report, CheckpointPublished)
    assert report.checkpoint == a_checkpoint()
    assert of(Publish, agent.pass_(300.0)) == [], "nothing is new"


def test_the_oldest_go_once_more_than_asked_for_are_kept() -> None:
    agent = Told().running()
    forgotten: list[Forget] = []
    for seq in (1, 2, 3, 4):
        agent.pass_(100.0)
        agent.tell(whole(f"step-{seq}", agent.now))
        actions = agent.tell(seen.Published(KEY, a_checkpoint(seq, agent.now)))
        forgotten += of(Forget, actions)
        if of(Forget, actions):
            reported = [isinstance(one, Post) for one in actions]
            assert reported.index(True) < actions.index(of(Forget, actions)[0])
    assert [[one.seq for one in forget.checkpoints] for forget in forgotten] == [[1], [2]]


def test_what_an_attempt_began_from_goes_once_enough_of_its_own_are_kept() -> None:
    began_from = a_checkpoint(9, saved_at=1.0)
    agent = Told().running(attempt=2, restore=began_from)
    forgotten: list[Forget] = []
    for seq in (1, 2, 3):
        agent.pass_(100.0)
        key = ("job", 2)
        agent.tell(seen.Whole(key, f"step-{seq}", agent.now))
        mine = a_checkpoint(seq, agent.now).but(attempt=2)
        forgotten += of(Forget, agent.tell(seen.Published(key, mine)))
    gone = [[(one.attempt, one.seq) for one in forget.checkpoints] for forget in forgotten]
    assert gone == [[(1, 9)], [(2, 1)]]


def test_an_attempt_that_was_given_another_checkpoint_says_so() -> None:
    agent = Told(start(attempt=3, restore=a_checkpoint().but(attempt=2)))
    key = ("job", 3)
    agent.tell(seen.Prepared(key, a_checkpoint(4), "it is damaged"), seen.Began(key, 1.0))
    [remark], [started] = agent.reports(Remark), agent.reports(AttemptStarted)
    assert (remark.code, remark.says) == (Code.RESTORE_FAILED, "it is damaged")
    assert started.resumed_from == 1


def test_a_rule_to_keep_none_keeps_one() -> None:
    agent = Told().running(checkpoint=CheckpointRule(every_s=1.0, keep=0))
    agent.pass_(5.0)
    assert of(Forget, agent.tell(whole(), seen.Published(KEY, a_checkpoint()))) == []


def test_a_dropped_checkpoint_is_remarked_and_a_later_one_is_published() -> None:
    agent = Told().running()
    agent.pass_(100.0)
    agent.tell(whole())
    actions = agent.tell(seen.Dropped(KEY, "step-1", "weights.bin changed while it was read"))
    [report] = posted(actions)
    assert isinstance(report, Remark)
    assert report.code is Code.CHECKPOINT_DROPPED
    assert report.says == "step-1: weights.bin changed while it was read"
    assert of(Publish, agent.tell(whole("step-2", 99.0))) == [Publish(KEY, 2)]


def test_a_publisher_that_finds_nothing_is_not_asked_in_a_circle() -> None:
    agent = Told().running()
    agent.pass_(100.0)
    asked = len(of(Publish, agent.tell(whole())))
    for _ in range(100):  # each time it is told of the same checkpoint, and finds nothing of it
        asked += len(of(Publish, agent.tell(seen.Published(KEY, None), whole())))
    assert asked == 1
    assert len(of(Publish, agent.pass_(PUBLISH_AGAIN_S))) == 1, "but a while later it is"


def test_a_store_that_takes_nothing_is_tried_again() -> None:
    agent = Told().running()
    agent.pass_(100.0)
    agent.tell(whole(), seen.PublishFailed(KEY, "no space"))
    assert of(Publish, agent.pass_(PUBLISH_AGAIN_S - 0.1)) == []
    assert of(Publish, agent.pass_(0.2)) == [Publish(KEY, 2)], "under a number never used before"


@pytest.mark.parametrize(("how", "code"), [("exited", 0), ("exited", 1), ("oom", 137)])
def test_after_every_end_there_is_a_last_look_before_the_end_is_told(how: str, code: int) -> None:
    agent = Told().running()
    actions = agent.tell(seen.Over(KEY, an_exit(code, how=how)))
    assert actions == [Publish(KEY, 1, last=True)]
    actions = agent.tell(seen.Published(KEY, a_checkpoint()))
    assert [type(action) for action in actions] == [Post, Close]


def test_a_lost_shim_has_its_last_checkpoint_published_too() -> None:
    agent = Told().running()
    assert agent.tell(seen.Lost(KEY, 10.0)) == [Publish(KEY, 1, last=True)]


def test_a_publish_under_way_at_the_end_is_followed_by_the_last_look() -> None:
    agent = Told().running()
    agent.pass_(100.0)
    agent.tell(whole())
    assert agent.tell(seen.Over(KEY, an_exit())) == []
    actions = agent.tell(seen.Published(KEY, a_checkpoint()))
    assert of(Publish, actions) == [Publish(KEY, 2, last=True)]
    assert len(of(Close, agent.tell(seen.Published(KEY, None)))) == 1


def test_a_checkpoint_dropped_at_the_last_look_does_not_hold_up_the_end() -> None:
    agent = Told().running()
    agent.tell(seen.Over(KEY, an_exit()))
    actions = agent.tell(seen.Dropped(KEY, "step-1", "it cannot be read"))
    assert [type(action) for action in actions] == [Post, Close]


def test_the_end_waits_for_a_store_that_comes_back() -> None:
    agent = Told().running()
    agent.tell(seen.Over(KEY, an_exit()), seen.PublishFailed(KEY, "gone"))
    tries = of(Publish, agent.pass_(25.0))
    assert tries == [Publish(KEY, 2, last=True)]
    agent.tell(seen.PublishFailed(KEY, "gone"))
    agent.pass_(PUBLISH_AGAIN_S)
    assert len(of(Close, agent.tell(seen.Published(KEY, a_checkpoint())))) == 1


def test_the_end_does_not_wait_for_ever() -> None:
    agent = Told().running()
    agent.tell(seen.Over(KEY, an_exit()))
    waited = 0.0
    while not of(Close, agent.done):
        agent.tell(seen.PublishFailed(KEY, "gone"))
        agent.pass_(PUBLISH_AGAIN_S)
        waited += PUBLISH_AGAIN_S
        assert waited < 2 * LEASE_S
    [remark] = agent.reports(Remark)
    assert remark.says == "the last checkpoint could not be published for 600 s"


def test_the_work_since_the_last_published_checkpoint_is_unsaved() -> None:
    agent = Told().running()
    agent.pass_(61.0)
    agent.tell(whole(), seen.Published(KEY, a_checkpoint(1, saved_at=60.0)))
    agent.tell(seen.Over(KEY, an_exit(1)), seen.Published(KEY, None))
    [end] = agent.reports(AttemptEnded)
    assert end.unsaved_s == 40.0


def test_without_a_checkpoint_all_work_is_unsaved() -> None:
    agent = Told().running()
    agent.tell(seen.Over(KEY, an_exit(1)), seen.Published(KEY, None))
    [end] = agent.reports(AttemptEnded)
    assert end.unsaved_s == end.ran_s == 100.0


def test_a_clock_that_went_back_makes_no_work_unsaved_that_was_never_done() -> None:
    for saved_at in (-1e6, 1e6):
        agent = Told().running()
        agent.tell(seen.Over(KEY, an_exit(1)))
        agent.tell(seen.Published(KEY, a_checkpoint(1, saved_at)))
        [end] = agent.reports(AttemptEnded)
        assert 0.0 <= end.unsaved_s <= end.ran_s


def test_a_resumed_attempt_says_which_one_it_resumed() -> None:
    agent = Told().running(attempt=2, restore=a_checkpoint())
    [started] = agent.reports(AttemptStarted)
    assert started.resumed_from == 1


def test_after_a_restart_numbers_go_on_and_old_checkpoints_still_count() -> None:
    order = start().order
    assert isinstance(order, StartOrder)
    kept = (a_checkpoint(1, 10.0), a_checkpoint(3, 20.0))
    found = seen.Found(order, began_at=0.0, seq=4, published=kept)
    agent = Told()
    agent.tell(seen.Woke(FACTS, "key", (found,)), whole("step-9", 90.0))
    assert of(Publish, agent.pass_(61.0)) == [Publish(KEY, 5)]
    actions = agent.tell(seen.Published(KEY, a_checkpoint(5, 90.0)))
    assert of(Forget, actions) == [Forget(KEY, kept[:1])]


def test_after_a_restart_the_next_is_due_when_it_would_have_been_anyway() -> None:
    order = start().order
    assert isinstance(order, StartOrder)
    for waits_s, is_due in ((79.0, False), (81.0, True)):
        agent = Told()
        agent.pass_(waits_s - agent.now)
        found = seen.Found(order, began_at=0.0, seq=1, published=(a_checkpoint(1, 20.0),))
        told = agent.tell(seen.Woke(FACTS, "key", (found,)), whole("step-2", 50.0))
        assert of(Publish, told) == ([Publish(KEY, 2)] if is_due else [])


def test_after_a_restart_the_newest_checkpoint_is_told_again() -> None:
    order = start().order
    assert isinstance(order, StartOrder)
    kept = (a_checkpoint(1, 10.0), a_checkpoint(2, 20.0))
    agent = Told()
    agent.tell(seen.Woke(FACTS, "key", (seen.Found(order, 0.0, seq=2, published=kept),)))
    [report] = agent.reports(CheckpointPublished)
    assert report.checkpoint == kept[1], "its publisher may have died before it could say so"


def test_what_becomes_whole_while_a_job_is_stopped_is_published_at_the_end() -> None:
    agent = Told().running()
    agent.tell(stop(), whole("step-2", 99.0))
    assert agent.tell(seen.Over(KEY, an_exit(0))) == [Publish(KEY, 1, last=True)]
