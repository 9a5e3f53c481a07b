"""A controller's clock that jumps an hour in a night, in simulated time: nothing comes of it."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from night_world import (
    CHOSEN,
    CLOSES,
    DAY,
    HOUR,
    OFFER,
    OPENS,
    Evening,
    Nights,
    a_night,
    an_arrival,
)

from cloudwhale.cli.books import books_of
from cloudwhale.model.job import JobState
from cloudwhale.model.morning import Morning
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, Seconds, micro_usd
from cloudwhale.reporting.morning import Told, morning
from cloudwhale.simulation.bells import Life
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.engine import TRY_AGAIN_S
from cloudwhale.simulation.raising import Ground
from cloudwhale.simulation.setting import Offered, Setting
from cloudwhale.spi.store import JobQuery

FORWARD, BACK = HOUR, -HOUR
TIMES = (OPENS - 0.5 * HOUR, OPENS + HOUR, CLOSES - 0.5 * HOUR, CLOSES + 0.2 * HOUR)


class JumpyClock:
    """The host's clock, which somebody sets; the other hand goes on as ever."""

    def __init__(self, of: Nights) -> None:
        self._of = of
        self.ahead_s: Seconds = 0.0

    def now(self) -> Instant:
        return self._of.now + self.ahead_s

    def steady(self) -> Seconds:
        return self._of.now


class JumpyNights(Nights):
    """Nights whose controller's clock jumps, and is put right after a while."""

    def __init__(
        self,
        evenings: Sequence[Evening],
        setting: Setting,
        jumps: Sequence[tuple[Instant, Seconds]],
    ) -> None:
        self.clock = JumpyClock(self)
        self._jumps = jumps
        self._lead_s: Seconds = 0.0
        """How far the controller's own time, which never goes back, is ahead of the true one."""
        super().__init__(evenings, setting, CHOSEN)

    def _made_ground(self) -> Ground:
        return replace(super()._made_ground(), clock=self.clock)

    def _begin(self) -> None:
        super()._begin()
        self._env.process(self._jumping())

    def _jumping(self) -> Life:
        for at, by in self._jumps:
            yield self.wait(at - self.now)
            self.clock.ahead_s += by
            self._lead_s = max(self._lead_s, self.clock.ahead_s)
            self._bell.ring()

    def _due_at(self) -> Instant:
        due_at = None if self._raised is None else self._raised.controller.due_at
        due_at = math.inf if due_at is None else due_at - self._lead_s
        return min(due_at if due_at > self.now else self.now + TRY_AGAIN_S, self._again_at)


def played(jumps: Sequence[tuple[Instant, Seconds]], restarts: bool) -> JumpyNights:
    arrivals = [
        an_arrival("done", HOUR), an_arrival("short", 0.5 * HOUR),
        an_arrival("late", 5 * HOUR, 2 * HOUR),
    ]  # fmt: skip
    evenings = [
        Evening(0.0, a_night(0, "carry-over"), ("done", "short", "late"), micro_usd(60)),
        Evening(DAY, a_night(1, "carry-over"), (), micro_usd(60)),
    ]
    setting = Setting(
        [], arrivals, clouds=[Offered("cloud", [Shelf(OFFER, 9)], 0)],
        at_most_s=DAY + CLOSES + 3 * HOUR, heartbeat_s=300.0,
    )  # fmt: skip
    found = JumpyNights(evenings, setting, jumps)
    found.restarts = restarts
    found.play()
    return found


def kept_its_hours(of: JumpyNights) -> None:
    nights = {run.id: run.night for run in of.store.nights()}
    machines = [*of.store.past_rentals(), *of.store.rentals()]
    assert machines
    for one in machines:
        night = nights[one.payer]
        assert night is not None and night.opens_at <= one.reserved_at < night.closes_at
        assert one.lease.away_until <= night.closes_at
        assert one.ended_at is not None and one.ended_at <= night.closes_at + 180


def report_of(of: JumpyNights, run: Run) -> Morning:
    jobs = of.store.jobs(JobQuery(run=run.id))
    unfinished = {one.run: one.unfinished for one in of.closed}[run.id]
    books = books_of(of.store, jobs, run.id, of.now)
    return morning(run, jobs, of.now, books, Told(unfinished))


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("by", [FORWARD, BACK])
@pytest.mark.parametrize("at", TIMES)
def test_a_clock_that_jumps_an_hour_makes_no_other_night(
    at: Instant, by: Seconds, restarts: bool
) -> None:
    of = played([(at, by), (at + 1.5 * HOUR, -by)], restarts)
    assert [one.run for one in of.closed] == ["night-1", "night-2"], "each is closed once"
    kept_its_hours(of)
    assert {job.state for job in of.jobs.values()} == {JobState.COMPLETED}
    late = of.jobs["late"]
    # The hour that the clock leapt over is told as lost: nobody knows that it never was.
    leapt_s = max(0.0, by)
    assert late.lost_s <= late.interruptions * 360.0 + leapt_s
    assert late.run_s - late.lost_s == pytest.approx(5 * HOUR, abs=60.0)
    times = [event.at for event in of.events]
    assert times == sorted(times) or restarts, "what is told never goes back"
    spent = {run.id: sum(of.store.spent(run.id).values()) for run in of.store.nights()}
    assert sum(spent.values()) == of.spent and all(some <= micro_usd(60) for some in spent.values())
    for run in of.store.nights():
        report = report_of(of, run)
        assert report.is_over and micro_usd(report.money.spent_usd) == spent[run.id]
    assert of.spent == sum(cloud.bill() for cloud in of.clouds.values())
