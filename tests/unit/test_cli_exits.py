"""Exit codes, the sentences that go with them, and what options mean."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from makers import a_job

from cloudwhale.cli.entry import Sentences
from cloudwhale.cli.exits import Bug, Exit, NotFound, WrongUsage, for_error, for_jobs
from cloudwhale.cli.spots import spot_of_job
from cloudwhale.cli.wishes import Wishes
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.spi import errors


def failed(job: str, code: int | None, reason: Code, ended_at: float = 1.0) -> Job:
    return a_job(job).but(
        state=JobState.FAILED,
        exit_code=code,
        reason=Reason(code=reason, says="it failed"),
        ended_at=ended_at,
    )


def parked(job: str, reason: Code) -> Job:
    return a_job(job).but(state=JobState.PARKED, reason=Reason(code=reason, says="parked"))


COMPLETED = a_job("ok").but(state=JobState.COMPLETED, ended_at=0.5)


@pytest.mark.parametrize(
    ("jobs", "code"),
    [
        ([COMPLETED], 0),
        ([COMPLETED, failed("a", 3, Code.COMMAND_FAILED)], 3),
        ([failed("a", 3, Code.RETRIES_SPENT)], 114),
        ([failed("a", None, Code.DEPENDENCY_FAILED)], 1),
        ([a_job("a").but(state=JobState.CANCELLED, ended_at=1.0)], 116),
        ([parked("a", Code.DEADLINE_PASSED)], 113),
        ([parked("a", Code.OVER_BUDGET)], 112),
    ],
)
def test_a_run_ends_with_the_code_of_the_job_that_did_not_complete(
    jobs: list[Job], code: int
) -> None:
    assert for_jobs(jobs) == code


def test_of_several_the_first_that_failed_counts_by_time() -> None:
    late = failed("a", 3, Code.COMMAND_FAILED, ended_at=9.0)
    early = failed("b", 4, Code.COMMAND_FAILED, ended_at=5.0)
    assert for_jobs([parked("c", Code.OVER_BUDGET), late, early]) == 4


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.SpecError("x"), 110),
        (errors.NothingCanRunIt("x"), 111),
        (errors.Denied("x"), 115),
        (errors.QuotaExceeded("x"), 115),
        (errors.SettingsError("x"), 2),
        (WrongUsage("x"), 2),
        (NotFound("x"), 2),
        (Bug("x"), 70),
        (errors.StoreUnusable("x"), 1),
    ],
)
def test_every_error_has_its_code(error: errors.CloudwhaleError, code: int) -> None:
    assert for_error(error) == code


def test_an_error_reaches_the_user_as_a_sentence_and_its_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end, Sentences():
        raise errors.SpecError("cpu is 'x'", "Write a number.", file="a.yaml", line=3, column=7)
    assert end.value.code == Exit.BAD_JOB_FILE
    assert capsys.readouterr().err == "cloudwhale: a.yaml:3:7: cpu is 'x'\n  Write a number.\n"


def test_a_bug_becomes_a_sentence_and_a_trace_in_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path))
    with pytest.raises(SystemExit) as end, Sentences():
        raise KeyError("lost")
    assert end.value.code == Exit.BUG
    said = capsys.readouterr().err
    (trace,) = (tmp_path / "traces").iterdir()
    assert str(trace) in said
    assert "Traceback" not in said
    assert "KeyError: 'lost'" in trace.read_text()


def test_a_bug_is_told_even_where_nothing_can_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path / "file"))
    with pytest.raises(SystemExit), Sentences():
        raise KeyError("lost")
    assert "KeyError: 'lost'" in capsys.readouterr().err


def test_a_thread_that_dies_says_so_in_a_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path))

    def dies() -> None:
        raise KeyError("lost")

    with Sentences():
        thread = threading.Thread(target=dies)
        thread.start()
        thread.join()
    said = capsys.readouterr().err
    assert "a bug in cloudwhale itself" in said
    assert "Traceback" not in said


def test_a_reader_that_has_gone_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, Sentences():
        raise BrokenPipeError(32, "Broken pipe")
    assert end.value.code == Exit.TROUBLE
    assert capsys.readouterr().err == ""


def test_wishes_become_overrides() -> None:
    wishes = Wishes("12.5", ("A=1", "B=x=y"), ("--lr", "3"), no_checkpoint_ok=True)
    overrides = wishes.overrides()
    assert overrides.budget == 12_500_000
    assert overrides.env == {"A": "1", "B": "x=y"}
    assert overrides.args == ("--lr", "3")
    assert overrides.no_checkpoint_ok


@pytest.mark.parametrize(
    "wishes",
    [
        Wishes(budget="fifty"),
        Wishes(budget="-1"),
        Wishes(env=("A",)),
        Wishes(env=("1A=x",)),
        Wishes(env=("CLOUDWHALE_JOB_ID=x",)),
    ],
)
def test_a_wrong_option_is_wrong_usage_with_a_remedy(wishes: Wishes) -> None:
    with pytest.raises(WrongUsage) as wrong:
        wishes.overrides()
    assert wrong.value.says.startswith("--")
    assert wrong.value.remedy


FILE = """\
defaults: {command: "true"}
jobs:
  - name: small
  - name: big
    resources: {gpu: 9}
"""


def test_the_place_of_an_impossible_demand_is_found_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(FILE)
    big, small = spot_of_job(path, "big"), spot_of_job(path, "small")
    assert big is not None and (big.line, big.column) == (5, 5)
    assert small is not None and small.line == 3
    assert spot_of_job(path, "nobody") is None
    assert spot_of_job(tmp_path / "gone.yaml", "big") is None


INTERRUPTED = """\
import sys
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Slow())
sys.argv = ["cloudwhale", "ps"]
from cloudwhale.cli import main
main()
"""


@pytest.mark.parametrize("module", ["cloudwhale.cli.entry", "typer", "cloudwhale.cli.looking"])
def test_ctrl_c_while_a_command_starts_leaves_no_traceback(module: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module)],
        env={**os.environ, "CLOUDWHALE_HOME": str(tmp_path)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
