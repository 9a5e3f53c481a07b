"""Every example runs through the commands; the training survives every kill to the last bit."""

import hashlib
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from paced_training import slow_down, words_for
from shell import Shell, until

from cloudwhale.control.replay import plan_again
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState

EXAMPLES = Path(__file__).parents[2] / "examples"
FINAL = re.compile(r"final loss (\S+) after (\d+) steps")
STEPS = 900


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    typed = Shell(tmp_path, {"CLOUDWHALE_CPU": "2", "OPENBLAS_NUM_THREADS": "1"})
    yield typed
    typed.close()


def a_shorter_training(shell: Shell, name: str) -> str:
    """Write the training example with fewer steps, frequent saves and a short backoff."""
    text = (shell.folder / "examples" / "train.yaml").read_text()
    words = " ".join((*words_for(STEPS), "--save-every-s 0.3"))
    slow_down(shell.folder / "examples")
    text = re.sub(r"--steps \d+", words, text)
    text = re.sub(r"every: 5s", "every: 1s", text)
    retry = "retry: {max: 5, on: [node-loss, preemption], backoff: 1s}\n"
    return shell.write(f"examples/{name}.yaml", text + retry)


def final_loss(out: str) -> tuple[str, str]:
    found = FINAL.findall(out)
    assert found, out[-2000:]
    return str(found[-1][0]), str(found[-1][1])


def test_hello_says_hello(shell: Shell) -> None:
    said = shell("run", "-y", "examples/hello.yaml")
    assert said.code == 0, said.err
    assert "hello from" in said.out


def test_the_sweep_runs_its_eight_members(shell: Shell) -> None:
    said = shell("run", "-y", "--json", "examples/sweep.yaml", "--budget", "5")
    assert said.code == 0, said.err
    jobs = said.document["jobs"]
    assert len(jobs) == 8
    assert {job["state"] for job in jobs} == {"completed"}
    values = {(j.spec.array["lr"], j.spec.array["seed"]) for j in shell.jobs()}
    assert len(values) == 8


def test_a_legacy_task_list_runs_what_is_not_done_and_is_not_written(shell: Shell) -> None:
    file = shell.folder / "examples" / "tasks.json"
    before = file.read_bytes()
    tasks = json.loads(before)
    said = shell("run", "-y", "--json", "examples/tasks.json")
    assert said.code == 0, said.err
    to_do = {task["id"] for task in tasks if task["status"] != "done"}
    assert {job["name"] for job in said.document["jobs"]} == to_do
    assert len(to_do) < len(tasks)
    assert file.read_bytes() == before


def test_the_training_example_as_it_is_ends_with_its_loss(shell: Shell) -> None:
    run = shell.start("run", "-y", "examples/train.yaml", "--budget", "50")
    out, _ = run.communicate(timeout=280)
    assert run.returncode == 0, out
    loss, steps = final_loss(out)
    assert steps == "5000"
    assert float(loss) < 0.1
    (job,) = shell.jobs()
    assert job.checkpoint is not None


def parts_of(shell: Shell, *parts: str) -> list[int]:
    """Return the processes of these parts, by id, in their order."""
    running = [(process.pid, process.cmdline()) for process in shell.processes()]
    return [pid for part in parts for pid, words in running if any(part in one for one in words)]


def test_everything_killed_during_the_training_and_the_same_command_gives_the_same_loss(
    shell: Shell,
) -> None:
    undisturbed = shell("run", "-y", a_shorter_training(shell, "undisturbed"))
    assert undisturbed.code == 0, undisturbed.out + undisturbed.err
    file = a_shorter_training(shell, "killed")
    first = shell.start("run", "-y", file)

    def saved() -> bool:
        newest, *others = shell.jobs()
        return len(others) == 1 and newest.checkpoint is not None

    until("a checkpoint of the first attempt", saved)
    # At once: what lives on without the others works on, and nobody publishes it.
    others = parts_of(shell, "cloudwhale.agent", "shim.py")
    first.kill()
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    first.wait()
    again = shell("run", "-y", file)
    assert again.code == 0, again.out + again.err
    assert final_loss(again.out) == final_loss(undisturbed.out)
    job = shell.jobs()[0]
    assert (job.state, job.attempt, job.interruptions) == (JobState.COMPLETED, 2, 1)
    # promise 4: the save interval + the publish interval + what a save takes, here and now
    took_s = [
        one.at - one.checkpoint.saved_at
        for one in everything_told(shell)
        if isinstance(one, e.CheckpointSaved) and (one.job, one.attempt) == (job.id, 1)
    ]
    assert job.lost_s < 0.3 + 1.0 + max(2.0, *took_s)
    assert "resum" in again.out


def the_result(seed: str, steps: int) -> str:
    """Return what steps.py counts to when nothing is lost or done twice."""
    state = seed
    for _ in range(steps):
        state = hashlib.sha256(state.encode()).hexdigest()
    return f"result {state[:16]} after {steps} steps"


def everything_told(shell: Shell) -> list[e.Event]:
    with closing(open_store(sqlite_url(shell.home), may_migrate=False)) as store:
        return [told.event for told in store.since(0, limit=100_000)]


