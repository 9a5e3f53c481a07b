import pytest
from makers import a_job

from cloudwhale.model.job import Checkpoint
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.speeds import left_s, run_s, speed, throughput, work_s

NOTHING = Durations({})
SAVED = Checkpoint(attempt=1, seq=1, name="c", size_bytes=1, saved_at=0.0, manifest="m")


def test_a_faster_model_than_the_reference_takes_less() -> None:
    job = a_job(duration_s=3600.0, reference="A100-40GB")
    assert run_s(job, "A100-40GB", 0, NOTHING) == pytest.approx(3600.0)
    assert run_s(job, "H100-80GB", 0, NOTHING) < 3600.0 < run_s(job, "T4", 0, NOTHING)


def test_what_the_user_says_of_speeds_goes_before_the_table() -> None:
    job = a_job(duration_s=3600.0, reference="A100-40GB", speeds={"T4": 2.0})
    assert run_s(job, "T4", 0, NOTHING) == pytest.approx(1800.0)


def test_without_a_reference_or_a_known_model_the_speed_is_one() -> None:
    assert speed(a_job().spec, "H100-80GB") == 1.0
    assert speed(a_job(reference="A100-40GB").spec, "made-up") == 1.0
    assert speed(a_job(reference="A100-40GB").spec, None) == 1.0


def test_each_neighbour_costs_a_twentieth() -> None:
    job = a_job(duration_s=100.0)
    assert run_s(job, "L4", 2, NOTHING) == pytest.approx(100.0 / 0.95**2)
    assert throughput(0) == 1.0


def test_a_job_that_resumes_has_done_what_it_ran_and_did_not_lose() -> None:
    job = a_job(duration_s=1000.0).but(checkpoint=SAVED, run_s=400.0, lost_s=100.0)
    assert work_s(job, NOTHING) == 700.0
    assert work_s(job.but(checkpoint=None), NOTHING) == 1000.0
    assert work_s(job.but(run_s=5000.0), NOTHING) == 100.0


def test_a_job_that_should_have_ended_is_expected_to_run_a_tenth_longer() -> None:
    job = a_job(duration_s=100.0).but(started_at=0.0)
    assert left_s(job, None, 0, NOTHING, 30.0) == 70.0
    assert left_s(job, None, 0, NOTHING, 1000.0) == 100.0
