"""What a bill was for: boot, pauses, what was lost, failed, or asked for in vain."""

from pathlib import Path

from clouding import an_offer
from large_ledger import add_charges
from large_ledger import spent as spent_in
from makers import a_device, a_job, a_run, a_world, wants

from cloudwhale.control.store import SqlStore
from cloudwhale.control.store.sqlite import SqliteDatabase
from cloudwhale.model import event as e
from cloudwhale.model.cost import Dimension
from cloudwhale.model.job import GpuRequest, JobState, Peaks, Placement, Span
from cloudwhale.model.node import Facts
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Egress, Lease, Part, Rental, RentalState
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.planning import occupying
from cloudwhale.planning.costing import so_far
from cloudwhale.planning.settling import settled
from cloudwhale.spi.store import CostQuery

FACTS = Facts(cpu=8.0, memory_gib=32.0, disk_gib=100.0, devices=(a_device("g", "A100-80GB", 80.0),))
OFFER = an_offer(
    "big", facts=FACTS, market="spot", price_usd_h=micro_usd("3.6"), cap_usd_h=micro_usd("7.2"),
    extras_usd_h=micro_usd("0.36"), address_usd_h=micro_usd("0.09"), billing_step_s=0.0,
    billing_least_s=0.0,
)  # fmt: skip
"""1,100 micro-dollars a second."""


def a_rental(**changes: object) -> Rental:
    fields: dict[str, object] = {
        "id": "m", "node": "m", "payer": "run-1", "offer": "big", "taken": OFFER,
        "lease": Lease(number=1, watched_until=9e3, away_until=9e3, stop_at=9e3),
        "reserved": micro_usd("50"), "jobs": {"a": "nlp", "b": "bio"}, "requested_at": 0.0,
        "ready_at": 100.0, "ended_at": 1000.0, "state": RentalState.LOST,
    }  # fmt: skip
    return Rental.model_validate(fields | changes)


def test_boot_pauses_and_what_was_held_add_up_for_each_job() -> None:
    held = {"a": 500.0, "b": 250.0}
    parts = {"a": Part(family="x", lost_s=100.0), "b": Part(family="y", failed_s=250.0)}
    step = settled(a_rental(held_s=held, parts=parts))
    a, b = step.lines["a"], step.lines["b"]
    assert (a.spent, b.spent) == (733_333, 366_667)
    assert (a.purposes.boot, b.purposes.boot) == (73_333, 36_667)
    assert sum(one.purposes.idle for one in (a, b)) == 150 * 1100
    assert (a.purposes.lost, a.purposes.failed) == (110_000, 0)
    assert (b.purposes.failed, b.purposes.useful) == (275_000, 0)
    assert sum(dict(a.items).values()) == a.spent
    assert sum(one.items.disk for one in (a, b)) == 75 * 1000
    assert sum(one.items.address for one in (a, b)) == 25 * 1000
    assert a.on_demand is not None and b.on_demand is not None
    assert a.on_demand + b.on_demand == 2100 * 1000
    assert a.gpu_s + b.gpu_s == 1000.0
    assert (a.family, b.family, a.project, b.project) == ("x", "y", "nlp", "bio")


def test_a_machine_that_was_never_ready_is_all_boot_and_one_that_never_came_costs_nothing() -> None:
    step = settled(a_rental(ready_at=None))
    assert all(line.purposes.boot == line.spent > 0 for line in step.lines.values())
    never = settled(a_rental(requested_at=None, ended_at=None))
    assert never.lines == {} == never.charges


def test_what_was_brought_is_paid_by_who_brought_it_and_is_no_machine_time() -> None:
    egress = Egress(
        job="b", provider="other", region="r", size_bytes=10**9, cost=micro_usd("0.12")
    )  # fmt: skip
    step = settled(a_rental(held_s={"a": 900.0}, egress=(egress,)))
    b = step.lines["b"]
    assert b.spent == b.items.egress == b.purposes.moved == micro_usd("0.12") == b.on_demand
    assert step.lines["a"].items.egress == 0


