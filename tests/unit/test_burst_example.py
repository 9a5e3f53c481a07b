"""The program of the burst: however it is interrupted, it ends as if it had not been."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from shell import until

PROGRAM = Path(__file__).parents[2] / "examples" / "burst" / "fit.py"
LIMIT_S = 120.0  # on a busy machine; a healthy one takes a second


def launch(folder: Path, *words: str) -> "subprocess.Popen[str]":
    """Start the program in a folder, as a job would be."""
    folder.mkdir(exist_ok=True)
    env = {**os.environ, "CLOUDWHALE_CHECKPOINT_DIR": str(folder / "ckpt")}
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), "--points", "60", "--width", "6", *words],
        cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def ends(process: "subprocess.Popen[str]") -> tuple[int, str]:
    out, _ = process.communicate(timeout=LIMIT_S)
    return process.returncode, out


def final(out: str) -> str:
    found = re.findall(r"final loss (\S+), ", out)
    assert found, out
    return str(found[0])


def epoch(checkpoint: Path) -> int:
    """Return after which epoch it was saved."""
    return int(checkpoint.stem.removeprefix("epoch-"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_fit_that_was_stopped_ends_with_the_same_last_digit(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = launch(tmp_path / "cut", "--epochs", "1000000000")
    saved = tmp_path / "cut" / "ckpt"
    try:
        until("it to save", lambda: any(saved.glob("epoch-*.json")))
        process.send_signal(number)
        code, out = ends(process)
    finally:
        process.kill()
    if number is signal.SIGTERM:
        assert code == 143 and "stopped at epoch" in out
    epochs = max(2500, epoch(max(saved.glob("epoch-*.json"), key=epoch)) + 200)
    again = ends(launch(tmp_path / "cut", "--epochs", str(epochs)))
    assert again[0] == 0 and "resumed at epoch" in again[1]
    whole = ends(launch(tmp_path / "whole", "--epochs", str(epochs)))
    assert whole[0] == 0, whole[1]
    assert final(again[1]) == final(whole[1])
    left = json.loads((tmp_path / "cut" / "results" / "fit.json").read_text())
    assert left["epochs"] == epochs and left["right"] > 0.8
