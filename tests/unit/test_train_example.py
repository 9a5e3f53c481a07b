"""The example training: however it is interrupted, it ends as if it had not been."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cloudwhale import clock

PROGRAM = Path(__file__).parents[2] / "examples" / "train" / "train.py"
SMALL = ("--hidden", "16", "--batch", "64")
STEPS = 60
LIMIT_S = 20.0  # a start on a busy machine; a healthy one takes half a second


@pytest.fixture(scope="module")
def program() -> ModuleType:
    """Import the program without running it."""
    spec = spec_from_file_location("example_train", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launch(folder: Path, *words: str, **env: str) -> subprocess.Popen[str]:
    """Start the program in a folder, as a job would be."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), *SMALL, *words],
        cwd=folder,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a training far too long to end, and leave no process behind."""
    (tmp_path / "cut").mkdir()
    with launch(tmp_path / "cut", "--steps", "1000000", "--save-every-s", "0") as process:
        yield process
        process.kill()


def run(folder: Path, *words: str, **env: str) -> tuple[int, str]:
    """Run the program to its end; return its exit code and its output."""
    process = launch(folder, *words, **env)
    output, _ = process.communicate(timeout=LIMIT_S)
    return process.returncode, output


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for a condition, and fail when it does not come."""
    steady = clock.SystemClock().steady
    limit = steady() + LIMIT_S
    while not holds():
        assert steady() < limit, f"waited {LIMIT_S} s for {what}"
        clock.wait(0.01)


def losses(folder: Path) -> list[float]:
    """Return what the program wrote of every step."""
    found: list[float] = json.loads((folder / "loss.json").read_text())["losses"]
    return found


def uninterrupted(folder: Path, steps: int) -> list[float]:
    """Return the losses of a run that nobody disturbs."""
    folder.mkdir()
    code, output = run(folder, "--steps", str(steps))
    assert code == 0, output
    return losses(folder)


def last_step(folder: Path) -> int:
    """Return the step of a run's newest checkpoint."""
    return int(checkpoints(folder)[-1].removeprefix("step-").removesuffix(".npz"))


def checkpoints(folder: Path) -> list[str]:
    """Return the names of the whole checkpoints in a run's folder."""
    return sorted(file.name for file in (folder / "ckpt").glob("step-*.npz"))


@pytest.mark.parametrize("seed", range(5))
def test_a_training_cut_at_random_steps_has_the_losses_of_an_uncut_one(
    program: ModuleType, tmp_path: Path, seed: int
) -> None:
    def fresh() -> Any:
        return program.Training(seed=seed, rate=1e-3, hidden=16, batch=64)

    cuts = sorted(random.Random(seed).sample(range(1, STEPS), 6)) + [STEPS]
    whole, cut = fresh(), fresh()
    with program.ThreadPoolExecutor(program.SHARDS) as cores:
        while whole.step < STEPS:
            whole.advance(cores)
        for end in cuts:
            cut = fresh()
            program.resume(cut, tmp_path)
            while cut.step < end:
                cut.advance(cores)
            cut.save(tmp_path)
    assert cut.losses == whole.losses
    for one, two in zip(cut.network.weights, whole.network.weights, strict=True):
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_is_stopped_and_started_again_ends_the_same(
    tmp_path: Path, endless: subprocess.Popen[str], number: signal.Signals
) -> None:
    folder = tmp_path / "cut"
    until(lambda: len(checkpoints(folder)) > 1, "two checkpoints")
    endless.send_signal(number)
    output, _ = endless.communicate(timeout=LIMIT_S)
    reached = last_step(folder)
    code, more = run(folder, "--steps", str(reached + STEPS), CLOUDWHALE_RESUME="1")
    assert code == 0, output + more
    assert f"resumed from step-{reached:06d}.npz" in more
    assert losses(folder) == uninterrupted(tmp_path / "whole", reached + STEPS)


def test_sigterm_saves_the_step_it_is_in_and_ends_within_two_seconds(
    tmp_path: Path, endless: subprocess.Popen[str]
) -> None:
    folder = tmp_path / "cut"
    until(lambda: bool(checkpoints(folder)), "a checkpoint")
    steady = clock.SystemClock().steady
    asked_at = steady()
    endless.terminate()
    output, _ = endless.communicate(timeout=LIMIT_S)
    took_s = steady() - asked_at
    assert endless.returncode == 143
    assert output.splitlines()[-1] == f"stopped by signal 15: step {last_step(folder)} is saved"
    assert took_s < 2.0


def test_a_torn_checkpoint_is_passed_over_for_the_one_before(tmp_path: Path) -> None:
    assert run(tmp_path, "--steps", "20")[0] == 0
    newest = tmp_path / "ckpt" / "step-000020.npz"
    (tmp_path / "ckpt" / "step-000030.npz").write_bytes(newest.read_bytes()[:-700])
    (tmp_path / "ckpt" / "step-000031.npz").write_bytes(b"")
    code, output = run(tmp_path, "--steps", "40")
    assert code == 0
    assert "step-000031.npz cannot be read" in output
    assert "step-000030.npz cannot be read" in output
    assert "resumed from step-000020.npz: step 20 is done" in output
    assert losses(tmp_path) == uninterrupted(tmp_path / "whole", 40)


def test_a_checkpoint_of_other_arguments_is_refused_with_a_remedy(tmp_path: Path) -> None:
    assert run(tmp_path, "--steps", "5")[0] == 0
    code, output = run(tmp_path, "--steps", "5", "--seed", "7")
    assert code == 2
    assert "use the same arguments, or another checkpoint folder" in output


def test_saving_goes_to_the_folder_that_cloudwhale_names_and_keeps_three(tmp_path: Path) -> None:
    named = tmp_path / "elsewhere"
    code, output = run(
        tmp_path, "--steps", "9", "--save-every-s", "0", CLOUDWHALE_CHECKPOINT_DIR=str(named)
    )
    assert code == 0
    assert "final loss" in output
    assert sorted(file.name for file in named.iterdir()) == [
        "step-000007.npz",
        "step-000008.npz",
        "step-000009.npz",
    ]


def test_resuming_without_a_checkpoint_says_so_and_starts_anew(tmp_path: Path) -> None:
    code, output = run(tmp_path, "--steps", "3", CLOUDWHALE_RESUME="1")
    assert code == 0
    assert "holds no checkpoint that can be read: starting anew" in output


def test_the_network_learns_the_spirals(program: ModuleType) -> None:
    training = program.Training(seed=0, rate=1e-2, hidden=32, batch=256)
    with program.ThreadPoolExecutor(program.SHARDS) as cores:
        while training.step < 1000:
            training.advance(cores)
    assert training.network.accuracy(training.points, training.labels) > 0.9
