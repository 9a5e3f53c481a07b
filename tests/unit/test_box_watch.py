"""A sandbox that is killed is told of within seconds, once; one that comes back is forgotten."""

from cloudwhale.cli.box_watch import LOOK_EVERY_S, SURE_S, BoxWatch
from cloudwhale.simulation.clock import SteppedClock


class Box:
    """A sandbox that lives or not, asked how often."""

    lives = True
    asked = 0

    def __call__(self) -> bool:
        self.asked += 1
        return self.lives


def watched(watch: BoxWatch, clock: SteppedClock, for_s: int) -> list[str]:
    """Let time pass, a turn each second; return what was said, each once."""
    said: list[str] = []
    for _ in range(for_s):
        clock.advance_to(clock.now() + 1.0)
        said.append(watch.trouble())
    return list(dict.fromkeys(said))


def test_one_that_lives_is_asked_seldom_and_nothing_is_said() -> None:
    box, clock = Box(), SteppedClock()
    assert watched(BoxWatch(box, clock), clock, 60) == [""]
    assert box.asked <= 60 / LOOK_EVERY_S + 1


def test_one_that_is_gone_is_told_of_within_half_a_minute_in_one_sentence() -> None:
    box, clock = Box(), SteppedClock()
    watch = BoxWatch(box, clock)
    watched(watch, clock, 5)
    box.lives = False
    assert watched(watch, clock, int(SURE_S) - 2) == [""], "it may be about to come back"
    (*_, says) = watched(watch, clock, 20)
    assert says.startswith("the sandbox does not answer since 1")
    assert "`cloudwhale doctor --sandbox`" in says
    assert watched(watch, clock, 60) == [says], "it is said once"


def test_one_that_is_there_again_is_not_spoken_of_any_more() -> None:
    box, clock = Box(), SteppedClock()
    watch = BoxWatch(box, clock)
    box.lives = False
    watched(watch, clock, 30)
    box.lives = True
    assert watched(watch, clock, 5)[-1] == ""
    box.lives = False
    assert watched(watch, clock, 5) == [""], "and counted anew when it goes again"
