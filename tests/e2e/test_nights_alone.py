"""Nights that open by themselves, and starts of one night at once: real processes, one run each."""

import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from mortal_box import Home, MortalBox
from shell import until

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model.job import JobState
from cloudwhale.model.run import Run
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.nights import BACK_WITHIN_S
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale_providers.sandbox import Sandbox

WITHIN_S = 200.0
JOBS = """
budget: 6
unfinished: carry-over
defaults:
  command: sleep 1 && echo done
  duration: 2m
  checkpoint: {every: 1m, grace: 5s}
  resources: {cpu: 1, memory: 2GiB, gpu: {count: 1, model: [L4]}}
jobs:
- {name: one, project: nlp}
- {name: two, project: vision}
"""
# The night of a day ends as the day does, ten minutes before that of the next one opens.
DAILY = f"window: 00:10..00:00\nzone: UTC\n{JOBS}"
TONIGHT = f"window: 22:00..23:50\nzone: UTC\n{JOBS}"


def weather(begins: str) -> str:
    return f"speed: 60\nbegins: {begins} UTC\nowned: none\nboot: 30s\n"


def nights(home: Home) -> Sequence[Run]:
    try:
        with closing(open_store(sqlite_url(home.inside), may_migrate=False)) as store:
            return store.nights()
    except StoreUnusable:
        return ()  # nobody has made it yet


def closed(home: Home) -> int:
    """Return how many nights have closed."""
    found = (run.night for run in nights(home))
    return sum(night is not None and night.closed_at is not None for night in found)


def paid_once(box: MortalBox, home: Home) -> None:
    """All is done, and what was paid is what the cloud's meter says."""
    books, bill = home.books, Sandbox().meter(box.box)
    assert {job.state for job in books.jobs} == {JobState.COMPLETED}
    assert books.reserved == 0 and 0 < books.spent == sum(one.cost for one in bill)


def test_a_controller_opens_a_night_closes_it_and_opens_the_next(tmp_path: Path) -> None:
    with MortalBox(tmp_path, weather("23:30")) as box:
        home = box.home("home", boots_within_s=1200.0)
        (home.folder / "nights").mkdir()
        home.write("nights/lab.yaml", DAILY)
        home.write("nights/wrong.yaml", "window: 22:00..22:00\njobs: [{name: a, command: x}]\n")
        with home.started("controller", "--nights", "nights") as controller:
            until("the first night is over", lambda: closed(home) == 1, WITHIN_S)
            until("the next is over as well", lambda: closed(home) == 2, WITHIN_S)
            pages = home.inside / "mornings"
            until("both are told", lambda: len(list(pages.glob("*.html"))) == 2, WITHIN_S)
            os.kill(controller.pid, signal.SIGTERM)
            assert controller.ends() == 0, home.said
        second, first = (run.night for run in nights(home))
        assert first is not None and second is not None
        assert second.opens_at - first.opens_at == 24 * 3600.0 and second.date > first.date
        assert first.closed_at is not None and first.closed_at <= first.closes_at + BACK_WITHIN_S
        assert len(home.books.jobs) == 4 - len(second.carried), "a slow host leaves some over"
        for run in nights(home):
            with closing(open_store(sqlite_url(home.inside), may_migrate=False)) as store:
                assert 0 < sum(store.spent(run.id).values()) <= micro_usd(6)
        paid_once(box, home)
        assert home.said.count("ends when it begins") == 1, "what is wrong is told once"


@pytest.mark.parametrize(
    "rivals", [[], ["controller", "--nights", "."]], ids=["night", "controller"]
)
def test_of_two_starts_of_one_night_at_once_one_begins_it_and_the_other_takes_it_up(
    tmp_path: Path, rivals: list[str]
) -> None:
    with MortalBox(tmp_path, weather("21:58")) as box, ExitStack() as running:
        home = box.home("home", boots_within_s=1200.0)
        home.write("lab.yaml", TONIGHT)
        starts = ["night", "lab.yaml", "-y"]
        first = running.enter_context(home.started(*starts))
        second = running.enter_context(home.started(*(rivals or starts)))
        assert first.ends() == 0, home.said
        if rivals:
            os.kill(second.pid, signal.SIGTERM)
        assert second.ends() == 0, home.said
        (run,) = nights(home)
        assert run.night is not None and run.night.closed_at is not None
        assert [job.attempt for job in home.books.jobs] == [1, 1]
        paid_once(box, home)
        assert home.run(*starts) != 0 and "is over: it closed" in home.said
        assert len(nights(home)) == 1
