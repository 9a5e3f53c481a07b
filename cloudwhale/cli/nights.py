"""The command `night`: a file's jobs in the hours of a night, with a bound on what it may spend."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from zoneinfo import ZoneInfo

from cloudwhale.cli.exits import Exit
from cloudwhale.cli.planning import Sheaf, read
from cloudwhale.cli.wishes import Wishes
from cloudwhale.clock import SystemClock
from cloudwhale.control import nights as before
from cloudwhale.control.desk import Desk
from cloudwhale.control.zones import zone_here
from cloudwhale.model.job import Job, JobSpec
from cloudwhale.model.night import Night, Window
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, usd
from cloudwhale.planning.night_hours import Hours, at_once, nights_from
from cloudwhale.planning.nights import clock
from cloudwhale.settings import PREFIX, Settings, load
from cloudwhale.spi.errors import OverBudget, SpecError


@dataclass(frozen=True, slots=True)
class NightOptions:
    """What `night` was asked for."""

    file: Path
    wishes: Wishes
    yes: bool
    now: bool
    """The window opens at once, and closes when it does."""
    as_json: bool


@dataclass(frozen=True, slots=True)
class Tonight:
    """A file that was read, its hours, and what is to be done in them."""

    path: Path
    """Absolute: by this a night is known again."""
    sheaf: Sheaf
    night: Night
    specs: Sequence[JobSpec]
    carried: Sequence[Job]
    """What earlier nights have left over; none of `specs` is the same."""


def night(options: NightOptions) -> int:
    """Begin a night or take it up, follow it to its end, and print the morning report."""
    from cloudwhale.cli.looking import settings_here
    from cloudwhale.cli.presence import must_be_sure, someone_is_there

    if not options.yes and not someone_is_there():  # what is wrong with its file goes first
        window_of(read(options.file, options.wishes, SystemClock().now()))
    must_be_sure(options.yes)
    _weather_beside(options.file)
    settings = settings_here(starts=True)
    from cloudwhale.cli.watching import Watch

    with Watch(settings, options.as_json) as watch:
        found = watch.night(options)
        return watch.follow(found) if found is not None else Exit.DONE


def _weather_beside(file: Path) -> None:
    """In a sandbox, take the weather that an example has for itself, if nothing else is said."""
    settings, own = load(Path.cwd()), file.absolute().parent / "weather" / file.name
    if settings.sandbox and not settings.sandbox_script and own.is_file():
        os.environ[f"{PREFIX}SANDBOX_SCRIPT"] = str(own)


def tonight(desk: Desk, path: Path, wishes: Wishes, *, now: bool) -> Tonight:
    """Return the night of a file that is, or that comes next; raise SpecError when it has none."""
    at, whole = desk.clock.now(), path.absolute()
    sheaf = read(path, wishes, at)
    window = window_of(sheaf)
    hours = _hours(sheaf, window, desk.settings, at, now=now)
    if any(spec.deadline is not None for spec in sheaf.file.specs):
        # Only now it is known from when `5h` counts: it is the same, whenever a night is begun.
        sheaf = read(path, wishes, at, hours.opens_at)
    made = before.night_of(whole, window, hours, sheaf.file.deadline)
    carried = before.left_over(desk.store, whole, at)
    specs = before.still_to_do(sheaf.file.specs, carried)
    named = made.but(carried=tuple(job.id for job in carried))
    return Tonight(whole, sheaf, named, specs, carried)


def window_of(sheaf: Sheaf) -> Window:
    """Return the hours that a file says; raise SpecError when it says none."""
    window, file = sheaf.file.window, str(sheaf.path)
    if window is None:
        raise SpecError(
            "the file has no `window`, so it is no night",
            f"Add `window: 22:00..08:00` beside `jobs`, or use `cloudwhale run {quote(file)}`.",
            file=file, line=1, column=1,
        )  # fmt: skip
    if not sheaf.file.specs:
        raise SpecError("the night has no jobs", "Add one under `jobs`.", file=file)
    return window


def zone_of(window: Window, settings: Settings) -> ZoneInfo:
    """Return the zone of a night: its file's, else that of the settings or of this host."""
    return ZoneInfo(window.zone or zone_here(settings))


def _hours(sheaf: Sheaf, window: Window, settings: Settings, at: Instant, *, now: bool) -> Hours:
    zone = zone_of(window, settings)
    hours = at_once(window, zone, at) if now else next(nights_from(window, zone, at), None)
    if hours is not None and hours.lasts_s > 0:
        return hours
    day = "" if hours is None else f" on {hours.date}"
    raise SpecError(
        f"window: there is no such time{day} in {zone.key}: the clock jumps over it",
        "Write hours that the jump leaves something of, or begin the day after.",
        file=str(sheaf.path), line=window.line, column=window.column,
    )  # fmt: skip


def again(desk: Desk, found: Tonight) -> Run | None:
    """Return the same night where it was begun before; raise SpecError where it is another."""
    old = before.begun(desk.store, found.path, found.night.date)
    if old is None or old.night is None:
        return None
    file, asked = str(found.sheaf.path), found.sheaf.file.budget
    if old.night.closed_at is not None:
        closed = clock(old.night, old.night.closed_at)
        raise SpecError(
            f"the night of {old.night.date} is over: it closed {closed}",
            f"`cloudwhale morning {old.id}` shows its report; `cloudwhale run {quote(file)}` "
            "starts the jobs at any time.",
            file=file,
        )
    if asked is not None and asked != old.budget:
        has = "no budget" if old.budget is None else f"a budget of {usd(old.budget)} USD"
        raise OverBudget(
            f"the night of {old.night.date} has begun as {old.id} with {has}, not {usd(asked)} USD",
            f"`cloudwhale budget set {old.id} {usd(asked)}` changes it.",
            file=file,
        )
    return old


def page_of(run: Run, folder: Path) -> Path:
    """Return where the morning report of a night is written as a page."""
    night = run.night
    name = run.id if night is None else f"{night.name}-{night.date}"
    return folder / f"morning-{name}.html"


def budget_words(found: Tonight) -> str:
    """Say what a night may spend."""
    budget = found.sheaf.file.budget
    return "without a budget, so nothing is rented" if budget is None else f"{usd(budget)} USD"


def words_of(made: Night, budget: str) -> str:
    """Say when a night is, what it may spend, and what becomes of what is left over."""
    opens, closes = clock(made, made.opens_at), clock(made, made.closes_at)
    rest = {
        "park": "is parked", "carry-over": "waits for the next night",
        "continue": "goes on at home",
    }[made.unfinished]  # fmt: skip
    also = f"; {len(made.carried)} were left over before" if made.carried else ""
    return (
        f"Night {made.name}: opens {opens}, closes {closes} ({made.zone}), {budget}; what is not "
        f"done then {rest}{also}."
    )