def test_who_asked_for_too_much_has_wasted_what_a_smaller_gpu_is_cheaper() -> None:
    small = FACTS.but(devices=(a_device("s", "T4", 16.0),))
    cheap = OFFER.but(id="small", facts=small, price_usd_h=micro_usd("0.63"))
    rental = a_rental(jobs={"a": "nlp"}, held_s={"a": 900.0})
    asked = rental.but(parts={"a": Part(smaller_gib=16.0)})
    world = a_world([], offers=(OFFER, cheap))
    line = settled(asked, world).lines["a"]
    assert line.purposes.over == 900 * 825  # a quarter of its price would have done
    assert line.purposes.useful == 900 * 275
    assert settled(asked).lines["a"].purposes.over == 0, "nobody knows what else there was"
    assert settled(rental, world).lines["a"].purposes.over == 0


def test_what_an_attempt_came_to_is_kept_with_its_machine() -> None:
    gpu = GpuRequest(count=1, memory_gib=Span(least=80.0))
    job = a_job("a", resources=wants(gpu=gpu, cpu=1.0)).but(
        state=JobState.RUNNING, placement=Placement(node="m", devices=("g",)), placed_at=100.0,
        started_at=150.0,
    )  # fmt: skip
    lost = Reason(code=Code.TAKEN_AWAY, says="gone")
    taken = e.GaveWay(
        at=550.0, job="a", attempt=1, reason=lost, lost_s=200.0, ran_s=400.0,
        peaks=Peaks(gpu_gib=11.0),
    )  # fmt: skip
    after = job.but(run_s=400.0, lost_s=200.0)
    rental = occupying.left(job, after, a_rental(ended_at=None), taken)
    assert rental.held_s["a"] == 450.0
    assert rental.parts["a"].lost_s == 200.0 and rental.parts["a"].failed_s == 0.0
    assert rental.parts["a"].smaller_gib == 16.0
    own = Reason(code=Code.COMMAND_FAILED, says="no")
    failed = e.Failed(at=550.0, job="a", attempt=1, exit_code=1, reason=own, ran_s=400.0)
    again = occupying.left(job, job.but(run_s=400.0), rental, failed)
    assert again.parts["a"].failed_s == 450.0, "the time before its process ran, too"
    assert again.parts["a"].smaller_gib == 0.0, "of this attempt nobody knows what it used"


def test_a_machine_that_is_not_back_has_lines_as_if_it_went_back_now() -> None:
    job = a_job("a", resources=wants(gpu=GpuRequest(count=1), cpu=1.0)).but(
        run="run-1", state=JobState.RUNNING, placement=Placement(node="m", devices=("g",)),
        placed_at=100.0, started_at=150.0,
    )  # fmt: skip
    rental = a_rental(ended_at=None, state=RentalState.READY, jobs={"a": "nlp"})
    world = a_world([job], rentals={"m": rental}, now=400.0, runs={"run-1": a_run("run-1")})
    (line,) = so_far(rental, world)
    assert line.is_running and line.ended_at == 400.0 and line.spent == 400 * 1100
    assert (line.purposes.boot, line.purposes.useful) == (110_000, 330_000)
    (nobodys,) = so_far(rental.but(jobs={}), world)
    assert nobodys.job is None and nobodys.spent == line.spent


def test_the_sums_of_a_large_ledger_are_those_of_the_database_itself(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "cloudwhale.db")
    store = SqlStore(database, may_migrate=True)
    with database.writer.begin() as connection:
        add_charges(connection, 2000)
        whole = spent_in(connection)
    ways: list[tuple[Dimension, ...]] = [(), ("project",), ("day", "gpu")]
    for by in ways:
        found = store.costs(CostQuery(by=by))
        assert sum(one.spent for one in found) == whole
        assert sum(sum(dict(one.purposes).values()) for one in found) == whole
    assert sum(line.spent for line in store.cost_lines(CostQuery())) == MicroUsd(whole)
    store.close()
