"""Whether Docker answers is asked now and then, after a doubt at once, and told when it changes."""

import threading

import pytest
from live_agent import until
from orders import FACTS, KEY, an_exit

from cloudwhale.agent.containers import docker_sight
from cloudwhale.agent.containers.docker_sight import LOOK_EVERY_S, DockerSight, is_doubtful
from cloudwhale.agent.pool import Pool
from cloudwhale.agent.seen import CannotStart, Over, Runtimes, Seen

BOTH = ("process", "container")


class Docked:
    """A host whose Docker answers as it is told to, and what its agent was told of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[tuple[str, ...] | None] = []
        self.asked = 0
        self.told: list[Seen] = []
        monkeypatch.setattr(docker_sight, "LOOK_AGAIN_S", 0.01)
        monkeypatch.setattr(docker_sight, "images_here", self._answer)
        self.pool = Pool()
        self.sight = DockerSight(self.pool, self.told.append)
        self.sight.begin(FACTS.but(runtimes=BOTH), 0.0)

    def look(self, now: float, *answers: tuple[str, ...] | None) -> list[Seen]:
        self.answers = list(answers)
        self.sight.look(now)
        assert self.pool.drain(20.0)
        return self.told

    def _answer(self) -> tuple[str, ...] | None:
        self.asked += 1
        return self.answers.pop(0)


@pytest.fixture
def docked(monkeypatch: pytest.MonkeyPatch) -> Docked:
    return Docked(monkeypatch)


def test_one_that_is_silent_for_a_moment_is_not_gone(docked: Docked) -> None:
    assert docked.look(LOOK_EVERY_S - 1.0) == []
    assert docked.asked == 0
    assert docked.look(LOOK_EVERY_S, None, ()) == []
    assert docked.asked == 2


def test_one_that_went_and_came_is_told_of_once_each(docked: Docked) -> None:
    at = LOOK_EVERY_S
    assert docked.look(at, None, None) == [Runtimes(("process",))]
    assert len(docked.look(2 * at, None)) == 1
    assert docked.look(3 * at, ("a:1",))[1:] == [Runtimes(BOTH, ("a:1",))]


def test_a_doubt_lets_it_be_asked_at_once(docked: Docked) -> None:
    docked.sight.doubt()
    assert docked.look(0.0, None, None) == [Runtimes(("process",))]
    assert docked.look(1.0) == docked.told


def test_a_docker_that_hangs_is_asked_by_one_at_a_time(
    docked: Docked, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    asked: list[float] = []

    def hangs() -> None:
        asked.append(0.0)
        gate.wait(20.0)

    monkeypatch.setattr(docker_sight, "images_here", hangs)
    for now in (100.0, 200.0, 300.0):
        docked.sight.look(now)
    until(lambda: bool(asked), "it is asked")
    assert len(asked) == 1
    gate.set()
    until(lambda: docked.told == [Runtimes(("process",))], "it is told once")


def test_only_ends_that_docker_may_have_caused_raise_a_doubt() -> None:
    assert is_doubtful(CannotStart(KEY, "start-failed", ""))
    assert not is_doubtful(CannotStart(KEY, "image-refused", ""))
    assert is_doubtful(Over(KEY, an_exit(None, how="runtime-lost")))
    assert not is_doubtful(Over(KEY, an_exit(1)))
