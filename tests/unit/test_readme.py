"""The README says what the program does: its lists are compared with the code's."""

import re
from pathlib import Path

import typer.main
import yaml

from cloudwhale.cli.app import whole_app
from cloudwhale.cli.exits import Exit
from cloudwhale.control.intake import read_jobs
from cloudwhale.control.intake.keys import JOB
from cloudwhale.model.job import JobState

README = (Path(__file__).parents[2] / "README.md").read_text()


def section(title: str) -> str:
    """Return the text under a heading."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_job_file_that_is_shown_has_every_key_and_is_accepted(tmp_path: Path) -> None:
    least, whole = re.findall(r"```yaml\n(.*?)```", section("The job file"), re.DOTALL)
    for name, text in (("least", least), ("whole", whole)):
        (tmp_path / f"{name}.yaml").write_text(text)
        assert read_jobs(tmp_path / f"{name}.yaml", now=0.0).specs
    assert yaml.safe_load(whole).keys() == JOB.keys()


def test_every_command_is_listed_and_no_other() -> None:
    rows = re.findall(r"^\| (`.*?) \|", section("The commands"), re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([a-z]+)", row)}
    group = typer.main.get_group(whole_app())
    assert listed == {name for name, command in group.commands.items() if not command.hidden}


def test_every_exit_code_is_listed() -> None:
    text = section("The commands").split("Exit codes:")[1]
    listed = {int(code) for code in re.findall(r"\b(\d+) [a-z]", text)}
    assert listed == {int(code) for code in Exit} - {Exit.SIGNAL}


def test_every_state_of_a_job_is_listed() -> None:
    listed = set(re.findall(r"`([a-z]+)`", section("Words").split("A job is")[1]))
    assert listed == {state.value for state in JobState}
