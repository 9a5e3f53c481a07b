"""What every store must do: the database's and the simulator's pass the same tests."""

import pytest
from makers import a_job, a_node, a_run
from stories import WHY, completes, rented, submitted

from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.node import NodeState
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import MicroUsd
from cloudwhale.model.world import Account
from cloudwhale.spi.errors import IllegalTransition
from cloudwhale.spi.store import JobQuery, Store

# -- events ----------------------------------------------------------------------------------


def test_an_empty_store_is_at_version_0(store: Store) -> None:
    assert store.version() == 0
    assert store.world(1.0).jobs == {}


def test_events_are_numbered_from_1_without_gaps(store: Store) -> None:
    assert store.append(submitted(a_job("a"), a_job("b"))) == 2
    assert store.append(submitted(a_job("c"))) == 3
    assert [told.seq for told in store.since(0)] == [1, 2, 3]
    assert store.version() == 3


def test_nothing_appended_is_nothing_stored(store: Store) -> None:
    store.append(submitted(a_job("a")))
    assert store.append([]) == 1


def test_events_come_back_as_they_went_in(store: Store) -> None:
    gone = [*submitted(a_job("a")), *completes("a")]
    store.append(gone)
    assert [told.event for told in store.since(0)] == gone


def test_since_gives_at_most_as_many_as_asked(store: Store) -> None:
    store.append(submitted(a_job("a"), a_job("b"), a_job("c")))
    assert [told.seq for told in store.since(1, limit=1)] == [2]


def test_events_of_a_subject_are_its_own_alone(store: Store) -> None:
    store.append([*submitted(a_job("a"), a_job("b")), *completes("b")])
    kinds = [told.event.kind for told in store.events("b", after=2)]
    assert kinds == ["placed", "started", "finished"]
    assert [told.seq for told in store.events("a")] == [1]


def test_runs_nodes_and_rentals_are_subjects_too(store: Store) -> None:
    store.append(
        [
            e.RunOpened(at=0.0, run=a_run("r", budget=MicroUsd(1))),
            e.NodeJoined(at=0.0, node=a_node("n")),
            e.Reserved(at=0.0, payer="r", rental="m", amount=MicroUsd(1)),
            e.Noted(at=0.0, subject="n", reason=WHY),
        ]
    )
    told = {of: [each.event.kind for each in store.events(of)] for of in ("r", "n", "m")}
    assert told == {"r": ["run-opened"], "n": ["node-joined", "noted"], "m": ["reserved"]}


# -- illegal events --------------------------------------------------------------------------


def test_one_illegal_event_and_nothing_is_stored(store: Store) -> None:
    store.append(submitted(a_job("a")))
    before = store.world(1.0)
    parked = e.Parked(at=1.0, job="b", reason=WHY)
    with pytest.raises(IllegalTransition, match="job b is parked"):
        store.append([*submitted(a_job("b")), parked, e.Waits(at=1.0, job="b", reason=WHY)])
    assert store.version() == 1
    assert store.world(1.0) == before
    assert store.jobs(JobQuery(names_or_ids=("b",))) == []


def test_a_job_is_submitted_once(store: Store) -> None:
    store.append([*submitted(a_job("a")), *completes("a")])
    with pytest.raises(IllegalTransition, match="submitted already"):
        store.append(submitted(a_job("a")))


def test_a_job_begins_pending(store: Store) -> None:
    with pytest.raises(IllegalTransition, match="cannot begin"):
        store.append(submitted(a_job("a", state=JobState.RUNNING)))


def test_nobody_can_speak_of_an_unknown_job(store: Store) -> None:
    with pytest.raises(IllegalTransition, match="nobody knows"):
        store.append([e.CancelAsked(at=1.0, job="ghost")])


def test_nobody_can_lose_an_unknown_node(store: Store) -> None:
    with pytest.raises(IllegalTransition, match="nobody knows"):
        store.append([e.NodeLost(at=1.0, node="ghost", silent_s=1.0)])


