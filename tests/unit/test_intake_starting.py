"""Jobs that no machine could start are refused when they are submitted, with the line."""

import json
from pathlib import Path

import pytest

from cloudwhale.control.intake import Overrides, read_jobs
from cloudwhale.control.intake.starting import ALL_MOST_BYTES, TEXT_MOST_BYTES
from cloudwhale.model.job import JobSpec
from cloudwhale.spi.errors import SpecError

HEAD = "name: train\ncommand: python train.py\n"
OVER = "x" * (TEXT_MOST_BYTES + 1)


def read(folder: Path, text: str, overrides: Overrides | None = None) -> tuple[JobSpec, ...]:
    file = folder / "job.yaml"
    file.write_text(text)
    return read_jobs(file, now=1_790_000_000.0, overrides=overrides).specs


def refused(folder: Path, text: str, overrides: Overrides | None = None) -> SpecError:
    with pytest.raises(SpecError) as caught:
        read(folder, text, overrides)
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        (f"name: a\ncommand: {OVER}\n", 2, "command: "),
        (f"{HEAD}setup: {OVER}\n", 3, "setup: "),
        (f"{HEAD}env:\n  A: b\n  LONG: {OVER[6:]}y\n", 5, "env.LONG: "),
        (f"{HEAD}array: {{A: [b, {OVER}]}}\n", 3, "array.A: "),
        (f"- {{id: a, gpu_mem_needed: 0,\n   cmd: {OVER}}}\n", 2, "cmd: "),
    ],
    ids=["command", "setup", "env", "array", "task list"],
)
def test_a_text_that_no_process_can_be_given_is_refused(
    tmp_path: Path, text: str, line: int, key: str
) -> None:
    wrong = refused(tmp_path, text)
    assert wrong.line == line
    assert key in wrong.says and f"{TEXT_MOST_BYTES:,} can be given" in wrong.says


def test_the_longest_text_that_a_process_can_be_given_is_taken(tmp_path: Path) -> None:
    longest = OVER[1:]
    (spec,) = read(tmp_path, f"name: a\ncommand: {longest}\nenv: {{A: {longest[2:]}}}\n")
    assert (spec.command, len(spec.env["A"])) == (longest, TEXT_MOST_BYTES - 2)


def test_bytes_count_and_not_letters(tmp_path: Path) -> None:
    half = "\u00e9" * (TEXT_MOST_BYTES // 2 + 1)
    assert "command: " in refused(tmp_path, f"name: a\ncommand: {half}\n").says


def test_what_the_command_line_adds_counts_too(tmp_path: Path) -> None:
    assert refused(tmp_path, HEAD, Overrides(args=(OVER,))).line == 2
    assert "env.A: " in refused(tmp_path, HEAD, Overrides(env={"A": OVER})).says


def test_an_environment_that_is_too_long_as_a_whole_is_refused(tmp_path: Path) -> None:
    env = {f"V{number:02d}": "x" * 100_000 for number in range(ALL_MOST_BYTES // 100_000)}
    wrong = refused(tmp_path, f"{HEAD}env: {json.dumps(env)}\n")
    assert wrong.line and f"{ALL_MOST_BYTES:,} can be given" in wrong.says
    del env["V00"]
    assert len(read(tmp_path, f"{HEAD}env: {json.dumps(env)}\n")) == 1


@pytest.mark.parametrize("path", ["model.pt", "model.pt/deep"])
def test_checkpoints_cannot_be_kept_in_a_file(tmp_path: Path, path: str) -> None:
    (tmp_path / "model.pt").write_bytes(b"weights")
    wrong = refused(tmp_path, f"{HEAD}workdir: .\ncheckpoint:\n  path: {path}\n")
    assert wrong.line == 5
    assert "checkpoint.path: 'model.pt' is a file" in wrong.says


@pytest.mark.parametrize("path", ["there", "there/deep", "nowhere"])
def test_checkpoints_are_kept_in_a_folder_that_is_there_or_not_yet(
    tmp_path: Path, path: str
) -> None:
    (tmp_path / "there").mkdir()
    (spec,) = read(tmp_path, f"{HEAD}workdir: .\ncheckpoint: {{path: {path}}}\n")
    assert spec.checkpoint and spec.checkpoint.path == path
