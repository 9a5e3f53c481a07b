"""This host is counted once, and asked for its Docker again now and then."""

import pytest

from cloudwhale.host import Counted, counted
from cloudwhale.host.counted import ASK_EVERY_S
from cloudwhale.model.node import Facts
from cloudwhale.model.units import Instant

FACTS = Facts(cpu=4.0, memory_gib=8.0, disk_gib=50.0, runtimes=("process",))


class Stepped:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.at: Instant = 0.0

    def now(self) -> Instant:
        return self.at

    def steady(self) -> Instant:
        return self.at


def test_a_docker_that_was_started_later_is_found_without_another_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, counts = Stepped(), list[Facts]()
    answers: list[tuple[str, ...] | None] = [("a:1",), None]
    monkeypatch.setattr(counted, "images_here", lambda: answers.pop(0))

    def count() -> Facts:
        counts.append(FACTS)
        return FACTS

    here = Counted(count, clock)
    assert here() is FACTS
    clock.at = ASK_EVERY_S - 1.0
    assert here() is FACTS
    clock.at = ASK_EVERY_S
    assert here() == FACTS.but(runtimes=("process", "container"), images=("a:1",))
    clock.at = 2 * ASK_EVERY_S
    assert here() == FACTS
    assert (len(counts), answers) == (1, [])