def test_a_run_is_opened_once(store: Store) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run("r"))])
    with pytest.raises(IllegalTransition, match="opened already"):
        store.append([e.RunOpened(at=0.0, run=a_run("r"))])


def test_more_than_was_reserved_is_never_charged(store: Store) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run("r", budget=MicroUsd(9)))])
    store.append([e.Reserved(at=0.0, payer="r", rental="m", amount=MicroUsd(5))])
    with pytest.raises(IllegalTransition, match="reserved"):
        store.append([e.Charged(at=0.0, payer="r", rental="m", amount=MicroUsd(6))])


def test_two_reservations_that_fit_alone_but_not_together_are_not_both_stored(
    store: Store,
) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run("r", budget=MicroUsd(9)))])
    both = [e.Reserved(at=0.0, payer="r", rental=name, amount=MicroUsd(5)) for name in ("m", "n")]
    with pytest.raises(IllegalTransition, match="r has 4 left"):
        store.append(both)
    assert store.append(both[:1]) == 2
    with pytest.raises(IllegalTransition, match="r has 4 left"):
        store.append(both[1:])
    assert store.version() == 2


def test_without_a_budget_nothing_is_reserved(store: Store) -> None:
    with pytest.raises(IllegalTransition, match="stranger has 0 left"):
        store.append([e.Reserved(at=0.0, payer="stranger", rental="m", amount=MicroUsd(1))])


def test_a_rental_takes_no_short_cuts(store: Store) -> None:
    with pytest.raises(IllegalTransition, match="not known yet"):
        store.append([rented(RentalState.READY)])
    store.append([rented(RentalState.RESERVED)])
    with pytest.raises(IllegalTransition, match="cannot become ready"):
        store.append([rented(RentalState.READY)])


# -- the world -------------------------------------------------------------------------------


def test_submitted_jobs_live_in_the_world_in_their_order(store: Store) -> None:
    store.append(submitted(a_job("b"), a_job("a")))
    world = store.world(7.0)
    assert list(world.jobs) == ["b", "a"]
    assert (world.version, world.now) == (2, 7.0)


def test_a_job_that_has_ended_leaves_the_world(store: Store) -> None:
    store.append([*submitted(a_job("a"), a_job("b")), *completes("a")])
    assert list(store.world(9.0).jobs) == ["b"]


def test_a_world_never_changes(store: Store) -> None:
    store.append(submitted(a_job("a")))
    world = store.world(1.0)
    store.append(completes("a"))
    assert world.jobs["a"].state is JobState.PENDING


def test_how_a_job_ended_is_known_to_those_that_wait_for_it(store: Store) -> None:
    store.append(submitted(a_job("first"), a_job("later", after=("first",))))
    store.append(completes("first"))
    assert store.world(9.0).ended == {"first": JobState.COMPLETED}


def test_a_job_that_waits_for_one_long_gone_is_told_how_it_ended(store: Store) -> None:
    store.append([*submitted(a_job("first")), *completes("first")])
    store.world(9.0)
    store.append(submitted(a_job("later", after=("first",))))
    assert store.world(9.0).ended == {"first": JobState.COMPLETED}


def test_a_wait_that_begins_and_ends_in_one_breath_is_told(store: Store) -> None:
    store.world(0.0)
    store.append(
        [*submitted(a_job("first"), a_job("later", after=("first",))), *completes("first")]
    )
    assert store.world(9.0).ended == {"first": JobState.COMPLETED}


def test_ends_that_nobody_waits_for_are_forgotten(store: Store) -> None:
    store.append(submitted(a_job("first"), a_job("later", after=("first",))))
    store.append([*completes("first"), *completes("later")])
    assert store.world(9.0).ended == {}


def test_a_run_is_in_the_world_while_it_has_a_live_job(store: Store) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run("run-1", budget=MicroUsd(50)))])
    assert store.world(0.0).runs == {}
    store.append(submitted(a_job("a")))
    world = store.world(0.0)
    assert list(world.runs) == ["run-1"]
    assert world.accounts == {"run-1": Account(payer="run-1", limit=MicroUsd(50))}
    store.append(completes("a"))
    assert store.world(9.0).runs == {}
    assert store.world(9.0).accounts == {}


