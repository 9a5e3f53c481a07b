"""`rehearse` on real jobs: who resumes, who only looks like it; and nothing is left behind."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shell import Done, Shell, until

PROGRAM = Path(__file__).with_name("rehearsed.py")
FOR = "4s"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "job").mkdir()
    shutil.copy(PROGRAM, tmp_path / "job")
    typed = Shell(tmp_path, {"TMPDIR": str(tmp_path / "tmp")})
    yield typed
    typed.close()


def a_job(shell: Shell, kind: str, more: str = "") -> str:
    outside = shell.folder / "outside"
    return shell.write(
        f"{kind}.yaml",
        f"name: {kind}\nworkdir: job\ncommand: exec python3 rehearsed.py {kind}\n"
        f"env: {{OUTSIDE: {outside}}}\ncheckpoint: {{every: 2s, grace: 2s}}\n{more}",
    )


def rehearsed(shell: Shell, kind: str, *words: str) -> tuple[int, dict[str, Any]]:
    said = shell("rehearse", a_job(shell, kind), "--for", FOR, "--json", *words)
    assert said.out, said.err
    return said.code, said.document


def left_behind(shell: Shell) -> list[str]:
    """Return what is left of a rehearsal: folders and processes."""
    trials = [str(path) for path in (shell.folder / "tmp").glob("cloudwhale-*")]
    return trials + [str(each.cmdline()) for each in shell.processes()]


@pytest.mark.parametrize("kind", ["good", "silent", "old-names"])
def test_a_job_that_resumes_is_told_so(shell: Shell, kind: str) -> None:
    code, found = rehearsed(shell, kind)
    assert (code, found["verdict"]) == (0, "resumes"), found
    assert found["was_read"] is True
    assert found["lost_work_s"] < 2.0
    assert left_behind(shell) == []


@pytest.mark.parametrize(
    "kind",
    ["deaf", "constant-deaf", "resets", "copies", "silent-deaf", "silent-clean", "elsewhere"],
)
def test_a_job_that_restarts_is_failed_although_codes_and_files_look_right(
    shell: Shell, kind: str
) -> None:
    code, found = rehearsed(shell, kind)
    assert (code, found["verdict"]) == (1, "restarts"), found
    assert [one["exit_code"] for one in found["attempts"]][:2] == [143, 143]
    assert min(one["saves"] for one in found["attempts"][:2]) > 0


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        ("opaque", "cannot-tell"),
        ("saves-nothing", "saves-nothing"),
        ("fails", "saves-garbage"),
        ("ignores", "ignores-its-signal"),
        ("too-late", "saves-too-late"),
        ("ends-early", "ends-early"),
        ("fails-early", "ends-early"),
    ],
)
def test_what_is_wrong_with_a_job_is_named_with_a_remedy(
    shell: Shell, kind: str, verdict: str
) -> None:
    code, found = rehearsed(shell, kind)
    assert (code, found["verdict"]) == (1, verdict), found
    assert found["says"] and found["remedy"]


def test_a_job_that_saves_now_and_then_alone_resumes_and_loses_more(shell: Shell) -> None:
    code, found = rehearsed(shell, "only-sometimes")
    assert (code, found["verdict"]) == (0, "resumes"), found
    assert found["attempts"][0]["exit_code"] == 143, "its signal has killed it"


def test_a_job_that_is_done_before_its_time_is_over_is_preempted_sooner(shell: Shell) -> None:
    code, found = rehearsed(shell, "short")
    assert (code, found["verdict"]) == (0, "resumes"), found
    assert found["attempts"][0]["ran_s"] < 3.5


def test_a_person_sees_how_far_it_is_and_what_was_measured(shell: Shell) -> None:
    said = shell("rehearse", a_job(shell, "good"), "--for", FOR)
    assert said.code == 0, said.err
    for words in ("runs for 4.0 s", "is preempted: SIGTERM", "is resumed from", "good: resumes"):
        assert words in said.out
    assert "a notice of 30 s is enough" in said.out


def test_nothing_of_the_users_own_store_is_touched(shell: Shell) -> None:
    shell("submit", a_job(shell, "good"))
    before = shell.states()
    code, _ = rehearsed(shell, "good")
    assert code == 0
    assert shell.states() == before == {"good": "pending"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_interrupts_a_rehearsal_leaves_nothing_behind(
    shell: Shell, number: signal.Signals
) -> None:
    running = shell.start("rehearse", a_job(shell, "ignores"), "--for", "5m")

    def printing() -> bool:
        trials = (shell.folder / "tmp").glob("cloudwhale-*/nodes/*/attempts/*/1/log/000001")
        return any(log.stat().st_size > 0 for log in trials)

    until("the job to print", printing)
    running.send_signal(number)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 128 + number, out
    assert "Interrupted" in out
    assert left_behind(shell) == []


def refused(shell: Shell, name: str, text: str, *words: str) -> Done:
    return shell("rehearse", shell.write(f"{name}.yaml", text), "--for", FOR, *words)


def test_what_this_host_cannot_run_is_refused_with_its_line_or_declared(shell: Shell) -> None:
    wants = "name: big\ncommand: exit 3\nresources: {gpu: {count: 2, model: H100}, cpu: 500}\n"
    said = refused(shell, "big", wants)
    assert said.code == 111
    assert "big.yaml:3:1" in said.err and "--declare" in said.err
    declared = refused(shell, "big", wants, "--declare", "--json")
    assert declared.document["verdict"] == "ends-early"
    assert declared.document["attempts"][0]["exit_code"] == 3


def test_a_container_is_refused_where_there_is_no_docker(shell: Shell) -> None:
    shell.settings = {**shell.settings, "DOCKER_HOST": f"unix://{shell.folder}/nothing"}
    said = refused(shell, "boxed", "name: boxed\nimage: debian\ncommand: exit 3\n")
    assert said.code == 111
    assert "boxed.yaml:2:1" in said.err and "Start Docker" in said.err


def test_a_gang_is_refused_or_rehearsed_as_one(shell: Shell) -> None:
    gang = "name: gang\ncommand: exit $CLOUDWHALE_NUM_NODES\nnodes: 2\n"
    said = refused(shell, "gang", gang)
    assert said.code == 111 and "a gang of 2" in said.err and "--declare" in said.err
    alone = refused(shell, "gang", gang, "--declare", "--json").document
    assert alone["attempts"][0]["exit_code"] == 1


def test_of_several_jobs_one_is_named_and_of_an_array_the_first_is_taken(shell: Shell) -> None:
    text = (
        "jobs:\n- {name: a, command: exit 1}\n"
        "- {name: b, command: 'exit $seed', array: {seed: 5..7}, after: [a]}\n"
    )
    said = refused(shell, "two", text)
    assert said.code == 2 and "--job a" in said.err and "a, b" in said.err
    assert refused(shell, "two", text, "--job", "c").code == 2
    array = refused(shell, "two", text, "--job", "b", "--json").document
    assert array["attempts"][0]["exit_code"] == 5


def test_a_time_that_is_none_or_too_short_is_wrong_usage(shell: Shell) -> None:
    file = a_job(shell, "good")
    assert shell("rehearse", file, "--for", "soon").code == 2
    assert shell("rehearse", file, "--for", "1s").code == 2
