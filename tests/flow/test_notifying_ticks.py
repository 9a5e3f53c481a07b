"""A whole controller with targets that hang: no tick waits for them, and the others are told."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial

import pytest
from small_receivers import Hook, a_closed_port, a_hook, a_mail_box
from staging import a_stage, all_ended

from cloudwhale.clock import SystemClock, wait
from cloudwhale.control.effects import Effect, InlineEffects, Result, ThreadedEffects
from cloudwhale.control.notifying.notifying import NOTIFY, Notifying
from cloudwhale.control.notifying.sending import send
from cloudwhale.control.notifying.targets import targets
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.simulation.stage import Stage

NAMES = ("quick", "failing", "quick", "quick")
LIMIT_S = 30.0  # a target that hangs does so for much longer than any tick
TICK_MOST_S = 10.0  # milliseconds where there is quiet; this host may be busy


class Beside(InlineEffects):
    """Effects in simulated time, but for messages: those are real, and in threads."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = ThreadedEffects(lambda: None)

    def start(self, effect: Effect, now: Instant) -> bool:
        if effect.key.verb == NOTIFY:
            return self.threads.start(effect, now)
        return super().start(effect, now)

    def done(self, now: Instant) -> list[Result]:
        return [*super().done(now), *self.threads.done(now)]


@pytest.fixture
def hooks() -> Iterator[tuple[Hook, Hook]]:
    with a_hook() as well, a_hook() as hung:
        hung.hangs = True
        yield well, hung


def a_played_stage(tables: Mapping[str, Mapping[str, object]], effects: Beside) -> Stage:
    """Play a stage to its end, and return it; no tick may take long."""
    stage = a_stage(NAMES)
    telling = Notifying(stage.scenery.store, targets(tables), partial(send, limit_s=LIMIT_S))
    stage.raise_controller(effects, notifying=telling)
    steady = SystemClock().steady
    began = steady()
    slowest: Seconds = 0.0
    while not all_ended(stage):
        before = steady()
        stage.step()
        slowest = max(slowest, steady() - before)
        assert steady() - began < 120
    assert slowest < TICK_MOST_S
    return stage


def test_targets_that_hang_hold_up_no_tick_and_no_other_target(hooks: tuple[Hook, Hook]) -> None:
    well, hung = hooks
    with a_mail_box() as box, a_closed_port() as closed, closing(Beside()) as effects:
        box.hangs = True
        mail = {"tls": "none", "from": "whale@lab.example", "to": "ada@lab.example"}
        stage = a_played_stage(
            {
                "well": {"webhook": well.url},
                "hung": {"webhook": hung.url},
                "mail": mail | {"smtp": f"127.0.0.1:{box.port}"},
                "none": mail | {"smtp": f"127.0.0.1:{closed}"},
                "command": {"command": ["sleep", "2"]},
            },
            effects,
        )
        steady = SystemClock().steady
        until = steady() + 60
        while len(well.got) < len(NAMES) and steady() < until:
            stage.step()
            wait(0.01)
        assert len(well.got) == len(NAMES)
        assert len({headers["webhook-id"] for _, headers, _ in well.got}) == len(NAMES)
        assert len(hung.got) == 1, "it has not answered the first yet"
        hung.ended.set()
        box.ended.set()
        effects.threads.close()


def test_with_nobody_to_tell_nothing_is_stored_but_where_it_began() -> None:
    stage = a_played_stage({}, Beside())
    told = stage.scenery.store.events(":events")
    assert [one.event.kind for one in told] == ["noticed"]
    assert stage.scenery.store.notices() == []
