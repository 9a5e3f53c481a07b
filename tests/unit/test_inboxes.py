"""Which inboxes are read when nothing rings: the awaited often, all of them within a rate."""

from keeping_world import DRAINING, NAME, READY, RUNNING, job, world
from makers import a_job, a_world, placed

from cloudwhale.control.inboxes import OVER_HTTP, Cadence, Inboxes, awaited
from cloudwhale.model.job import JobState


def reads(inboxes: Inboxes, names: list[str], soon: list[str], for_s: float) -> dict[str, int]:
    """Let time pass in twentieths of a second; return how often each inbox was read."""
    count = dict.fromkeys([*names, *soon], 0)
    for step in range(round(for_s * 20)):
        now = step / 20
        due = names if inboxes.begin(names, soon, now) else inboxes.due(now)
        for name in due:
            count[name] += 1
    return count


def test_a_few_inboxes_are_read_twice_a_second_so_that_a_notice_is_known_at_once() -> None:
    count = reads(Inboxes(OVER_HTTP), ["a", "b"], [], 10.0)
    assert count == {"a": 20, "b": 20}


def test_a_hundred_inboxes_are_read_every_five_seconds() -> None:
    names = [f"n{number}" for number in range(100)]
    assert set(reads(Inboxes(OVER_HTTP), names, [], 20.0).values()) == {4}


def test_who_is_awaited_is_read_four_times_a_second() -> None:
    names = [f"n{number}" for number in range(100)]
    count = reads(Inboxes(OVER_HTTP), names, ["n7"], 10.0)
    assert 36 <= count.pop("n7") <= 41
    assert set(count.values()) == {2}


def test_where_folders_ring_nobody_is_awaited() -> None:
    inboxes = Inboxes(Cadence(1.0))
    assert reads(inboxes, ["a"], ["a"], 10.0) == {"a": 10}
    assert inboxes.next_at() == 10.0


def test_the_next_read_is_the_first_that_is_due() -> None:
    inboxes = Inboxes(OVER_HTTP)
    assert inboxes.next_at() is None
    inboxes.begin(["a"], ["a"], 0.0)
    assert inboxes.next_at() == 0.25
    inboxes.begin(["a"], [], 0.5)
    assert inboxes.next_at() == 1.0


def test_a_node_that_is_to_start_a_job_is_awaited() -> None:
    starting, running = placed(a_job("s"), "one"), placed(a_job("r"), "two")
    of = a_world([starting, running.but(state=JobState.RUNNING), a_job("w")])
    assert awaited(of) == {"one"}


def test_a_machine_that_is_taken_away_is_awaited_until_its_attempts_have_ended() -> None:
    going = DRAINING.but(interrupted_at=90.0)
    recovering = RUNNING.but(state=JobState.RECOVERING)
    assert awaited(world(going, recovering)) == {NAME}
    assert awaited(world(going, job())) == frozenset()
    assert awaited(world(READY, recovering)) == frozenset(), "it is silent: that tells itself"
