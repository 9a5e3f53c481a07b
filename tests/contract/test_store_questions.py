"""What every store answers, and whose writes it takes: epochs, rounds, jobs, money, secrets."""

import pytest
from makers import a_job, a_node, a_run
from stories import WHY, a_place, a_round, completes, submitted, was_placed

from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.night import Night
from cloudwhale.model.plan import Decision, DeclareLost
from cloudwhale.model.reason import Code
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.errors import Fenced, IllegalTransition, StaleWorld
from cloudwhale.spi.store import JobQuery, Store

# -- epochs and rounds -----------------------------------------------------------------------


def test_epochs_count_up(store: Store) -> None:
    assert [store.new_epoch("host", 0.0), store.new_epoch("host", 1.0)] == [1, 2]


def test_an_epoch_passes_over_those_that_others_have_seen(store: Store) -> None:
    seen = [store.new_epoch("host", 0.0, at_least=7), store.new_epoch("host", 1.0, at_least=3)]
    assert seen == [7, 8]
    with pytest.raises(Fenced, match="epoch is 8"):
        store.append(submitted(a_job("a")), epoch=7)
    assert store.append(submitted(a_job("a")), epoch=8) == 1


def test_a_controller_that_was_replaced_writes_nothing(store: Store) -> None:
    store.new_epoch("one", 0.0)
    store.new_epoch("two", 1.0)
    with pytest.raises(Fenced, match="epoch is 2"):
        store.append(submitted(a_job("a")), epoch=1)
    with pytest.raises(Fenced):
        store.record(a_round(0, a_place("a")), [], epoch=1)
    assert store.version() == 0
    assert store.round(1) is None


def test_an_epoch_that_nobody_began_writes_nothing(store: Store) -> None:
    with pytest.raises(Fenced):
        store.append(submitted(a_job("a")), epoch=7)


def test_submitters_need_no_epoch(store: Store) -> None:
    store.new_epoch("one", 0.0)
    assert store.append(submitted(a_job("a"))) == 1


def test_a_round_is_stored_with_the_events_it_leads_to(store: Store) -> None:
    store.new_epoch("one", 0.0)
    seen = store.append(submitted(a_job("a")))
    number = store.record(a_round(seen, a_place("a")), [was_placed("a")], epoch=1)
    assert store.round(number) == a_round(seen, a_place("a")).but(number=1)
    assert store.world(1.0).jobs["a"].state is JobState.STARTING


def test_rounds_count_up(store: Store) -> None:
    store.new_epoch("one", 0.0)
    store.append(submitted(a_job("a")))
    numbers = [store.record(a_round(1, a_place("a")), [], epoch=1) for _ in range(3)]
    assert numbers == [1, 2, 3]


def test_a_round_that_decided_nothing_is_not_stored_and_its_events_are(store: Store) -> None:
    store.new_epoch("one", 0.0)
    noted = e.Noted(at=0.0, subject="host", reason=WHY)
    assert store.record(a_round(0), [noted], epoch=1) == 0
    assert store.round(1) is None
    assert store.version() == 1


def test_a_plan_of_a_world_that_others_changed_is_refused(store: Store) -> None:
    store.new_epoch("one", 0.0)
    seen = store.append(submitted(a_job("a")))
    store.append([e.CancelAsked(at=0.0, job="a")])
    with pytest.raises(StaleWorld, match="others have written"):
        store.record(a_round(seen, a_place("a")), [was_placed("a")], epoch=1)
    assert store.world(0.0).jobs["a"].state is JobState.PENDING
    assert store.round(1) is None


def test_a_plan_of_a_world_that_an_earlier_controller_changed_is_refused(store: Store) -> None:
    store.new_epoch("one", 0.0)
    seen = store.append(submitted(a_job("a")))
    store.append([e.Noted(at=0.0, subject="a", reason=WHY)], epoch=1)
    store.new_epoch("two", 0.0)
    with pytest.raises(StaleWorld):
        store.record(a_round(seen, a_place("a")), [], epoch=2)


def test_a_replaced_controller_is_told_so_rather_than_to_plan_again(store: Store) -> None:
    store.new_epoch("one", 0.0)
    store.append(submitted(a_job("a")))
    store.new_epoch("two", 0.0)
    with pytest.raises(Fenced):
        store.record(a_round(0, a_place("a")), [], epoch=1)


def test_what_a_controller_wrote_itself_does_not_make_its_plan_stale(store: Store) -> None:
    store.new_epoch("one", 0.0)
    seen = store.append(submitted(a_job("a")))
    store.append([e.Noted(at=0.0, subject="a", reason=WHY)], epoch=1)
    assert store.record(a_round(seen, a_place("a")), [was_placed("a")], epoch=1) == 1


def test_a_round_with_an_illegal_event_is_not_stored(store: Store) -> None:
    store.new_epoch("one", 0.0)
    with pytest.raises(IllegalTransition):
        store.record(a_round(0, a_place("ghost")), [was_placed("ghost")], epoch=1)
    assert store.round(1) is None


def test_rounds_of_a_job_are_those_that_said_something_of_it(store: Store) -> None:
    store.new_epoch("one", 0.0)
    store.append(submitted(a_job("a"), a_job("b")))
    weighed = Decision(job="a", refused={Code.CPU: 2})
    lost = DeclareLost(node="n", silent_s=9.0, attempts=(("a", 1),), reason=WHY)
    for round_ in (
        a_round(2, a_place("b"), decisions=[weighed]),
        a_round(2, a_place("b")),
        a_round(2, lost),
    ):
        store.record(round_, [], epoch=1)
    assert [(each.number, why) for each, why in store.rounds("a")] == [(1, weighed), (3, None)]


