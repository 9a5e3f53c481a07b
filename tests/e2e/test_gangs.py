"""Gangs on the sandbox's machines: a ring of sockets, PyTorch, one machine that is taken away."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from shell import Shell

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale_providers.sandbox import Sandbox
from cloudwhale_providers.sandbox.processes import of_folder

EXAMPLES = Path(__file__).parents[2] / "examples"
RING = EXAMPLES / "gang" / "ring.py"
LIMIT_S = 200.0  # PyTorch takes seconds to begin, on each machine
JOB = """
name: ring
command: {command}
nodes: {nodes}
resources: {{gpu: "A10G:1", cpu: 1}}
duration: 10m
checkpoint: {{every: 1m, grace: 30s}}
"""
WEATHER = "speed: 20\nowned: none\nboot: 10s\n"
TORCH = """
import os
import torch.distributed as dist
import torch
dist.init_process_group("gloo")
one = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(one)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "has the sum", int(one), flush=True)
dist.destroy_process_group()
"""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    found = Shell(tmp_path)
    yield found
    found("sandbox", "stop")
    assert of_folder(box(found)) == frozenset(), "machines end with their box"
    found.close()


def box(shell: Shell) -> Path:
    return shell.home / "sandbox" / "cloud"


def ran(shell: Shell, command: str, nodes: int, weather: str = WEATHER) -> str:
    """Run a gang to its end in a box of such a weather; return what rank 0 printed."""
    return ended(shell, JOB.format(command=json.dumps(command), nodes=nodes), weather)


def ended(shell: Shell, text: str, weather: str = WEATHER) -> str:
    """Run a job's file to its end; return what it printed."""
    shell.write("weather.yaml", weather)
    file = shell.write("ring.yaml", text)
    words = ("--budget", "9", "--sandbox", "--sandbox-script", "weather.yaml", "-y")
    process = shell.start("run", file, *words)
    said, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, said
    return shell("logs", "ring", "--sandbox").out


def events(shell: Shell) -> list[e.Event]:
    with closing(open_store(sqlite_url(shell.home / "sandbox"), may_migrate=False)) as store:
        return [one.event for one in store.since(0, 100_000)]


def is_paid_for(shell: Shell, machines: int) -> None:
    """Check that so many machines were had and are gone, and ledger and meter say the same."""
    bill = list(Sandbox().meter(box(shell)))
    assert len(bill) == machines and all(one.until is not None for one in bill)
    spent = [one.amount for one in events(shell) if isinstance(one, e.Charged)]
    assert sum(spent) == sum(one.cost for one in bill) > 0


@pytest.mark.parametrize("nodes", [2, 4])
def test_a_ring_on_machines_of_the_box_comes_to_the_right_sum(shell: Shell, nodes: int) -> None:
    steps, text = 20, (EXAMPLES / "gang.yaml").read_text()
    for old, new in (
        ("workdir: gang", f"workdir: {EXAMPLES / 'gang'}"),
        ("nodes: 2", f"nodes: {nodes}"),
        ("--steps 200", f"--steps {steps} --pause 0.05"),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    said = ended(shell, text)
    total = nodes * steps * (nodes * steps + 1) // 2
    assert f"rank 0: the sum of {nodes * steps} numbers is {total}" in said
    is_paid_for(shell, nodes)


def test_a_gang_one_of_whose_machines_is_taken_goes_on_where_all_of_it_was(shell: Shell) -> None:
    weather = WEATHER + "interrupt: [{after: 90s, machine: 2, notice: 120s}]\n"
    said = ran(shell, f"python3 {RING} --steps 150 --pause 0.05", 2, weather)
    assert f"is {300 * 301 // 2}" in said
    began = [line for line in said.splitlines() if "begins after step" in line]
    assert began and not began[-1].endswith("step 0"), "it resumed"
    told = events(shell)
    placed = [one for one in told if isinstance(one, e.Placed)]
    assert len(placed) == 2, "one interruption costs one more attempt"
    saved = {
        (one.attempt, one.rank, one.checkpoint.name)
        for one in told
        if isinstance(one, e.CheckpointSaved)
    }
    step = int(began[-1].rpartition(" ")[2])
    name = f"step-{step:06d}.json"
    assert {(1, 0, name), (1, 1, name)} <= saved, "what it went on from, both had saved"


def torch_python() -> str:
    """Return a Python that has PyTorch; empty: there is none."""
    for name in ("python3", "python"):
        found = shutil.which(name)
        if found is None:
            continue
        tried = subprocess.run([found, "-c", "import torch.distributed"], capture_output=True)
        if tried.returncode == 0:
            return found
    return ""


@pytest.mark.parametrize("nodes", [2, 4])
def test_ranks_of_pytorch_find_each_other_by_torchrun(shell: Shell, nodes: int) -> None:
    python = torch_python()
    if not python:
        pytest.skip("PyTorch is not installed")
    script = shell.folder / "all_reduce.py"
    script.write_text(TORCH)
    said = ran(
        shell,
        f"{python} -m torch.distributed.run --nnodes $CLOUDWHALE_NUM_NODES "
        "--node-rank $CLOUDWHALE_NODE_RANK --master-addr $MASTER_ADDR "
        f"--master-port $MASTER_PORT {script}",
        nodes,
    )
    assert f"rank 0 of {nodes} has the sum {nodes * (nodes + 1) // 2}" in said
    is_paid_for(shell, nodes)
