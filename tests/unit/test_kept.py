"""A machine on which a job has failed stays for who wants to look, within what is reserved."""

from pathlib import Path
from typing import Any

import pytest
from clouding import an_offer
from keeping_world import DRAINING, LEASE, NAME, READY, kept, kinds, world
from makers import a_job, a_run
from stories import submitted

from cloudwhale.cli.fleet import Fleet
from cloudwhale.control.intake import Overrides, read_jobs, time_flag
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState, Placement
from cloudwhale.model.node import Facts, Node, NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.kept import kept_for, let_go
from cloudwhale.spi.errors import SpecError

THERE = Placement(node=NAME)
FAILED = Reason(code=Code.COMMAND_FAILED, says="its process ended with 3")
WHY = Reason(code=Code.PLACED, says="rented for it")


def failed(keep_s: float | None = 600.0) -> Job:
    job = a_job("j", keep_on_failure_s=keep_s)
    return job.but(state=JobState.FAILED, placement=THERE, attempt=1)


def test_it_is_kept_as_long_as_was_asked_for() -> None:
    rental = kept_for(READY, failed(), 100.0)
    assert (rental.kept_until, rental.kept_for) == (700.0, "j")


def test_it_is_kept_no_longer_than_it_is_paid_for() -> None:
    assert kept_for(READY, failed(1e6), 100.0).kept_until == LEASE.away_until


@pytest.mark.parametrize(("of", "job"), [(READY, failed(None)), (DRAINING, failed())])
def test_it_is_not_kept_when_nobody_asked_or_it_goes_back_already(of: Rental, job: Job) -> None:
    assert kept_for(of, job, 100.0) is of


def test_of_two_that_fail_the_later_end_counts() -> None:
    first = kept_for(READY, failed(), 100.0)
    other = failed(60.0).but(id="k")
    assert kept_for(first, other, 200.0) is first
    assert kept_for(first, failed().but(id="k"), 300.0).kept_for == "k"


def test_only_who_it_is_kept_for_lets_it_go() -> None:
    rental = kept_for(READY, failed(), 100.0)
    assert let_go(rental, "k") is rental
    assert let_go(rental, "j").kept_until == 0.0


# -- in the store ----------------------------------------------------------------------------


@pytest.fixture
def store() -> MemoryStore:
    """Return a store in which a job with `keep_on_failure` runs on a rented machine."""
    made = MemoryStore()
    job = a_job("j", keep_on_failure_s=600.0)
    node = Node(id=NAME, facts=Facts(cpu=8.0, memory_gib=32.0, disk_gib=100.0), owned=False,
                state=NodeState.READY)  # fmt: skip
    made.append([e.RunOpened(at=0.0, run=a_run("run-1", budget=micro_usd(50))), *submitted(job)])
    made.append([e.Reserved(at=0.0, payer="run-1", rental=NAME, amount=READY.reserved)])
    for state in (RentalState.RESERVED, RentalState.REQUESTED, RentalState.BOOTING):
        made.append([e.RentalChanged(at=1.0, rental=READY.but(state=state))])
    made.append([e.NodeJoined(at=2.0, node=node), e.RentalChanged(at=2.0, rental=READY)])
    made.append([
        e.Placed(at=3.0, job="j", attempt=1, placement=THERE, reason=WHY),
        e.Started(at=4.0, job="j", attempt=1),
    ])  # fmt: skip
    return made


def fails(store: MemoryStore, at: float = 100.0) -> None:
    store.append([e.Failed(at=at, job="j", attempt=1, exit_code=3, reason=FAILED)])


def the_rental(store: MemoryStore) -> Rental:
    (rental,) = store.rentals()
    return rental


def test_the_failure_keeps_the_machine_and_a_replay_says_the_same(store: MemoryStore) -> None:
    fails(store)
    assert (the_rental(store).kept_until, the_rental(store).kept_for) == (700.0, "j")
    assert store.world_at(store.version(), 100.0) == store.world(100.0)


def test_who_moves_the_machine_on_without_knowing_does_not_forget_it(store: MemoryStore) -> None:
    fails(store)
    store.append([e.RentalChanged(at=101.0, rental=READY.but(told=LEASE))])
    assert the_rental(store).kept_until == 700.0


def test_a_job_that_ends_well_keeps_nothing(store: MemoryStore) -> None:
    store.append([e.Finished(at=100.0, job="j", attempt=1)])
    assert the_rental(store).kept_until == 0.0


def test_cancelling_the_failed_job_lets_its_machine_go(store: MemoryStore) -> None:
    fails(store)
    store.append([e.CancelAsked(at=200.0, job="j")])
    assert (the_rental(store).kept_until, the_rental(store).kept_for) == (0.0, "")


# -- in a round ------------------------------------------------------------------------------

KEPT = READY.but(kept_until=700.0, kept_for="j", told=LEASE)


def test_a_kept_machine_stays_though_nothing_runs_there_and_goes_back_then() -> None:
    of = world(KEPT, now=600.0)
    assert "return" not in kinds(of)
    assert kept(of).look_again_at == 700.0
    (step,) = [step for step in kept(world(KEPT, now=700.0)).steps if isinstance(step, p.Return)]
    assert step.rental.id == NAME


def test_it_goes_back_before_its_lease_ends_and_no_money_is_added() -> None:
    long = KEPT.but(kept_until=LEASE.away_until)
    late = world(long, now=LEASE.away_until - 61.0)
    assert "renew" not in kinds(late)
    assert "return" in kinds(late)


# -- what is said ----------------------------------------------------------------------------


def test_who_follows_is_told_how_to_look_and_how_to_give_it_back() -> None:
    fleet = Fleet("run-1", {NAME: READY.but(taken=an_offer())})
    (said,) = fleet.ended(failed(), 100.0)
    assert said.machine == NAME and said.weight == "warn"
    for words in (f"nodes/{NAME}/attempts/j/1/work", "m-1", "cloudwhale logs j", "cancel j"):
        assert words in said.says
    fleet.take(e.RentalChanged(at=101.0, rental=READY))
    assert fleet.rentals[NAME].kept_until == 700.0
    assert fleet.ended(failed(None), 100.0) == []


# -- how it is asked for ---------------------------------------------------------------------


def spec_of(tmp_path: Path, text: str, **overrides: Any) -> Any:
    file = tmp_path / "job.yaml"
    file.write_text(f"name: j\ncommand: 'true'\n{text}")
    return read_jobs(file, now=0.0, overrides=Overrides(**overrides)).specs[0]


def test_the_file_and_the_command_line_may_ask_for_it(tmp_path: Path) -> None:
    assert spec_of(tmp_path, "").keep_on_failure_s is None
    assert spec_of(tmp_path, "keep_on_failure: 30m").keep_on_failure_s == 1800.0
    asked = {"keep_on_failure_s": time_flag("--keep-on-failure", "5m")}
    assert spec_of(tmp_path, "keep_on_failure: 30m", **asked).keep_on_failure_s == 300.0


def test_a_length_that_is_none_is_refused_with_its_option() -> None:
    with pytest.raises(SpecError, match="--keep-on-failure"):
        time_flag("--keep-on-failure", "soon")


def test_the_same_command_from_before_is_still_the_same(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: j\ncommand: 'true'\n")
    plain = read_jobs(file, now=0.0).digest
    other = read_jobs(file, now=0.0, overrides=Overrides(keep_on_failure_s=5.0)).digest
    assert plain != other
