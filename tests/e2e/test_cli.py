"""Commands that start nothing: refusals, empty homes, documents."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import COMMAND, Shell

from cloudwhale.control.store import HolderLock


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    typed = Shell(tmp_path)
    yield typed
    typed.close()


def test_a_new_home_is_empty_and_says_what_to_do(shell: Shell) -> None:
    assert "cloudwhale run FILE" in shell("ps").out
    assert shell("ps", "--json").document == {"jobs": []}
    assert shell("nodes", "--json").document["nodes"] == []


@pytest.mark.parametrize(
    "words",
    [
        ("logs", "x"),
        ("explain", "x"),
        ("cancel", "x"),
        ("attach",),
        ("replay", "7"),
        ("replay", "9" * 20),
    ],
)
def test_nothing_found_is_a_sentence_with_a_remedy(shell: Shell, words: tuple[str, ...]) -> None:
    said = shell(*words)
    assert said.code == 2
    assert said.err.startswith("cloudwhale: ")
    assert "\n  " in said.err
    assert "Traceback" not in said.err


def test_a_wrong_key_names_file_line_value_and_remedy(shell: Shell) -> None:
    shell.write("a.yaml", 'name: a\ncommand: "true"\nresorces: {cpu: 1}\n')
    for words in (("run", "-y"), ("submit",), ("plan",)):
        said = shell(*words, "a.yaml")
        assert said.code == 110
        assert "a.yaml:3:1" in said.err
        assert "resorces" in said.err and "resources" in said.err


def test_a_file_that_is_not_there_is_refused(shell: Shell) -> None:
    said = shell("run", "-y", "nothing.yaml")
    assert said.code == 110
    assert "nothing.yaml" in said.err


def test_nobody_is_asked_in_a_pipe(shell: Shell) -> None:
    shell.write("a.yaml", 'name: a\ncommand: "true"\n')
    said = shell("run", "a.yaml")
    assert said.code == 2
    assert "-y" in said.err
    assert shell.jobs() == []


def test_a_budget_that_is_no_money_is_wrong_usage(shell: Shell) -> None:
    shell.write("a.yaml", 'name: a\ncommand: "true"\n')
    said = shell("submit", "a.yaml", "--budget", "fifty")
    assert said.code == 2
    assert "--budget" in said.err


def test_a_home_that_cannot_be_is_a_sentence(shell: Shell) -> None:
    shell.home.write_text("not a folder")
    said = shell("ps")
    assert said.code == 1
    assert said.err.startswith("cloudwhale: ")
    assert "Traceback" not in said.err


def test_a_wrong_setting_says_where_it_was_set(shell: Shell) -> None:
    shell.write("cloudwhale.toml", 'scoer = "best-fit"\n')
    said = shell("ps")
    assert said.code == 2
    assert "cloudwhale.toml" in said.err and "score" in said.err


@pytest.mark.parametrize("url", ["nonsense", "ftp://x/y"])
def test_a_mailbox_that_is_none_is_a_wrong_setting_for_every_command(
    shell: Shell, url: str
) -> None:
    shell.write("a.yaml", 'name: a\ncommand: "true"\n')
    shell.settings = {"CLOUDWHALE_MAILBOX": url}
    for words in (("run", "-y", "a.yaml"), ("submit", "a.yaml"), ("controller", "--until-empty")):
        said = shell(*words)
        assert said.code == 2, said.err
        assert url in said.err and "CLOUDWHALE_MAILBOX" in said.err
        assert "Traceback" not in said.err


def test_a_settings_file_that_is_no_text_is_a_sentence(shell: Shell) -> None:
    (shell.folder / "cloudwhale.toml").write_bytes(b'user = "J\xf6rg"\n')
    said = shell("ps")
    assert said.code == 2
    assert "cloudwhale.toml:1" in said.err and "UTF-8" in said.err


def test_the_version_is_one_document(shell: Shell) -> None:
    assert shell("version", "--json").document["home"] == str(shell.home)


def test_a_task_list_that_is_done_leaves_nothing_to_do(shell: Shell) -> None:
    shell.write(
        "tasks.json",
        '[{"id": "a", "image": "", "gpu_mem_needed": 0, "cmd": "true", "status": "done"}]',
    )
    said = shell("submit", "tasks.json")
    assert said.code == 0
    assert "nothing to do" in said.out
    assert shell.jobs() == []


def test_the_shell_is_offered_jobs(shell: Shell) -> None:
    shell.write("a.yaml", 'name: alpha\ncommand: "true"\n')
    assert shell("submit", "a.yaml").code == 0
    completing = Shell(
        shell.folder,
        {"_CLOUDWHALE_COMPLETE": "complete_bash", "COMP_WORDS": "cloudwhale logs al",
         "COMP_CWORD": "2"},
    )  # fmt: skip
    assert completing().out.startswith("alpha-")


def test_what_was_queued_is_listed_and_can_be_taken_back(shell: Shell) -> None:
    shell.write("a.yaml", 'name: alpha\ncommand: "true"\n')
    queued = shell("submit", "a.yaml", "--json").document
    (job,) = queued["runs"][0]["jobs"]
    assert shell.states() == {"alpha": "pending"}
    said = shell("cancel", job["id"])
    assert said.code == 0
    assert "No controller runs" in said.out


def test_that_nobody_works_on_the_queue_is_said_to_who_looks(shell: Shell) -> None:
    shell.write("a.yaml", 'name: a\ncommand: "true"\n')
    shell("submit", "a.yaml")
    for words in (("ps",), ("explain", "a")):
        assert "cloudwhale controller --until-empty" in shell(*words).err
        assert shell(*words, "--json").err == ""
    lock = HolderLock(shell.home / "cloudwhale.db.lock")
    assert lock.acquire()
    assert shell("ps").err == ""
    lock.release()
    shell("cancel", "a")
    shell("controller", "--until-empty")
    assert shell("ps").err == ""


def test_a_folder_that_is_gone_is_a_sentence(shell: Shell) -> None:
    gone = shell.folder / "gone"
    for words in ("ps", "submit a.yaml", "run -y a.yaml"):
        gone.mkdir()
        done = subprocess.run(
            ["sh", "-c", f"cd {gone}; rmdir {gone}; {sys.executable} -m cloudwhale {words}"],
            env=shell.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert "is gone" in done.stderr


def test_a_word_that_is_no_text_is_wrong_usage(shell: Shell) -> None:
    done = subprocess.run(
        [*COMMAND, "ps", "--project", b"a\xff"],
        cwd=shell.folder, env=shell.environment, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"a\\xff, is not UTF-8" in done.stderr


def test_a_terminal_without_some_letter_shows_another(shell: Shell) -> None:
    shell.settings = {"PYTHONIOENCODING": "ascii"}
    said = shell("ps", "--project", "\u00fc")
    assert said.code == 0, said.err
    assert "of project ?;" in said.out


def test_a_trace_is_written_whatever_was_typed(shell: Shell) -> None:
    script = (
        "import sys; sys.argv.append(chr(0xdcff)); from cloudwhale.cli.entry import Sentences\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script + "with Sentences(): raise KeyError('x')"],
        env=shell.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 70, done.stderr
    (trace,) = (shell.home / "traces").iterdir()
    assert "\\udcff" in trace.read_text()