def most_at_once(events: list[e.Event]) -> dict[str, int]:
    """Return how many jobs ran on each device at the same time, at most."""
    here: dict[str, tuple[str, ...]] = {}
    running: set[str] = set()
    most: dict[str, int] = {}
    for event in events:
        match event:
            case e.Placed():
                here[event.job] = event.placement.devices
            case e.Started():
                running.add(event.job)
            case e.Finished() | e.GaveWay() | e.Failed() | e.Retried():
                running.discard(event.job)
            case _:
                continue
        for device in {device for job in running for device in here[job]}:
            count = sum(device in here[job] for job in running)
            most[device] = max(count, most.get(device, 0))
    return most


@dataclass(frozen=True)
class Shared:
    """The sharing example, run as its first lines say: what was printed and what is stored."""

    shell: Shell
    out: str


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    typed = Shell(tmp_path, {"CLOUDWHALE_CPU": "2", "CLOUDWHALE_DEVICES": "2x RTX4090 24GB"})
    run = typed.start("run", "-y", "examples/share.yaml")
    out, _ = run.communicate(timeout=280)
    assert run.returncode == 0, out
    yield Shared(typed, out)
    typed.close()


def test_eight_jobs_share_two_gpus_and_one_gives_way_and_resumes(shared: Shared) -> None:
    jobs = {job.id: job for job in shared.shell.jobs()}
    assert {job.state for job in jobs.values()} == {JobState.COMPLETED}
    assert len(jobs) == 8
    events = everything_told(shared.shell)
    assert set(most_at_once(events)) == {"declared-0", "declared-1"}
    assert max(most_at_once(events).values()) >= 2

    (victim,) = {event.job for event in events if isinstance(event, e.GaveWay)}
    assert jobs[victim].spec.name.startswith("train-")
    resumed = [
        event.resumed_from
        for event in events
        if isinstance(event, e.Started) and event.job == victim and event.attempt > 1
    ]
    assert resumed == [1]
    assert f"{victim} | resumed after step" in shared.out
    for job in jobs.values():
        found = re.search(r"--seed (\S+) --steps (\d+)", job.spec.command)
        assert found is not None
        assert f"{job.id} | {the_result(found[1], int(found[2]))}" in shared.out

    told = shared.shell("explain", victim).out
    assert "gives way to urgent-" in told and "[preempted]" in told
    with closing(open_store(sqlite_url(shared.shell.home), may_migrate=False)) as store:
        number = 0
        while (stored := store.round(number + 1)) is not None:
            number += 1
            again = plan_again(store, stored)
            assert again.model_dump_json() == stored.plan.model_dump_json(), number
    assert number > 8


def test_the_fleet_is_planned_within_its_budget_from_a_bare_install(shell: Shell) -> None:
    said = shell("plan", "examples/fleet.yaml", "--budget", "50", "--json")
    assert said.code == 0, said.err
    plan = said.document
    jobs = {job["name"]: job for job in plan["jobs"]}
    assert len(jobs) == 12
    assert 0 < plan["cost_usd"] <= plan["worst_case_usd"] <= plan["budget_usd"] == 50
    # Each machine's cost is rounded up to the micro-dollar.
    assert plan["cost_usd"] <= plan["one_each_usd"] + 1e-6 * len(plan["machines"])
    assert jobs["crawl"]["node"] == "host" and jobs["crawl"]["cost_usd"] == 0
    assert jobs["report"]["reason"]["code"] == "waits-for-job"
    rented = [job for job in jobs.values() if job["state"] == "rented"]
    assert len(rented) == 10
    for job in rented:
        assert job["binding"] is not None and job["runner_up"] is not None
        assert job["offer"] and job["starts_at"] < job["ends_at"]
    assert jobs["pretrain"]["binding"]["code"] == "market"
    assert jobs["distil"]["ends_at"] is not None
    assert not plan["can_launch"]


def test_the_fleet_with_too_little_money_says_what_would_be_enough(shell: Shell) -> None:
    poor = shell("plan", "examples/fleet.yaml", "--budget", "10", "--json")
    assert poor.code == 112
    assert poor.document["more"]["jobs"] > 0
    enough = poor.document["least_budget_usd"]
    assert shell("plan", "examples/fleet.yaml", "--budget", str(enough)).code == 0


def test_every_job_of_the_fleet_can_really_be_run(shell: Shell) -> None:
    text = (shell.folder / "examples" / "fleet.yaml").read_text()
    # Without what this host lacks, they run here.
    text = re.sub(r"resources: \{.*\}", "resources: {cpu: 0.2}", text)
    text = text.replace("--steps 50", "--steps 2").replace("market: on-demand", "market: auto")
    file = shell.write("examples/small.yaml", text)
    said = shell("run", "-y", "--json", file)
    assert said.code == 0, said.err
    assert {job["state"] for job in said.document["jobs"]} == {"completed"}


def test_the_training_is_never_rented_for_where_this_machine_can_run_it(shell: Shell) -> None:
    said = shell("plan", "examples/train.yaml", "--budget", "50")
    assert said.code == 0, said.err
    assert "nothing is rented: 0.00 USD of a budget of 50.00 USD" in said.out
    assert "your own machines run it all" in said.out
