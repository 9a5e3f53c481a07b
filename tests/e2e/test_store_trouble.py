"""A database that cannot be used now: every command says so, and nothing is lost."""

import ctypes
import os
import select
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shell import COMMAND, LIMIT_S, Done, Shell, until

PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2  # what lets root ignore the modes of files

READERS_TOO = "PRAGMA locking_mode = EXCLUSIVE"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    typed = Shell(tmp_path)
    yield typed
    typed.close()


@contextmanager
def locked(shell: Shell, *settings: str) -> Iterator[None]:
    """Hold the database as another program may, so that nobody writes."""
    other = sqlite3.connect(shell.home / "cloudwhale.db", isolation_level=None)
    for setting in settings:
        other.execute(setting).close()
    other.execute("BEGIN IMMEDIATE").close()
    try:
        yield
    finally:
        other.execute("ROLLBACK").close()
        other.close()


def obey_modes() -> None:
    """Make the process that is about to start obey the modes of files, even when it is root's."""
    if os.geteuid() != 0:
        return
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        if prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "root cannot be made to obey modes here")


def typed_by_an_ordinary_user(shell: Shell, *words: str) -> Done:
    done = subprocess.run(
        [*COMMAND, *words], cwd=shell.folder, env=shell.environment, capture_output=True,
        text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False, preexec_fn=obey_modes,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    folder.chmod(0o500)
    try:
        yield
    finally:
        folder.chmod(0o700)


def is_a_sentence(said: Done, says: str, remedy: str) -> None:
    """Check that a command failed with a sentence and a remedy, not with a trace."""
    assert said.code == 1, said
    assert "Traceback" not in said.out + said.err
    first, *more = said.err.splitlines()
    assert first.startswith("cloudwhale: ")
    assert says in said.err
    assert remedy in " ".join(line.strip() for line in more)


def a_file(shell: Shell, name: str, command: str) -> str:
    return shell.write(f"{name}.yaml", f"name: {name}\ncommand: '{command}'\n")


def until_gate_opens(gate: Path) -> str:
    """A command that runs until a file appears; no sleep decides how long."""
    return f"echo begun; while [ ! -e {gate} ]; do sleep 0.1; done; echo ended"


class Heard:
    """What a started command says, read as it comes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self._pipe = process.stdout.fileno()
        self.text = ""

    def says(self, words: str) -> bool:
        """Read what there is; say whether these words have come."""
        while select.select([self._pipe], [], [], 0.0)[0]:
            data = os.read(self._pipe, 65536)
            if not data:
                break
            self.text += data.decode()
        return words in self.text


# -- locked ----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["run", "-y"], ["submit"], ["ps"]], ids=lambda words: words[0])
def test_a_command_names_a_database_that_is_locked(shell: Shell, words: list[str]) -> None:
    assert shell("ps").code == 0  # makes the database
    given = [*words] if words == ["ps"] else [*words, a_file(shell, "hello", "echo hello")]
    with locked(shell, READERS_TOO):
        is_a_sentence(shell(*given), "cloudwhale.db is locked by another program", "fuser")
    assert shell.jobs() == []
    assert shell(*given).code == 0
    assert len(shell.jobs()) == (0 if words == ["ps"] else 1)


def test_what_is_queued_can_be_looked_at_while_somebody_writes(shell: Shell) -> None:
    assert shell("submit", a_file(shell, "hello", "echo hello")).code == 0
    with locked(shell):
        said = shell("ps", "--json")
        assert [job["name"] for job in said.document["jobs"]] == ["hello"]


def test_a_controller_outlasts_a_lock_and_finishes_its_jobs(shell: Shell, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    assert shell("submit", a_file(shell, "long", until_gate_opens(gate))).code == 0
    assert shell("submit", a_file(shell, "next", "echo next")).code == 0
    controller = shell.start("controller", "--until-empty")
    shell.until_state("long", "running")
    shell.until_state("next", "completed")
    heard = Heard(controller)
    refused = a_file(shell, "refused", "echo refused")
    with locked(shell):
        gate.touch()  # the end of the job is told while nobody can write it down
        until("the controller to say so", lambda: heard.says("controller waits: "))
        is_a_sentence(shell("submit", refused), "is locked by another program", "fuser")
        assert shell.states()["long"] == "running"
    shell.until_state("long", "completed")
    until("the controller to end", lambda: controller.poll() is not None)
    assert controller.returncode == 0
    assert not heard.says("Traceback")
    assert "cloudwhale.db is locked by another program" in heard.text
    assert [job.attempt for job in shell.jobs()] == [1, 1], "nothing ran twice"
    assert "refused" not in shell.states(), "what was refused is not queued"


def test_who_follows_a_run_is_told_of_a_lock_and_of_its_end(shell: Shell, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    follower = shell.start("run", "-y", a_file(shell, "long", until_gate_opens(gate)))
    shell.until_state("long", "running")
    heard = Heard(follower)
    with locked(shell):
        gate.touch()
        until("the follower to say so", lambda: heard.says("is locked by another program"))
    until("the run to end", lambda: heard.says("1 of 1 job completed"))
    assert follower.wait(timeout=LIMIT_S) == 0
    assert "going on" in heard.text
    assert "Traceback" not in heard.text


# -- read-only -------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["run", "-y"], ["submit"], ["ps"]], ids=lambda words: words[0])
@pytest.mark.parametrize("is_new", [True, False], ids=["new", "kept"])
def test_a_command_names_a_database_folder_that_cannot_be_written(
    tmp_path: Path, words: list[str], is_new: bool
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    shell = Shell(tmp_path, {"CLOUDWHALE_DATABASE": f"sqlite:///{folder}/whale.db"})
    try:
        if not is_new:
            assert shell("ps").code == 0
        hello = a_file(shell, "hello", "echo hello")
        given = [*words] if words == ["ps"] else [*words, hello]
        with read_only(folder):
            is_a_sentence(
                typed_by_an_ordinary_user(shell, *given), f"{folder}/whale.db", "writable"
            )
        assert shell(*given).code == 0
        assert [job["name"] for job in shell("ps", "--json").document["jobs"]] == (
            [] if words == ["ps"] else ["hello"]
        )
    finally:
        shell.close()


@pytest.mark.parametrize("words", [["run", "-y"], ["submit"], ["ps"]], ids=lambda words: words[0])
@pytest.mark.parametrize("is_new", [True, False], ids=["new", "kept"])
def test_a_command_names_a_home_that_cannot_be_written(
    shell: Shell, words: list[str], is_new: bool
) -> None:
    if is_new:
        shell.home.mkdir()
    else:
        assert shell("submit", a_file(shell, "kept", "echo kept")).code == 0
    hello = a_file(shell, "hello", "echo hello")
    given = [*words] if words == ["ps"] else [*words, hello]
    with read_only(shell.home):
        is_a_sentence(typed_by_an_ordinary_user(shell, *given), str(shell.home), "writable")
    assert [job.spec.name for job in shell.jobs()] == ([] if is_new else ["kept"])
