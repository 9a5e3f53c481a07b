"""The report of a night of three jobs, of which one was completed, one failed, one is left over."""

from typing import Any

from billing import books_with
from clouding import an_offer
from makers import a_job, a_run, placed

from cloudwhale.model.job import Job, JobState
from cloudwhale.model.morning import Morning
from cloudwhale.model.night import Night
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import NOTHING, micro_usd
from cloudwhale.reporting.morning import Told, morning
from cloudwhale.reporting.receipt import Bill

OPENS = 1_796_072_400.0  # 2026-11-30 22:00 in Berlin
HOUR = 3600.0
NIGHT = Night(
    name="burst", date="2026-11-30", zone="Europe/Berlin", opens_at=OPENS,
    closes_at=OPENS + 10 * HOUR, unfinished="carry-over",
)  # fmt: skip
RUN = a_run(night=NIGHT, budget=micro_usd(8))
MACHINE = Rental(
    id="rent-1", node="rent-1", payer="run-1", offer="g5-spot",
    lease=Lease(number=1, watched_until=OPENS, away_until=OPENS, stop_at=OPENS),
    reserved=NOTHING, spent=micro_usd(2), state=RentalState.RETURNED,
    taken=an_offer(
        "g5-spot", type="g5.xlarge", market="spot", price_usd_h=micro_usd(1), cap_usd_h=micro_usd(3)
    ),
    jobs={"a": "nlp", "b": "vision"}, requested_at=OPENS, ended_at=OPENS + 2 * HOUR,
    interrupted_at=OPENS + 2 * HOUR,
)  # fmt: skip


def a_night_job(name: str, state: JobState, **fields: Any) -> Job:
    """Make a job that ran for the first hour of the night on the machine."""
    made = placed(a_job(name, name=name, **fields), "rent-1")
    return made.but(state=state, first_started_at=OPENS, ended_at=OPENS + HOUR, run_s=HOUR)


DONE = a_night_job("a", JobState.COMPLETED, project="nlp")
FAILED = a_night_job("b", JobState.FAILED, project="vision").but(
    exit_code=3,
    reason=Reason(code=Code.COMMAND_FAILED, says="the command failed", change="mend the command"),
)
WAITS = a_job("c", name="c", project="speech").but(
    reason=Reason(code=Code.OVER_BUDGET, says="could cost 9 USD, 6 of 8 USD are left")
)
BOOKS = books_with(Bill(MACHINE, {"a": micro_usd("1.5"), "b": micro_usd("0.5")}))
TOLD = Told({"c": "carry-over"}, last_lines={"b": "ValueError: no such file"})


def the_report(jobs: tuple[Job, ...] = (DONE, FAILED, WAITS), told: Told = TOLD) -> Morning:
    """Return how that night stands in the morning."""
    return morning(RUN, jobs, OPENS + 10 * HOUR, BOOKS, told)
