"""What an order may know: work that is left, the size of a job, what projects have used."""

import pytest
from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model.job import Checkpoint, GpuRequest, Job, JobState, Resources
from cloudwhale.model.world import USE_HALF_LIFE_S, Use
from cloudwhale.planning.durations import GUESS_S, Durations
from cloudwhale.planning.rules import Rules
from cloudwhale.planning.standing import OUTRUN, queueing, remaining_s, sizes, used

SAVED = Checkpoint(attempt=1, seq=1, name="s", size_bytes=1, saved_at=1.0, manifest="m")
NOTHING_KNOWN = Durations({})


@pytest.mark.parametrize(
    ("job", "left_s"),
    [
        (a_job(), GUESS_S),
        (a_job(duration_s=600.0), 600.0),
        (a_job(duration_s=600.0).but(run_s=400.0), 600.0),
        (a_job(duration_s=600.0).but(run_s=400.0, lost_s=100.0, checkpoint=SAVED), 300.0),
        (a_job(duration_s=600.0).but(run_s=900.0, checkpoint=SAVED), OUTRUN * 600.0),
    ],
    ids=["guessed", "said", "ran and saved nothing", "resumes", "outran what was said"],
)
def test_the_work_that_is_left(job: Job, left_s: float) -> None:
    assert remaining_s(job, NOTHING_KNOWN) == left_s


def test_the_length_of_a_family_is_learned() -> None:
    known = Durations({("default", "train"): [10.0, 30.0, 20.0]})
    assert remaining_s(a_job(), known) == 20.0
    assert remaining_s(a_job(), known) == known.of(a_job().spec).length_s


HALF = wants(cpu=1, gpu=GpuRequest(count=1, share=0.5))


@pytest.mark.parametrize(
    ("asks", "part"),
    [
        (wants(cpu=2), 0.2),
        (HALF, 0.25),
        (wants(cpu=8, gpu=GpuRequest(count=1, share=0.5)), 0.8),
        (wants(cpu=1, gpus=2), 1.0),
        (wants(cpu=100), 1.0),
    ],
)
def test_the_size_of_a_job_is_the_part_of_what_it_takes_most_of(
    asks: Resources, part: float
) -> None:
    nodes = [a_node(cpu=6.0, devices=(a_device("a"), a_device("b"))), a_node("b", cpu=4.0)]
    assert sizes(nodes)(a_job(resources=asks)) == pytest.approx(part)


def test_without_gpus_a_gpu_job_is_as_large_as_can_be() -> None:
    assert sizes([a_node(cpu=100.0)])(a_job(resources=HALF)) == 1.0


def test_use_fades_and_what_runs_counts() -> None:
    node = a_node(devices=(a_device("g-0"),))
    job = placed(a_job(project="nlp", resources=HALF), "host", "g-0")
    running = job.but(state=JobState.RUNNING, started_at=USE_HALF_LIFE_S - 100)
    world = a_world(
        [running], [node], now=USE_HALF_LIFE_S, use={"nlp": Use(device_s=800.0, at=0.0)}
    )
    assert used(world) == pytest.approx({"nlp": 450.0})
    known = queueing(world, NOTHING_KNOWN, Rules(shares={"nlp": 2.0}))
    assert known.use["nlp"] == pytest.approx(450.0)
    assert known.shares == {"nlp": 2.0}
