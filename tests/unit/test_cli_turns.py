"""Commands that submit to one home take turns."""

import threading
from pathlib import Path

from shell import until

from cloudwhale.cli.turns import in_turn
from cloudwhale.control.store import HolderLock


def test_a_second_submission_waits_says_for_whom_and_goes_on(tmp_path: Path) -> None:
    said: list[str] = []
    order: list[str] = []

    def second() -> None:
        with in_turn(HolderLock(tmp_path / "a.submit"), said.append):
            order.append("second")

    thread = threading.Thread(target=second)
    with in_turn(HolderLock(tmp_path / "a.submit"), said.append):
        thread.start()
        until("the wait to be told", lambda: said)
        order.append("first")
    thread.join(timeout=30)
    assert order == ["first", "second"]
    assert "is submitting" in said[0] and "pid " in said[0]


def test_a_submission_that_fails_lets_the_next_one_in(tmp_path: Path) -> None:
    for _ in range(2):
        try:
            with in_turn(HolderLock(tmp_path / "a.submit"), print):
                raise ValueError("a bad file")
        except ValueError:
            pass
    assert not (tmp_path / "a.submit").read_text()
