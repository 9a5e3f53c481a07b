"""What the ranks of a gang have in common, what is kept of it, and how it ends."""

import pytest
from makers import a_job

from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import (
    Checkpoint,
    CheckpointRule,
    Ending,
    Job,
    JobState,
    Member,
    MemberEnd,
    Placement,
    Rank,
    Wish,
)
from cloudwhale.model.reason import Code, Reason
from cloudwhale.planning import ganging
from cloudwhale.planning.ganging import common, end_of, orders, restored
from cloudwhale.planning.lifecycle import apply

NOW = 1000.0
HERE = Placement(node="a", others=(Member(node="b"),))


def saves(rank: int, *names: str, attempt: int = 1) -> tuple[Checkpoint, ...]:
    """Make what a rank has published, oldest first."""
    return tuple(
        Checkpoint(
            attempt=attempt, seq=seq, name=name, size_bytes=1, saved_at=NOW + seq,
            manifest=f"{attempt}-{seq}.{rank}",
        )
        for seq, name in enumerate(names, 1)
    )  # fmt: skip


def named(found: tuple[Checkpoint, ...]) -> list[str]:
    return [one.name for one in found]


def test_the_newest_that_all_have_published_is_the_common_one() -> None:
    found = common([saves(0, "s1", "s2", "s3"), saves(1, "s1", "s2")])
    assert named(found) == ["s2", "s2"]
    assert [one.manifest for one in found] == ["1-2.0", "1-2.1"]


def test_ranks_may_publish_the_same_under_other_numbers() -> None:
    found = common([saves(0, "s1", "s2", "s3"), saves(1, "s2", "s3")])
    assert [one.manifest for one in found] == ["1-3.0", "1-2.1"]


def test_ranks_that_never_save_go_on_from_what_the_first_has_that_does() -> None:
    assert [one.manifest for one in common([saves(0, "s1", "s2"), (), ()])] == ["1-2.0"] * 3
    assert [one.manifest for one in common([(), saves(1, "s1")])] == ["1-1.1"] * 2


def test_without_a_name_that_all_have_there_is_none() -> None:
    assert common([(), ()]) == ()
    assert common([saves(0, "s1"), saves(1, "s2")]) == ()


def test_what_lies_under_one_name_in_two_attempts_does_not_belong_together() -> None:
    first, second = saves(0, "s1", "s2"), saves(1, "s1")
    again = saves(1, "s2", attempt=2)
    assert named(common([first, (*second, *again)])) == ["s1", "s1"]
    both = common([(*first, *saves(0, "s2", attempt=2)), (*second, *again)])
    assert [one.attempt for one in both] == [2, 2]


def test_a_name_that_is_used_again_and_again_tells_nothing_where_several_save() -> None:
    assert common([saves(0, "last", "last"), saves(1, "last", "last")]) == ()
    assert [one.manifest for one in common([saves(0, "last", "last"), ()])] == ["1-2.0"] * 2


def a_gang(state: JobState = JobState.RUNNING, **fields: object) -> Job:
    known = {
        "state": state, "attempt": 1, "placement": HERE, "started_at": NOW,
        "ranks": (Rank(order_posted=True, has_started=True),) * 2,
    }  # fmt: skip
    job = a_job("j", nodes=2, checkpoint=CheckpointRule(every_s=5.0, grace_s=10.0, keep=2))
    return job.but(**(known | fields))


def ended(how: Ending, code: int | None = 1, *, asked: bool = False, at: float = NOW) -> MemberEnd:
    return MemberEnd(how=how, exit_code=code, at=at, ran_s=10.0, asked=asked)


def with_ends(*ends: MemberEnd | None, **fields: object) -> Job:
    job = a_gang(**fields)  # type: ignore[arg-type]
    return job.but(ranks=tuple(one.but(end=end) for one, end in zip(job.ranks, ends, strict=True)))


WELL = ended("exited", 0)


