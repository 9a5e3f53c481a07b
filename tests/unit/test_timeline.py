import pytest

from cloudwhale.control.timeline import Timeline


class TwoHands:
    """A clock whose wall and steady hands are moved one by one."""

    def __init__(self) -> None:
        self.wall, self.steadily = 1000.0, 5.0

    def now(self) -> float:
        return self.wall

    def steady(self) -> float:
        return self.steadily

    def passes(self, seconds: float, wall: float | None = None) -> None:
        self.steadily += seconds
        self.wall += seconds if wall is None else wall


def test_a_sane_clock_is_believed() -> None:
    clock = TwoHands()
    timeline = Timeline(clock)
    clock.passes(10.0)
    assert timeline.now() == 1010.0
    assert timeline.jumped_s == 0.0


def test_a_clock_that_was_set_back_does_not_take_time_back() -> None:
    clock = TwoHands()
    timeline = Timeline(clock)
    clock.passes(10.0)
    timeline.now()
    clock.passes(1.0, wall=-3600.0)
    assert timeline.now() == pytest.approx(1011.0)
    assert timeline.jumped_s == pytest.approx(-3601.0)
    clock.passes(5.0)
    assert timeline.now() == pytest.approx(1016.0)
    assert timeline.jumped_s == pytest.approx(0.0), "one jump is told once"


def test_a_clock_that_is_set_right_again_gives_up_its_lead_first() -> None:
    clock = TwoHands()
    timeline = Timeline(clock)
    clock.passes(0.0, wall=-3600.0)
    timeline.now()
    clock.passes(1.0, wall=3601.0)
    assert timeline.now() == pytest.approx(1001.0)


def test_a_clock_that_was_set_forward_is_believed_and_said() -> None:
    clock = TwoHands()
    timeline = Timeline(clock)
    clock.passes(1.0, wall=3600.0)
    assert timeline.now() == 4600.0
    assert timeline.jumped_s == pytest.approx(3599.0)
    clock.passes(1.0)
    assert timeline.now() == 4601.0
    assert timeline.jumped_s == 0.0


def test_a_nudge_back_holds_time_still_and_is_no_jump() -> None:
    clock = TwoHands()
    timeline = Timeline(clock)
    clock.passes(0.0, wall=-0.5)
    assert timeline.now() == 1000.0
    assert abs(timeline.jumped_s) < 1.0


def test_time_begins_no_earlier_than_what_was_stored() -> None:
    assert Timeline(TwoHands(), not_before=2000.0).now() == 2000.0
