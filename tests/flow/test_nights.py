"""Two hundred nights under fire, and those that once went wrong: whatever fails, promises hold."""

from collections import Counter
from pathlib import Path

import pytest
from night_checks import play
from night_stories import kept, story
from night_values import KINDS, drawn

NIGHTS, AT_ONCE = 200, 4
CASES = sorted((Path(__file__).parents[1] / "cases" / "nights").glob("*.yaml"))


@pytest.mark.parametrize("first", range(0, NIGHTS, AT_ONCE))
def test_whatever_fails_in_a_night_money_machines_and_work_are_kept(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        played = play(drawn(seed))
        assert played.violation is None, "\n".join(story(played))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_what_once_went_wrong_in_a_night_goes_well(case: Path) -> None:
    played = play(kept(case))
    assert played.violation is None, "\n".join(story(played))


def test_nights_are_as_rough_as_they_are_said_to_be() -> None:
    befell: Counter[str] = Counter()
    for seed in range(NIGHTS):
        night = drawn(seed)
        befell.update(one.kind for one in night.troubles)
        assert len(night.jobs) >= 40
        assert len(night.troubles) >= 30
        assert len({one.kind for one in night.troubles}) >= 10
        assert len({one.zone for one in night.shelves}) >= 3
    assert befell.keys() == KINDS.keys()
    assert min(befell.values()) >= 30, "each of them befalls jobs, machines and calls of all kinds"


def test_the_same_seed_is_the_same_night_and_comes_to_the_same_end() -> None:
    first, second = (play(drawn(7)).house.store for _ in range(2))
    assert first.version() == second.version()
    events = (store.since(0, first.version()) for store in (first, second))
    assert all(one.event == other.event for one, other in zip(*events, strict=True))
