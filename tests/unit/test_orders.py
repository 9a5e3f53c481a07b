"""Who is next in each of the plain orders, by hand on four jobs."""

import pytest
from makers import a_job, a_node, a_world, wants

from cloudwhale.control.desk import policies
from cloudwhale.model.job import Checkpoint, GpuRequest, Job, JobState, Placement
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.planner import plan
from cloudwhale.planning.rules import Rules
from cloudwhale.planning.standing import queueing
from cloudwhale.settings import Settings
from cloudwhale.spi.policy import Order, Queueing
from cloudwhale_policies.order import Fifo, Las, Priority, Sgf, Sjf, Srsf, Srtf

NODE = a_node("pool", cpu=16.0, devices=())
NOW = 1000.0


def job(name: str, at: float, length_s: float, cpu: float = 1.0, **fields: object) -> Job:
    return a_job(name, submitted_at=at, duration_s=length_s, resources=wants(cpu=cpu), **fields)


def running(one: Job, since: float) -> Job:
    where = Placement(node="pool", devices=())
    return one.but(state=JobState.RUNNING, attempt=1, placement=where, started_at=since)


def saved(one: Job, ran_s: float) -> Job:
    kept = Checkpoint(
        attempt=1, seq=1, name="c", size_bytes=1, saved_at=0.0, manifest=f"{one.id}/1-1"
    )
    return one.but(run_s=ran_s, checkpoint=kept, attempt=1)


def ranked(order: Order, *jobs: Job) -> list[str]:
    world = a_world(list(jobs), [NODE], now=NOW)
    return [one.id for some in order.rank(jobs, queueing(world, Durations({}), Rules()))
            for one in some]  # fmt: skip


FOUR = (
    job("a", 0.0, 400.0, cpu=1.0, priority=10),
    job("b", 1.0, 100.0, cpu=8.0, priority=90),
    job("c", 2.0, 200.0, cpu=2.0, priority=50),
    job("d", 3.0, 300.0, cpu=1.0, priority=50),
)


@pytest.mark.parametrize(
    ("order", "found"),
    [
        (Fifo(), "abcd"),
        (Priority(), "bcda"),
        (Sjf(), "bcda"),
        (Sgf(), "dacb"),  # 300, 400, 400 and 800: the older of equals first
        (Srtf(), "bcda"),
        (Srsf(), "dacb"),
        (Las(), "abcd"),
    ],
    ids=["fifo", "priority", "sjf", "sgf", "srtf", "srsf", "las"],
)
def test_four_jobs_stand_as_each_order_says(order: Order, found: str) -> None:
    assert "".join(ranked(order, *FOUR)) == found
    assert "".join(ranked(order, *FOUR[::-1])) == found


def test_what_was_saved_and_what_runs_counts_for_what_remains_and_not_for_the_length() -> None:
    kept = saved(job("kept", 0.0, 400.0), 350.0)
    runs = running(job("runs", 1.0, 400.0), since=NOW - 320.0)
    fresh = job("new", 2.0, 70.0)
    assert ranked(Srtf(), kept, runs, fresh) == ["kept", "new", "runs"]
    assert ranked(Sjf(), kept, runs, fresh) == ["new", "kept", "runs"]


def test_service_sinks_a_job_and_a_long_wait_lifts_it_again() -> None:
    gpu = GpuRequest(count=2)
    sunk = a_job("sunk", submitted_at=0.0, resources=wants(gpu=gpu), run_s=100.0)
    young = job("young", 5.0, 100.0)
    hours = 200.0 / 3600.0
    assert ranked(Las((hours,)), sunk, young) == ["young", "sunk"]
    assert ranked(Las((hours * 1.01,)), sunk, young) == ["sunk", "young"]
    assert ranked(Las((hours,), promote=8.9), sunk, young) == ["sunk", "young"]
    assert ranked(Las((hours,), promote=9.1), sunk, young) == ["young", "sunk"]


def test_it_is_known_when_a_running_job_sinks() -> None:
    gpu = GpuRequest(count=2)
    runs = running(a_job("r", resources=wants(gpu=gpu)), since=NOW - 50.0)
    known: Queueing = queueing(a_world([runs], [NODE], now=NOW), Durations({}), Rules())
    assert Las((200.0 / 3600.0,)).next_change_s(runs, known) == pytest.approx(50.0)
    assert Las((100.0 / 3600.0,)).next_change_s(runs, known) is None
    assert Srtf().next_change_s(runs, known) is None


@pytest.mark.parametrize("order", ["sjf", "sgf"])
def test_nobody_passes_in_a_strict_order_and_is_told_whom_it_stands_behind(order: str) -> None:
    settings = Settings.model_validate({"home": "/nowhere", "order": order, "score": "first-fit"})
    head, small = job("head", 0.0, 10.0, cpu=12.0), job("small", 0.0, 1000.0)
    full = running(job("full", 0.0, 500.0, cpu=8.0), since=NOW)
    made = plan(a_world([head, small, full], [NODE], now=NOW), policies(settings))
    told = {step.job: step.reason for step in made.steps if step.kind == "explain"}
    assert not [step for step in made.steps if step.kind == "place"]
    assert told["head"].code == "no-room-now"
    assert told["small"].code == "stands-behind"
    assert "head" in told["small"].says


def test_the_setting_strict_keeps_everybody_in_line() -> None:
    waiting = [job("head", 0.0, 10.0, cpu=12.0), job("small", 1.0, 10.0)]
    world = a_world([*waiting, running(job("full", 0.0, 500.0, cpu=8.0), NOW)], [NODE], now=NOW)

    def places(strict: bool) -> list[str]:
        plain = {"hold": False, "reserve": False, "preempt": False, "strict": strict}
        settings = Settings.model_validate({"home": "/nowhere", "order": "fifo", **plain})
        made = plan(world, policies(settings))
        return [step.job for step in made.steps if step.kind == "place"]

    assert places(strict=False) == ["small"]
    assert places(strict=True) == []
