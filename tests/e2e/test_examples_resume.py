"""The trainings of the examples are preempted, go on, and end with the loss of an undisturbed one.

Those that need a framework are skipped where the first python3 in PATH lacks it.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import Shell, until

EXAMPLES = Path(__file__).parents[2] / "examples"
FINAL = re.compile(r"final loss (\S+) after (\d+) steps")
SAVED = {".npz", ".pt", ".ckpt"}
LIMIT_S = 280  # a framework takes seconds to import, on a busy machine a minute


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    typed = Shell(tmp_path, {"CLOUDWHALE_CPU": "2"})
    yield typed
    typed.close()


def needs(*modules: str) -> None:
    """Skip the test where a program could not import what it needs."""
    python = shutil.which("python3")
    if python is None:
        pytest.skip("there is no python3 in PATH")
    for module in modules:
        found = f"import importlib.util as u; raise SystemExit(u.find_spec({module!r}) is None)"
        if subprocess.run([python, "-c", found], check=False).returncode:
            pytest.skip(f"{python} has no {module}")


def has_saved(shell: Shell, job: str) -> bool:
    """Say whether a job's first attempt has saved anything, published or not."""
    attempt = f"nodes/*/attempts/{job}/1"
    saved = [one for one in shell.home.glob(f"{attempt}/**/*") if one.suffix in SAVED]
    trainers = shell.home.glob(f"{attempt}/checkpoints/checkpoint-*")
    return bool(saved) or any(True for _ in trainers)


def final(shell: Shell, name: str, words: tuple[str, ...], *, preempted: bool) -> tuple[str, str]:
    """Run a training to its end; preempt it once on the way if that is asked for."""
    text = (shell.folder / "examples" / f"{name}.yaml").read_text()
    text = re.sub(r"every: \w+", "every: 1s", text)
    file = shell.write(f"examples/{name}-{'cut' if preempted else 'whole'}.yaml", text)
    before = len(shell.jobs())
    run = shell.start("run", "-y", "--new", file, "--", *words)
    if preempted:
        until("it to be queued", lambda: len(shell.jobs()) > before, LIMIT_S)
        until("a save", lambda: has_saved(shell, shell.jobs()[0].id), LIMIT_S)
        job = shell.jobs()[0]
        assert shell("pause", job.id).code == 0
        until("it to stop", lambda: shell.jobs()[0].state == "paused", LIMIT_S)
        assert shell("resume", job.id).code == 0
    out, _ = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 0, out
    if preempted:
        assert (shell.jobs()[0].attempt, "resum" in out) == (2, True)
    found = FINAL.findall(out)
    assert found, out[-2000:]
    loss, steps = found[-1]
    return str(loss), str(steps)


@pytest.mark.parametrize(
    ("name", "modules", "words"),
    [
        ("train", ("numpy",), ("--steps", "2000", "--save-every-s", "0.3", "--hidden", "64")),
        ("torch_train", ("torch",), ("--steps", "5000", "--save-every-s", "0.5")),
        (
            "trainer_train",
            ("torch", "transformers", "accelerate"),
            ("--steps", "2500", "--save-steps", "100"),
        ),
        ("lightning_train", ("torch", "lightning"), ("--steps", "3000", "--save-steps", "100")),
    ],
)
def test_a_training_that_was_preempted_ends_with_the_loss_of_one_that_was_not(
    shell: Shell, name: str, modules: tuple[str, ...], words: tuple[str, ...]
) -> None:
    needs(*modules)
    whole = final(shell, name, words, preempted=False)
    assert final(shell, name, words, preempted=True) == whole
