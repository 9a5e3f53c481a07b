"""The README says what the program does: its lists are compared with the code's."""

import json
import re
from decimal import Decimal
from pathlib import Path

import typer.main
import yaml
from mornings import the_report

from cloudwhale.cli.app import whole_app
from cloudwhale.cli.exits import Exit
from cloudwhale.cli.plan_view import plan_sheet
from cloudwhale.control.intake import read_jobs
from cloudwhale.control.intake.keys import JOB
from cloudwhale.control.preview import Preview
from cloudwhale.model.job import JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.receipt import Otherwise, Parts
from cloudwhale.model.run import Run
from cloudwhale.reporting.morning_text import morning_sheets
from cloudwhale.reporting.outlooks import outlooks_sheet
from cloudwhale.reporting.receipt import run_receipt
from cloudwhale.reporting.receipt_text import (
    EXPECTED,
    machines_sheet,
    otherwise_sheet,
    purposes_sheet,
)
from cloudwhale.reporting.sheet import Cell, Sheet, plain_lines
from cloudwhale.reporting.tables import receipt_sheet
from cloudwhale.settings import Settings

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


def test_every_reason_is_listed_in_the_order_of_the_code() -> None:
    rows = section("Reasons").split("\n- ", 1)[1]
    assert re.findall(r"`([a-z-]+)`", rows) == [code.value for code in Code]


def test_every_setting_is_listed_with_its_default() -> None:
    rows = re.findall(r"^\| `(.*?)` \| (.*?) \| (.+) \|$", section("Settings"), re.MULTILINE)
    assert [name for name, _, _ in rows] == list(Settings.model_fields)
    assert {name: default for name, default, _ in rows if name != "home"} == {
        name: as_toml(field.default)
        for name, field in Settings.model_fields.items()
        if name != "home"
    }


def as_toml(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{json.dumps(value)}`"


def heads(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.startswith("JOB ")]


def head(sheet: Sheet) -> list[str]:
    row = tuple(Cell("x") for _ in sheet.columns)
    return plain_lines(Sheet(sheet.columns, (row,)))[0].split()


def test_the_transcript_looks_like_what_the_commands_print_now() -> None:
    transcript = README.split("<!-- transcript -->")[1].split("<!-- /transcript -->")[0]
    run = Run(id="r", opened_at=0.0, user="ann", folder="/lab")
    receipt = run_receipt(run, [], 0.0)
    assert heads(transcript) == [
        head(plan_sheet(Preview(jobs=()), [])),
        head(receipt_sheet(receipt)),
    ]
    told = re.findall(r"\[([a-z-]+)\]$", transcript, re.MULTILINE)
    assert told and set(told) <= {code.value for code in Code}
    assert re.findall(r"^\$ (.*)", transcript, re.MULTILINE) == [
        "cloudwhale run examples/train.yaml --budget 50 -y", "cloudwhale explain train",
    ]  # fmt: skip
    assert "1 of 1 job completed, spent 0.00 USD of 50.00 USD (nothing was rented)." in transcript


def transcript(name: str) -> str:
    return README.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0]


def test_the_transcripts_of_money_look_like_what_the_commands_print_now() -> None:
    receipt = [line.split() for line in transcript("receipt").splitlines()]
    a_part = (Parts(useful_usd=Decimal(1)), Decimal(1))
    courses = otherwise_sheet(
        [Otherwise(course="on-demand", jobs=1, rounds=(1,), then_usd=None, other_usd=None)]
    )
    for sheet in (machines_sheet(()), purposes_sheet(*a_part), courses):
        assert head(sheet) in receipt
    assert EXPECTED in transcript("receipt")
    night = [line.split() for line in transcript("morning").splitlines()]
    _, projects, *_ = morning_sheets(the_report())
    assert head(projects) in night
    assert "SPENT SAVED WASTED GPU-H USD/GPU-H".split() in [line[1:] for line in night]
    assert "--sandbox`; retry.on" in transcript("morning")
    forecasts = [line.split() for line in transcript("budget").splitlines()]
    assert head(outlooks_sheet({}, "2026-12")) in forecasts


def test_every_state_of_a_job_is_listed() -> None:
    listed = set(re.findall(r"`([a-z]+)`", section("Words").split("A job is")[1]))
    assert listed == {state.value for state in JobState}
