"""Commands on a host with a driver: what outgrows its GPU memory goes on with more, by itself."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_gpus import FakeGpus
from shell import Shell, until

JOB = """
name: grows
command: if [ $CLOUDWHALE_ATTEMPT = 1 ]; then sleep 60; fi; echo fits now
resources: {gpu: {count: 1, memory: 8GB.., share: 0.5}}
retry: {max: 1, on: []}
"""


@pytest.fixture
def shell(tmp_path: Path, fake_gpus: FakeGpus) -> Iterator[Shell]:
    typed = Shell(tmp_path, {"CLOUDWHALE_CPU": "2", **fake_gpus.env})
    yield typed
    typed.close()


def pid_of(shell: Shell, job: str, attempt: int = 1) -> int:
    """Wait until an attempt runs; return its process."""
    path = shell.home / "nodes" / "host" / "attempts" / job / str(attempt) / "pids.json"
    until(f"{job} to run", path.exists)
    return int(json.loads(path.read_text())["job"])


def test_a_job_that_outgrows_its_share_runs_again_with_more_and_the_run_ends_well(
    shell: Shell, fake_gpus: FakeGpus
) -> None:
    run = shell.start("run", "-y", shell.write("job.yaml", JOB))
    until("the job to be there", lambda: len(shell.jobs()) == 1)
    [job] = shell.jobs()
    fake_gpus.hold(0, pid_of(shell, job.id), 9.0)
    fake_gpus.hold(1, pid_of(shell, job.id), 9.0)
    fake_gpus.hold(2, pid_of(shell, job.id), 9.0)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0, out
    assert "fits now" in out
    [job] = shell.jobs()
    assert (job.attempt, job.grows, job.retries) == (2, 1, 0)
    assert job.wants.gpu.memory_gib.least == 13.5
    assert job.peaks.gpu_gib == 9.0
    told = shell("explain", job.id)
    assert "9.00 GiB" in told.out
    assert "13.5 GiB" in told.out


def test_doctor_says_which_gpus_there_are_and_which_are_left_out(
    shell: Shell, fake_gpus: FakeGpus
) -> None:
    fake_gpus.gpus[1].flags = "mig"
    fake_gpus.write()
    rows = {row["name"]: row for row in shell("doctor", "--json").document["checks"]}
    assert rows["gpus"]["state"] == "warning"
    assert "1 x A100-80GB, 1 x L4, driver 550.00.fake" in rows["gpus"]["says"]
    assert "MIG" in rows["gpus"]["says"]
    fake_gpus.error = 999
    fake_gpus.write()
    rows = {row["name"]: row for row in shell("doctor", "--json").document["checks"]}
    assert rows["gpus"]["state"] == "failed"
    fake_gpus.state.unlink()
    rows = {row["name"]: row for row in shell("doctor", "--json").document["checks"]}
    assert (rows["gpus"]["state"], rows["gpus"]["says"][:5]) == ("ok", "none:")
