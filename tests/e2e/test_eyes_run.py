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


LOSES = """
name: loses
command: |
  if [ $CLOUDWHALE_ATTEMPT = 1 ]; then
    cd $CLOUDWHALE_CHECKPOINT_DIR; echo 1 > .d; mv .d step-1; sleep 60
  fi
  echo resumed $CLOUDWHALE_RESUME on $CUDA_VISIBLE_DEVICES
resources: {gpu: {count: 1, memory: 8GB..}}
checkpoint: {every: 1h}
retry: {backoff: 0s}
"""


def test_a_job_whose_gpu_falls_off_the_bus_resumes_on_another(
    shell: Shell, fake_gpus: FakeGpus
) -> None:
    run = shell.start("run", "-y", shell.write("job.yaml", LOSES))
    until("the job to be there", lambda: len(shell.jobs()) == 1)
    [job] = shell.jobs()
    pid_of(shell, job.id)
    [job] = shell.jobs()
    assert job.placement is not None
    [given] = job.placement.devices
    lost = next(gpu for gpu in fake_gpus.gpus.values() if gpu.uuid == given)
    saved = shell.home / "nodes" / "host" / "attempts" / job.id / "1" / "checkpoints" / "step-1"
    until("it to save", saved.exists)
    lost.flags = "lost"
    fake_gpus.write()
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0, out
    assert "resumed 1 on GPU-" in out
    assert f"on {given}" not in out.split("resumed 1")[-1]
    [job] = shell.jobs()
    # It had saved, so its interruption costs no retry.
    assert (job.attempt, job.retries, job.grows) == (2, 0, 0)