def test_a_rental_keeps_its_run_in_the_world_until_it_is_returned(store: Store) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run()), rented(RentalState.RESERVED)])
    assert (list(store.world(0.0).runs), list(store.world(0.0).rentals)) == (["run-1"], ["m"])
    store.append([rented(RentalState.RETURNED)])
    assert (store.world(0.0).runs, store.world(0.0).rentals) == ({}, {})


def test_an_account_with_money_set_aside_stays_in_the_world(store: Store) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run("night", budget=MicroUsd(9)))])
    store.append([e.Reserved(at=0.0, payer="night", rental="m", amount=MicroUsd(5))])
    assert store.world(0.0).accounts["night"].reserved == 5
    store.append([e.Released(at=0.0, payer="night", rental="m", amount=MicroUsd(5))])
    assert store.world(0.0).accounts == {}


def test_a_charge_moves_money_from_reserved_to_spent(store: Store) -> None:
    run = a_run(budget=MicroUsd(9))
    store.append([e.RunOpened(at=0.0, run=run), *submitted(a_job("a"))])
    store.append([e.Reserved(at=0.0, payer="run-1", rental="m", amount=MicroUsd(5))])
    store.append([e.Charged(at=0.0, payer="run-1", rental="m", amount=MicroUsd(3))])
    account = store.world(0.0).accounts["run-1"]
    assert (account.reserved, account.spent) == (2, 3)


def test_nodes_join_drain_and_get_lost(store: Store) -> None:
    store.append([e.NodeJoined(at=1.0, node=a_node("n"))])
    joined = store.world(1.0).nodes["n"]
    store.append([e.NodeDrained(at=2.0, node="n")])
    drained = store.world(1.0).nodes["n"]
    store.append([e.NodeLost(at=3.0, node="n", silent_s=700.0)])
    lost = store.world(1.0).nodes["n"]
    assert [node.state for node in (joined, drained, lost)] == ["ready", "draining", "lost"]
    assert (joined.joined_at, lost.lost_at) == (1.0, 3.0)


def test_a_lost_node_is_not_drained_back_to_life(store: Store) -> None:
    store.append([e.NodeJoined(at=1.0, node=a_node("n"))])
    store.append([e.NodeLost(at=3.0, node="n", silent_s=700.0), e.NodeDrained(at=4.0, node="n")])
    assert store.world(1.0).nodes["n"].state is NodeState.LOST


def test_run_times_of_completed_jobs_are_kept_by_family_newest_last(store: Store) -> None:
    store.append(submitted(*(a_job(f"j{n}", name="fit", project="p") for n in range(25))))
    store.append([event for n in range(25) for event in completes(f"j{n}", ran_s=float(n))])
    times = store.world(0.0).durations[("p", "fit")]
    assert times == tuple(float(n) for n in range(5, 25))


def test_failed_jobs_say_nothing_about_how_long_a_family_takes(store: Store) -> None:
    store.append([*submitted(a_job("a")), e.GaveUp(at=3.0, job="a", reason=WHY)])
    assert store.world(0.0).durations == {}


def test_the_world_can_be_had_as_it_was_after_any_event(store: Store) -> None:
    store.append([e.RunOpened(at=0.0, run=a_run()), *submitted(a_job("a"), a_job("b"))])
    then = store.world(5.0)
    store.append([*completes("a"), rented(RentalState.RESERVED)])
    assert store.world_at(then.version, 5.0) == then
    assert store.world_at(store.version(), 6.0) == store.world(6.0)


def test_the_world_after_the_future_is_the_world_now(store: Store) -> None:
    store.append(submitted(a_job("a")))
    assert store.world_at(99, 1.0) == store.world(1.0)


def test_how_far_inboxes_were_read_never_goes_back(store: Store) -> None:
    store.append([e.Read(at=0.0, node="n", number=4), e.Read(at=0.0, node="m", number=1)])
    store.append([e.Read(at=0.0, node="n", number=3)])
    assert store.read_to() == {"n": 4, "m": 1}