@pytest.mark.parametrize(
    ("ends", "how", "code"),
    [
        ((WELL, WELL), "exited", 0),
        ((WELL, ended("stopped", 143, asked=True)), "exited", 0),
        ((ended("exited", 3), WELL), "exited", 3),
        ((ended("exited", 3), ended("stopped", 143, asked=True)), "exited", 3),
        ((ended("exited", 1), ended("oom", 137, at=NOW + 5)), "oom", 137),
        ((ended("exited", 1), ended("stopped", 143, at=NOW + 5)), "stopped", 143),
        ((ended("stopped", 143, asked=True),) * 2, "stopped", 143),
    ],
    ids=["all well", "who hung", "one fails", "others stopped", "oom", "landed", "as asked"],
)  # fmt: skip
def test_the_end_of_a_gang_is_that_of_whoever_caused_it(
    ends: tuple[MemberEnd, MemberEnd], how: str, code: int
) -> None:
    end = end_of(with_ends(*ends))
    assert (end.how, end.exit_code) == (how, code)


def test_what_is_lost_counts_from_the_common_checkpoint() -> None:
    saved = saves(0, "s1")[0].but(saved_at=NOW + 4.0)
    assert end_of(with_ends(ended("oom"), WELL, checkpoint=saved)).unsaved_s == 6.0
    assert end_of(with_ends(ended("oom"), WELL)).unsaved_s == 10.0


def stopped(job: Job, now: float = NOW) -> list[int]:
    return [step.rank for step in orders(job, now) if isinstance(step, p.PostStop)]


def test_the_others_are_stopped_when_one_ends_badly_or_the_gang_is_to_stop() -> None:
    assert stopped(a_gang()) == []
    assert stopped(with_ends(ended("exited", 3), None)) == [1]
    assert stopped(with_ends(None, ended("exited", 3))) == [0]
    assert stopped(a_gang(wish=Wish.CANCEL)) == [0, 1]
    assert stopped(a_gang(JobState.RECOVERING)) == [0, 1]


def test_who_outlasts_rank_0_has_a_bound_and_who_ends_before_it_has_none() -> None:
    job = with_ends(WELL, None)
    assert stopped(job) == [] and stopped(job, NOW + ganging.ENDS_TOGETHER_S) == [1]
    assert stopped(with_ends(None, WELL), NOW + 1e6) == []


def test_orders_that_are_not_known_to_be_posted_are_posted_again_each_for_itself() -> None:
    job = apply(a_gang(JobState.STARTING), e.Unconfirmed(at=NOW, job="j", attempt=1, rank=1))
    assert list(orders(job, NOW)) == [p.PostStart(job="j", attempt=1, rank=1)]
    assert not job.order_posted


def saving(job: Job, rank: int, *names: str) -> Job:
    for one in saves(rank, *names):
        event = e.CheckpointSaved(at=NOW, job="j", attempt=1, checkpoint=one, rank=rank)
        job = apply(job, event)
    return job


def test_a_gang_goes_on_each_rank_from_its_own_part() -> None:
    job = saving(saving(a_gang(), 0, "s1", "s2"), 1, "s1")
    assert job.checkpoint is not None and job.checkpoint.name == "s1"
    parts = [restored(job, rank) for rank in (0, 1)]
    assert [one.manifest for one in parts if one is not None] == ["1-1.0", "1-1.1"]


def test_only_what_is_older_than_the_common_checkpoint_is_forgotten() -> None:
    job = saving(saving(a_gang(), 0, "s1", "s2", "s3", "s4", "s5"), 1, "s1", "s2", "s3")
    assert job.checkpoint is not None and job.checkpoint.name == "s3"
    gone = ganging.beyond(job)
    assert gone == ("1-1.0", "1-1.1"), "of each rank the common one and the one before are kept"
    after = apply(job, e.SavesForgotten(at=NOW, job="j", attempt=1, manifests=gone))
    assert ganging.beyond(after) == () and after.checkpoint == job.checkpoint
    assert [one.name for one in after.saves[0]] == ["s2", "s3", "s4", "s5"]


def test_a_gang_that_starts_again_keeps_what_it_has_in_common() -> None:
    job = saving(saving(a_gang(), 0, "s1"), 1, "s1")
    reason = Reason(code=Code.LEASE_ENDS, says="why")
    back = apply(job, e.GaveWay(at=NOW, job="j", attempt=1, reason=reason))
    assert back.ranks == () and back.placement is None
    placed = e.Placed(at=NOW, job="j", attempt=2, placement=HERE, reason=reason)
    again = apply(back, placed)
    assert again.ranks == (Rank(), Rank())
    assert restored(again, 1) == restored(job, 1) is not None
