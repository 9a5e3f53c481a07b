"""README's "Use it on AWS", word for word, against a cloud on this host that has no bucket yet."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from booting import image_here
from shell import Shell, Terminal, until

from cloudwhale_providers.sandbox import record
from cloudwhale_providers.sandbox.box import reached
from cloudwhale_providers.sandbox.processes import of_folder

HOUSE = Path(__file__).parents[2]
README = (HOUSE / "README.md").read_text()
ENDS_WITHIN_S = 400.0
"""Far more than machines take to boot here and jobs to run, on a host that others use too."""
INSTALLS = "pip install "
GIVEN = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""What the section itself sets."""


def section() -> str:
    return README.split("\n## Use it on AWS\n")[1].split("\n## ")[0]


def block() -> str:
    """Return the section's commands, as they stand there."""
    (found,) = re.findall(r"```sh\n(.*?)```", section(), re.DOTALL)
    return str(found)


def commands() -> list[str]:
    """Return them without what installs: this Python has it installed."""
    return [line for line in block().splitlines() if not line.startswith(INSTALLS)]


def test_what_is_to_be_installed_can_be() -> None:
    (line,) = [line for line in block().splitlines() if line.startswith(INSTALLS)]
    (wanted,) = re.findall(r"'(.+)'", line)
    words = ("--dry-run", "--no-deps", "--no-build-isolation", "--no-index", "--quiet")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *words, wanted],
        cwd=HOUSE, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "does not provide the extra" not in done.stdout + done.stderr


def test_the_section_is_a_handful_of_commands_and_each_is_known() -> None:
    said = commands()
    assert len(said) <= 6
    assert all(line.startswith(("cloudwhale ", "export ")) for line in said)
    assert any("doctor aws --fix" in line for line in said)


@pytest.fixture(params=["processes", "boots"])
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """Give a shell of somebody who has an account: nothing is said but its credentials."""
    if request.param == "boots":
        image_here(tmp_path)
    shell = Shell(tmp_path, settings={"CLOUDWHALE_SANDBOX_MACHINES": request.param})
    folder = tmp_path / "cloud"
    box = shell.start("sandbox", "serve", "--folder", str(folder))
    try:
        until("the cloud to answer", lambda: record.found(folder) is not None, ENDS_WITHIN_S)
        (tmp_path / "examples").symlink_to(HOUSE / "examples")
        yield Shell(tmp_path, settings=an_account(folder))
    finally:
        box.terminate()
        box.wait(60)
        assert of_folder(folder) == frozenset(), "machines end with their cloud"
        shell.close()


def an_account(folder: Path) -> Mapping[str, str]:
    """Return the environment of whoever has an account, as the section asks for it."""
    told = record.found(folder)
    assert told is not None
    given = reached(told.url, told.clock)
    found = {key: value for key, value in given.items() if key not in GIVEN}
    beside = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return {**found, **beside, "CLOUDWHALE_TAKES_JOBS": "true"}


def test_the_section_leads_from_an_account_to_a_job_that_has_run(cloud: Shell) -> None:
    script = "set -e\n" + "\n".join(commands()) + "\necho all of it\n"
    for name in GIVEN:
        assert name not in cloud.settings
    terminal = Terminal(cloud, "-c", script, command=["bash"])
    answered = 0

    def over() -> bool:
        """Answer yes whenever it asks."""
        nonlocal answered
        if terminal.now().count("[Y/n]") > answered:
            answered += 1
            terminal.press("\n")
        return terminal.process.poll() is not None

    until("the commands to end", over, ENDS_WITHIN_S)
    terminal.ends()
    shown = terminal.shown
    assert terminal.process.returncode == 0, shown[-4000:]
    assert answered == 3, "it asks before the account, the settings and the money"
    assert "4 of 4 jobs completed" in shown
    assert "Nothing of ours (aws)." in shown
    assert "all of it" in shown
    assert (cloud.folder / "cloudwhale.toml").is_file()
