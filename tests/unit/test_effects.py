import threading
from collections.abc import Callable

import pytest

from cloudwhale.control.effects import Effect, Effects, InlineEffects, Key, Result, ThreadedEffects
from cloudwhale.spi.errors import StoreUnusable


def make_threaded() -> Effects:
    return ThreadedEffects(lambda: None)


@pytest.fixture(params=[InlineEffects, make_threaded])
def effects(request: pytest.FixtureRequest) -> Effects:
    make: Callable[[], Effects] = request.param
    return make()


def fails() -> object:
    raise StoreUnusable("the disk is full", "free some")


def test_the_result_of_an_effect_comes_with_a_later_tick(effects: Effects) -> None:
    assert effects.start(Effect(Key("a", "x"), lambda: 7), 0.0)
    effects.close()
    assert effects.done(0.0) == [Result(Key("a", "x"), 7)]
    assert effects.done(0.0) == []


def test_a_failed_effect_waits_longer_each_time_it_fails(effects: Effects) -> None:
    (result,) = ended(effects, Effect(Key("a", "x"), fails), 0.0)
    assert isinstance(result.error, StoreUnusable)
    assert effects.retry_at() == 0.5
    assert not effects.start(Effect(Key("a", "x"), fails), 0.4)
    ended(effects, Effect(Key("a", "x"), fails), 0.5)
    assert effects.retry_at() == 1.5


def test_success_forgets_the_failures(effects: Effects) -> None:
    ended(effects, Effect(Key("a", "x"), fails), 0.0)
    ended(effects, Effect(Key("a", "x"), lambda: 1), 1.0)
    assert effects.retry_at() is None


def ended(effects: Effects, effect: Effect, now: float) -> list[Result]:
    """Start an effect and wait for its end."""
    assert effects.start(effect, now)
    for _ in range(10_000):
        found = effects.done(now)
        if found:
            return found
        threading.Event().wait(0.001)
    raise AssertionError("the effect did not end")


def test_an_effect_that_is_under_way_is_not_started_again() -> None:
    rung, go = threading.Event(), threading.Event()
    effects = ThreadedEffects(rung.set)
    assert effects.start(Effect(Key("slow", "x"), go.wait), 0.0)
    assert not effects.start(Effect(Key("slow", "x"), go.wait), 0.0)
    assert effects.start(Effect(Key("other", "x"), lambda: None), 0.0)
    assert rung.wait(5.0)
    go.set()
    effects.close()
    assert {result.key.verb for result in effects.done(0.0)} == {"slow", "other"}


def test_a_bug_in_an_effect_is_not_swallowed() -> None:
    effects = ThreadedEffects(lambda: None)
    effects.start(Effect(Key("bug", "x"), lambda: 1 / 0), 0.0)
    effects.close()
    with pytest.raises(ZeroDivisionError):
        effects.done(0.0)


def test_a_failure_that_nobody_asks_for_again_is_forgotten(effects: Effects) -> None:
    ended(effects, Effect(Key("a", "x"), fails), 0.0)
    effects.forget_unwanted(0.2)
    assert effects.retry_at() == 0.5, "it is not due yet"
    effects.forget_unwanted(0.5)
    assert effects.retry_at() is None


def test_a_cloud_that_hangs_keeps_nobody_from_the_store() -> None:
    go = threading.Event()
    effects = ThreadedEffects(lambda: None)
    for number in range(40):
        effects.start(Effect(Key("launch", str(number)), go.wait, is_slow=True), 0.0)
    assert ended(effects, Effect(Key("read", "n"), lambda: "mail"), 0.0) == [
        Result(Key("read", "n"), "mail")
    ]
    go.set()
    effects.close()