def test_there_is_no_round_that_was_not_stored(store: Store) -> None:
    assert (store.round(0), store.round(1)) == (None, None)
    assert store.rounds("a") == []


# -- questions -------------------------------------------------------------------------------


def found(store: Store, **query: object) -> list[str]:
    return [job.id for job in store.jobs(JobQuery.model_validate(query))]


@pytest.fixture
def some(store: Store) -> Store:
    """Add three jobs of two runs; the first has completed."""
    store.append([e.RunOpened(at=0.0, run=a_run("r1")), e.RunOpened(at=0.0, run=a_run("r2"))])
    store.append(
        submitted(
            a_job("fit-1a", run="r1", name="fit", project="nlp"),
            a_job("fit-1b", run="r1", name="fit", project="nlp"),
            a_job("eval-2", run="r2", name="eval", project="vision"),
        )
    )
    store.append(completes("fit-1a"))
    return store


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["eval-2", "fit-1b", "fit-1a"]),
        ({"limit": 2}, ["eval-2", "fit-1b"]),
        ({"limit": 0}, []),
        ({"run": "r1"}, ["fit-1b", "fit-1a"]),
        ({"run": "r9"}, []),
        ({"project": "vision"}, ["eval-2"]),
        ({"states": ("completed",)}, ["fit-1a"]),
        ({"states": ("pending", "running"), "run": "r1"}, ["fit-1b"]),
        ({"names_or_ids": ("fit-1a",)}, ["fit-1a"]),
        ({"names_or_ids": ("fit",)}, ["fit-1b", "fit-1a"]),
        ({"names_or_ids": ("fit", "eval-2"), "limit": 2}, ["eval-2", "fit-1b"]),
        ({"names_or_ids": ("ev",)}, ["eval-2"]),
        ({"names_or_ids": ("EV",)}, []),
        ({"names_or_ids": ("fit-",)}, []),
        ({"names_or_ids": ("fit_1a",)}, []),
        ({"names_or_ids": ("%",)}, []),
    ],
)
def test_jobs_are_found(some: Store, query: dict[str, object], expected: list[str]) -> None:
    assert found(some, **query) == expected


def test_every_state_is_counted_even_when_no_job_is_in_it(some: Store) -> None:
    counts = some.counts()
    assert (counts[JobState.PENDING], counts[JobState.COMPLETED]) == (2, 1)
    assert (counts[JobState.FAILED], len(counts)) == (0, len(JobState))


def test_jobs_of_one_run_are_counted(some: Store) -> None:
    assert some.counts("r1")[JobState.PENDING] == 1


def test_a_run_is_found_by_id(some: Store) -> None:
    assert some.run("r1") == a_run("r1")
    assert some.run("r9") is None


def test_the_newest_run_of_a_folder_that_is_not_done_is_adopted(store: Store) -> None:
    runs = [a_run(name, digest="d") for name in ("r1", "r2", "r3")] + [a_run("r4", digest="x")]
    store.append([e.RunOpened(at=0.0, run=run) for run in runs])
    store.append(submitted(*(a_job(f"j{run.id}", run=run.id) for run in runs)))
    assert store.unfinished_run("/lab", "d") == runs[2]
    store.append(completes("jr3"))
    assert store.unfinished_run("/lab", "d") == runs[1]
    assert store.unfinished_run("/elsewhere", "d") is None


def test_nights_are_told_newest_first_and_nothing_else_is_a_night(store: Store) -> None:
    night = Night(name="burst", date="2026-11-30", zone="UTC", opens_at=0.0, closes_at=36000.0)
    runs = [
        a_run("r1").but(night=night),
        a_run("r2").but(folder='/lab/"closes_at":'),
        a_run("r3").but(night=night.but(date="2026-12-01")),
    ]
    store.append([e.RunOpened(at=0.0, run=run) for run in runs])
    assert store.nights() == [runs[2], runs[0]]
    assert store.nights(limit=1) == [runs[2]]


def test_nodes_are_told_by_id_as_the_world_has_them(store: Store) -> None:
    assert store.nodes() == []
    store.append([e.NodeJoined(at=1.0, node=a_node(name)) for name in ("b", "c", "a")])
    store.append([e.NodeDrained(at=2.0, node="c"), e.NodeLost(at=3.0, node="b", silent_s=700.0)])
    world = store.world(4.0).nodes
    assert store.nodes() == [world[name] for name in ("a", "b", "c")]
    assert [node.state for node in store.nodes()] == ["ready", "lost", "draining"]


def test_money_is_summed_by_job(store: Store) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run("r", budget=MicroUsd(100)))])
    store.append([e.Reserved(at=0.0, payer="r", rental="m", amount=MicroUsd(100))])
    for job, amount in (("a", 1), ("a", 2), ("b", 5), (None, 7)):
        store.append([e.Charged(at=0.0, payer="r", rental="m", amount=MicroUsd(amount), job=job)])
    assert store.spent("r") == {"a": 3, "b": 5, None: 7}
    assert store.spent("other") == {}


def test_secrets_are_kept_by_run_and_replaced_by_name(store: Store) -> None:
    store.seal("r", {"TOKEN": b"\x00old", "KEY": b"k"})
    store.seal("r", {"TOKEN": b"new"})
    store.seal("r", {})
    assert store.sealed("r") == {"TOKEN": b"new", "KEY": b"k"}
    assert store.sealed("other") == {}


def test_a_store_may_be_closed_twice(store: Store) -> None:
    store.close()
    store.close()
