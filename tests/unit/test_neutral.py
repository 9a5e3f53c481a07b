"""The house does not know the name of any cloud: what is one cloud's own is its provider's."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ("cloudwhale", "policies")
NAMES = re.compile(
    r"(?<![a-z])(aws|amazon|ec2|gcp|google|gce|compute engine|azure|libcloud|imds)(?![a-z])", re.I
)
"""Also as parts of names, like `is_on_gcp` and `fd00:ec2::254`."""


def named(root: Path) -> Iterator[str]:
    """Yield where under a folder the house names a cloud, with the line."""
    for room in HOUSE:
        for path in sorted((root / room).rglob("*")):
            where = path.relative_to(root).as_posix()
            if path.is_dir() or "__pycache__" in where:
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if NAMES.search(f"{where} {line}"):
                    yield f"{where}:{number}: {line.strip()}"


def test_the_house_names_no_cloud() -> None:
    assert list(named(ROOT)) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("cloudwhale/planning/planted.py", 'if offer.provider == "aws":'),
        ("cloudwhale/control/planted.py", "    # as Google Cloud does"),
        ("cloudwhale/cli/planted.py", "def is_on_gcp() -> bool:"),
        ("policies/cloudwhale_policies/planted.py", '"""What EC2 says."""'),
        ("cloudwhale/model/planted.txt", "metadata of the Compute Engine"),
        ("cloudwhale/planning/gce.py", ""),
    ],
)
def test_a_name_that_is_planted_is_found(tmp_path: Path, file: str, line: str) -> None:
    planted = tmp_path / file
    planted.parent.mkdir(parents=True)
    planted.write_text(f'"""A room."""\n{line}\n')
    assert [one.partition(":")[0] for one in named(tmp_path)][:1] == [file]


def test_words_that_hold_such_letters_are_no_names(tmp_path: Path) -> None:
    (tmp_path / "cloudwhale").mkdir()
    text = "laws, draws, Googled, a lease, allowance, gcpu, awsome\n"
    (tmp_path / "cloudwhale/words.py").write_text(text)
    assert list(named(tmp_path)) == []
