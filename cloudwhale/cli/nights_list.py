"""Shows the nights that were, and what each has cost."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from cloudwhale.cli.exits import Exit
from cloudwhale.cli.looking import store_here
from cloudwhale.cli.output import emit, say, stdout_paper
from cloudwhale.clock import SystemClock
from cloudwhale.model.job import ENDED, JobState
from cloudwhale.model.run import Run
from cloudwhale.model.units import MicroUsd, usd
from cloudwhale.reporting.figures import dollars
from cloudwhale.reporting.sheet import Cell, Column, Sheet, cells
from cloudwhale.spi.store import Store


def list_nights(as_json: bool) -> int:
    """Print every night, the newest first."""
    with store_here() as store:
        now = SystemClock().now()
        runs = store.nights()
        rows = [_keys(store, run, now) for run in runs]
    if as_json:
        emit({"nights": rows})
    elif not rows:
        say("There was no night yet: `cloudwhale night FILE` starts one.")
    else:
        stdout_paper().sheet(_sheet(runs, rows))
    return Exit.DONE


def _keys(store: Store, run: Run, now: float) -> dict[str, object]:
    night = run.night
    assert night is not None
    counts = store.counts(run.id)
    state = "closed" if night.closed_at else "open" if now >= night.opens_at else "waits"
    spent = MicroUsd(sum(store.spent(run.id).values()))
    return {
        "run": run.id,
        "name": night.name,
        "date": night.date,
        "state": state,
        "opens_at": night.opens_at,
        "closes_at": night.closes_at,
        "closed_at": night.closed_at,
        "jobs": sum(counts.values()),
        "completed": counts[JobState.COMPLETED],
        "left": sum(count for state, count in counts.items() if state not in ENDED),
        "budget_usd": None if run.budget is None else float(usd(run.budget)),
        "spent_usd": float(usd(spent)),
    }


_COLUMNS = (
    Column("night"), Column("date"), Column("run"), Column("state"), Column("opens"),
    Column("closes"), Column("done", right=True), Column("left", right=True),
    Column("budget", right=True), Column("spent", right=True),
)  # fmt: skip


def _sheet(runs: Sequence[Run], rows: Sequence[Mapping[str, object]]) -> Sheet:
    """Return the nights as a table; times are those of their own zones."""
    return Sheet(_COLUMNS, tuple(map(_row, runs, rows)))


def _row(run: Run, keys: Mapping[str, object]) -> tuple[Cell, ...]:
    night = run.night
    assert night is not None
    there = ZoneInfo(night.zone)
    times = (
        datetime.fromtimestamp(at, UTC).astimezone(there)
        for at in (night.opens_at, night.closes_at)
    )
    budget = "-" if run.budget is None else dollars(run.budget)
    return cells(
        night.name, night.date, run.id, str(keys["state"]), *(f"{at:%H:%M}" for at in times),
        f"{keys['completed']} of {keys['jobs']}", str(keys["left"]), budget,
        dollars(Decimal(str(keys["spent_usd"]))),
    )  # fmt: skip
