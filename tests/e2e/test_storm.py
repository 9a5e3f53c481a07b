"""The storm of the examples: machines taken, a zone empty, the controller killed; the same loss."""

import faulthandler
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from paced_training import EXAMPLES, LIMIT_S, final_loss, pace, undisturbed_loss
from shell import Shell, until

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale_providers.sandbox import Sandbox
from cloudwhale_providers.sandbox.processes import of_folder

WORDS = (
    "run", "examples/train.yaml", "--budget", "5", "--sandbox",
    "--sandbox-script", "examples/weather/storm.yaml", "-y",
)  # fmt: skip
"""As the storm's own first lines have it."""
EMPTY = "us-east-1a"
UNANNOUNCED = ("machine-gone", "taken-away")
"""Of a loss without a word the list's next reading tells: with the machine gone already, or still
in the seconds in which the provider ends it."""
STEPS = 5000
"""Longer than four interruptions, each after ten seconds, whatever each costs of the work."""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    pace(tmp_path / "examples", "train.yaml", STEPS)
    settings = {"OPENBLAS_NUM_THREADS": "1", "CLOUDWHALE_SANDBOX_MACHINES": "processes"}
    found = Shell(tmp_path, settings)
    yield found
    found("sandbox", "stop")
    assert of_folder(found.home / "sandbox" / "cloud") == frozenset(), "machines end with their box"
    found.close()


def events(shell: Shell) -> Sequence[e.Event]:
    home = shell.home / "sandbox"
    if not (home / "cloudwhale.db").exists():
        return ()
    with closing(open_store(sqlite_url(home), may_migrate=False)) as store:
        return [told.event for told in store.since(0, 100_000)]


def is_hit(shell: Shell) -> bool:
    """Say whether a machine was taken that a job ran on."""
    changed = (event.rental for event in events(shell) if isinstance(event, e.RentalChanged))
    return any(rental.interrupted_at is not None for rental in changed)


def spent(shell: Shell) -> int:
    with closing(open_store(sqlite_url(shell.home / "sandbox"), may_migrate=False)) as store:
        return sum(one.spent for one in store.accounts() if one.needs_limit)


def test_a_training_survives_the_storm_and_ends_with_the_loss_of_one_that_nobody_interrupts(
    shell: Shell,
) -> None:
    faulthandler.dump_traceback_later(2 * LIMIT_S, exit=True)  # later than tests as a rule
    first = shell.start(*WORDS)
    until("the first machine is taken", lambda: is_hit(shell), limit_s=LIMIT_S)
    first.send_signal(signal.SIGKILL)
    first.wait()
    again = shell.start(*WORDS)
    said, _ = again.communicate(timeout=LIMIT_S)
    assert again.returncode == 0, said[-5000:]
    told = shell("explain", "train", "--sandbox", "--json").document
    print(shell("explain", "train", "--sandbox").out)  # shown where the test fails
    tolls_agree_with_the_receipt(told)
    causes_come_in_their_order(told["story"])

    bill = Sandbox().meter(shell.home / "sandbox" / "cloud")
    assert EMPTY not in {one.zone for one in bill}
    assert sum(one.cost for one in bill) == spent(shell) > 0
    assert len(bill) <= 4 + 3, "machines that were not needed are few"
    assert shell("leaks", "--sandbox", "--json").document["leaks"] == []

    assert final_loss(said) == undisturbed_loss(shell, STEPS)


def tolls_agree_with_the_receipt(told: dict[str, Any]) -> None:
    job = told["job"]
    tolls = [row["interruption"] for row in told["story"] if row["interruption"]]
    assert job["state"] == "completed"
    assert job["interruptions"] == len(tolls) == 4
    assert job["lost_work_s"] == pytest.approx(sum(one["lost_work_s"] for one in tolls), abs=0.01)
    for one in tolls:
        assert one["wasted_usd"] > 0 and 0 < one["away_s"] < 120


def causes_come_in_their_order(story: Sequence[dict[str, Any]]) -> None:
    """What took each machine is told before what that cost, and that before it ran again."""
    causes: list[str] = []
    for row in story:
        reason = row["reason"] or {"code": "", "says": ""}
        if row["kind"] == "started":
            causes.append("ran")
        elif row["interruption"] or row["kind"] == "attempt-lost":
            causes += (
                [] if causes[-1:] == [reason["code"]] or not reason["code"] else [reason["code"]]
            )
    taken = ["taken-away", "ran"]
    assert causes[3] in UNANNOUNCED, causes
    assert causes == ["ran", *taken, causes[3], "ran", *taken, *taken]
    noted = [row["reason"]["says"] for row in story if row["kind"] == "noted"]
    good = [says for says in noted if "was saved after the notice and stored" in says]
    assert len(good) == 3, "what was saved within each notice is told"
