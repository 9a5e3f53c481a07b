"""Errors that are found long after a file was read still say where in it their cause stands."""

from pathlib import Path

import pytest

from cloudwhale.cli.spots import in_its_place
from cloudwhale.spi.errors import NotThere

ONE = """
name: train
command: python train.py
secrets: [HF_TOKEN, WANDB_KEY]
after: [tokenise, clean]
"""
SEVERAL = """
defaults:
  secrets:
    - HF_TOKEN
jobs:
  - {name: a, command: x}
  - name: b
    command: x
    env: {WANDB_KEY: WANDB_KEY}
    secrets: [WANDB_KEY]
    after: a-job
"""
JSON = """{"name": "train", "command": "x",
 "after": ["tokenise"]}"""


@pytest.mark.parametrize(
    ("text", "key", "word", "where"),
    [
        (ONE, "secrets", "WANDB_KEY", "4:21"),
        (ONE, "after", "tokenise", "5:9"),
        (SEVERAL, "secrets", "HF_TOKEN", "4:7"),
        (SEVERAL, "secrets", "WANDB_KEY", "10:15"),
        (SEVERAL, "after", "a-job", "11:12"),
        (JSON, "after", "tokenise", "2:12"),
    ],
)
def test_what_is_not_there_is_shown_where_the_file_names_it(
    tmp_path: Path, text: str, key: str, word: str, where: str
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text)
    placed = in_its_place(NotThere("it is not there", "Add it.", key=key, word=word), file)
    assert str(placed) == f"{file}:{where}: it is not there\nAdd it."


@pytest.mark.parametrize("text", ["name: train\n", ": [", None])
def test_a_file_that_has_changed_since_is_named_without_a_line(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "job.yaml"
    if text is not None:
        file.write_text(text)
    placed = in_its_place(NotThere("it is not there", "Add it.", key="after", word="a"), file)
    assert str(placed) == f"{file}: it is not there\nAdd it."
