"""No way in which spot behaves misses a deadline, as long as on-demand is asked for in time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.safety import Changeover, last_safe_at, stays_until
from cloudwhale.spi.spot import Errand, Standing, Use
from cloudwhale_policies.spot import safety as policies

CLOSE_S = 1e-6
SAVES_NOTHING = False


@dataclass(frozen=True)
class Fate:
    """What befalls a spot machine: how long nothing can be had, its boot, its life."""

    dry_s: Seconds
    boot_s: Seconds
    lives_s: Seconds
    saves_at_the_end: bool
    """Whether there was a notice, and it was enough; else all since the last save is lost."""


@dataclass(frozen=True)
class Trial:
    """A job, what is said of on-demand, and how much quicker each part of that truly is."""

    work_s: Seconds
    every_s: Seconds
    """Between two saves."""
    spot_speed: float
    on_demand_speed: float
    change: Changeover
    slack_s: Seconds
    """Time to its deadline beyond on-demand at once."""
    fates: tuple[Fate, ...]
    truth: float
    """Of every part of the changeover: 1 is as long as stated."""
    hands_over: bool
    """Whether it saves when it is told to stop."""

    @property
    def deadline(self) -> Instant:
        return self.change.takes_s + self.work_s / self.on_demand_speed + self.slack_s

    def due_at(self, saved_s: Seconds) -> Instant:
        left_s = (self.work_s - saved_s) / self.on_demand_speed
        return last_safe_at(self.deadline, left_s, self.change)


@dataclass(frozen=True)
class Stretch:
    """Time on one spot machine, or none, from a saved state on."""

    since: Instant
    until: Instant
    base_s: Seconds
    runs: bool
    saves_at_the_end: bool

    def saved_s(self, of: Trial, at: Instant) -> Seconds:
        """Return the work that a save holds at a time at which it runs."""
        if not self.runs or at < self.since:
            return self.base_s
        saves = int((at - self.since) / of.every_s + 1e-12)
        return min(of.work_s, self.base_s + saves * of.every_s * of.spot_speed)

    def done_s(self, of: Trial, at: Instant) -> Seconds:
        if not self.runs or at < self.since:
            return self.base_s
        return min(of.work_s, self.base_s + (at - self.since) * of.spot_speed)

    def due_at(self, of: Trial) -> Instant:
        """Return when on-demand is due in it; the end of the stretch, when it is not before."""
        at = self.since
        while at < self.until:
            due_at = max(at, of.due_at(self.saved_s(of, at)))
            saves = int((at - self.since) / of.every_s + 1e-12) + 1
            next_at = self.since + saves * of.every_s if self.runs else self.until
            if due_at <= min(next_at, self.until):
                return due_at
            at = next_at
        return self.until


def stretches(of: Trial) -> Iterator[Stretch]:
    """Yield what spot is to a job; at last nothing can be had any more."""
    at, base_s = 0.0, 0.0
    for fate in of.fates:
        begins = at + fate.dry_s + fate.boot_s
        yield Stretch(at, begins, base_s, False, False)
        one = Stretch(begins, begins + fate.lives_s, base_s, True, fate.saves_at_the_end)
        yield one
        at = one.until
        base_s = one.done_s(of, at) if fate.saves_at_the_end else one.saved_s(of, at)
    yield Stretch(at, of.deadline + 1.0, base_s, False, False)


def ends_at(of: Trial, later_s: Seconds = 0.0) -> Instant:
    """Return when the job is done; `later_s`: so much later than due on-demand is asked for."""
    asked_at: Instant | None = None
    part = of.truth
    # Half of the controller's part comes before the call, half after the machine is there.
    comes_s = part * (of.change.tick_s / 2 + of.change.boot_s)
    for one in stretches(of):
        if one.runs and one.done_s(of, one.until) >= of.work_s:
            done_at = one.since + (of.work_s - one.base_s) / of.spot_speed
            if asked_at is None and done_at <= one.due_at(of) + later_s:
                return done_at
        if asked_at is None:
            due_at = one.due_at(of) + later_s
            if due_at > one.until or (due_at == one.until and one.due_at(of) == one.until):
                continue
            asked_at = due_at
        ready_at = asked_at + comes_s
        if one.runs and one.done_s(of, min(ready_at, one.until)) >= of.work_s:
            return one.since + (of.work_s - one.base_s) / of.spot_speed
        if ready_at >= one.until:
            continue  # its machine has gone before; the next one may run until then
        return _handed_over(of, one, ready_at)
    assert asked_at is not None
    return _goes_on(of, list(stretches(of))[-1].base_s, asked_at + comes_s)


def _handed_over(of: Trial, one: Stretch, ready_at: Instant) -> Instant:
    kept_s = one.done_s(of, ready_at) if of.hands_over else one.saved_s(of, ready_at)
    stops_s = of.truth * of.change.hand_over_s if one.runs else 0.0
    return _goes_on(of, kept_s, ready_at + stops_s)


def _goes_on(of: Trial, kept_s: Seconds, at: Instant) -> Instant:
    starts_s = of.truth * (of.change.tick_s / 2 + of.change.restore_s)
    return at + starts_s + (of.work_s - kept_s) / of.on_demand_speed


some = st.floats(0.0, 2000.0)
fates = st.builds(Fate, some, st.floats(0.0, 600.0), some, st.booleans())
trials = st.builds(
    Trial,
    work_s=st.floats(60.0, 20_000.0),
    every_s=st.floats(10.0, 4000.0),
    spot_speed=st.floats(0.2, 4.0),
    on_demand_speed=st.floats(0.2, 4.0),
    change=st.builds(Changeover, some, some, some, st.floats(0.0, 120.0)),
    slack_s=st.floats(0.0, 20_000.0),
    fates=st.lists(fates, max_size=12).map(tuple),
    truth=st.floats(0.0, 1.0),
    hands_over=st.booleans(),
)


@given(trials)
def test_a_deadline_is_met_whatever_spot_does(of: Trial) -> None:
    assert ends_at(of) <= of.deadline + CLOSE_S


WORST = Trial(
    3600.0, 600.0, 1.0, 1.0, Changeover(120.0, 60.0, 120.0, 30.0), 1000.0, (), 1.0, SAVES_NOTHING
)
RUNS = replace(WORST, every_s=1e9, spot_speed=0.5, fates=(Fate(0.0, 0.0, 1e6, SAVES_NOTHING),))
"""On spot to the last, and saves nothing, neither on its way nor when it is told to stop."""


def test_the_worst_of_it_is_done_at_the_deadline_and_not_before() -> None:
    assert ends_at(WORST) == pytest.approx(WORST.deadline - WORST.change.hand_over_s)
    assert ends_at(RUNS) == pytest.approx(RUNS.deadline)


@given(st.floats(0.1, 500.0))
@example(1.0)
def test_a_little_later_would_miss_it(later_s: float) -> None:
    waits = last_safe_at(1000.0, 400.0, Changeover(100.0, 50.0, 0.0, 30.0))
    idle = Trial(400.0, 1e9, 1.0, 1.0, Changeover(100.0, 50.0, 0.0, 30.0), 420.0, (), 1.0, False)
    assert idle.deadline == 1000.0 and idle.due_at(0.0) == waits
    assert ends_at(idle, later_s) == pytest.approx(idle.deadline + later_s)


@given(st.floats(0.0, 1e4), st.floats(0.0, 500.0), st.floats(0.0, 500.0), st.floats(0.0, 500.0))
def test_a_machine_that_stands_by_is_in_time_until_it_says(
    left_s: float, boot_s: float, restore_s: float, stops_s: float
) -> None:
    change = Changeover(boot_s, restore_s, stops_s)
    at = stays_until(1e6, left_s, change)
    done_at = at + change.tick_s + stops_s + restore_s + left_s
    assert done_at == pytest.approx(1e6)
    assert at >= last_safe_at(1e6, left_s, change)


@given(
    st.floats(0.0, 2e5), st.floats(0.0, 2e5), st.floats(0.0, 7200.0), st.floats(1.0, 3600.0)
)  # fmt: skip
def test_the_mask_of_spot_policies_says_the_same(
    at_s: float, work_s: float, changeover_s: float, tick_s: float
) -> None:
    errand = Errand(2e5, 2e5, changeover_s, tick_s)
    standing = Standing(at_s, work_s, 0.0, None, "", (), {})
    change = Changeover(0.5 * changeover_s, 0.5 * changeover_s, 0.0, tick_s)
    due_at = last_safe_at(errand.deadline_s, work_s, change)
    if abs(at_s - due_at) <= 2 * policies.ROUNDING_S:
        return  # sums of floats: either answer
    assert policies.may_idle(errand, standing) == (at_s < due_at)
    on_spot = Standing(at_s, work_s, 0.0, Use("here", "spot"), "", (), {})
    if at_s + tick_s <= errand.deadline_s and work_s > tick_s:
        # After the tick on-demand is asked for at once: its play takes no time to act.
        after = last_safe_at(errand.deadline_s, work_s - tick_s, replace(change, tick_s=0.0))
        if abs(at_s + tick_s - after) > 2 * policies.ROUNDING_S:
            may = policies.may_use_spot(errand, on_spot, stays=True)
            assert may == (at_s + tick_s < after)
