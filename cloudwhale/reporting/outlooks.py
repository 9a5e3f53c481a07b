"""How projects' months are expected to end, in words, as a table and as JSON."""

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from cloudwhale.model.units import MicroUsd, usd
from cloudwhale.planning.outlook import EVIDENCE_DAYS, WEEK_DAYS, Habit, Outlook
from cloudwhale.reporting.figures import NOTHING, cents, counted
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone

COLUMNS = (
    Column("project"),
    Column("budget", right=True),
    Column("spent", right=True),
    Column("running", right=True, optional=True),
    Column("queue", right=True, optional=True),
    Column("habit", right=True, optional=True),
    Column("at month's end", right=True),
    Column("8 of 10 within", right=True),
    Column("state", gives_way=True),
)


def outlook_keys(project: str, one: Outlook) -> Mapping[str, Any]:
    """Return an outlook as `--json` shows it; money in dollars, days in UTC."""
    has, bound, habit = one.taken, one.bound, one.habit
    return {
        "project": project,
        "month": one.month,
        "budget_usd": None if bound is None else usd(bound.limit),
        "soft_line_usd": None if bound is None else usd(bound.soft_line),
        "spent_usd": usd(has.spent),
        "reserved_usd": usd(has.reserved),
        "running_usd": usd(has.running),
        "queue_usd": usd(has.queue),
        "queue_jobs": has.waits,
        "queue_jobs_at_home": has.at_home,
        "queue_jobs_unpriced": has.unpriced,
        "habit_usd": usd(one.to_come),
        "rests_on": "queue and habit" if habit.is_enough else "queue alone",
        "habit_days": habit.days,
        "habit_days_needed": EVIDENCE_DAYS,
        "habit_since": _day(habit.since),
        "habit_by_weekday_usd": [usd(MicroUsd(round(amount))) for amount in habit.by_weekday],
        "low_usd": usd(one.low) if _has_range(one) else None,
        "expected_usd": usd(one.expected),
        "high_usd": usd(one.high) if _has_range(one) else None,
        "day_spread_usd": None if habit.spread is None else usd(MicroUsd(round(habit.spread))),
        "soft_line_on": _day(one.soft_on),
        "passed_on": _day(one.passed_on),
        "may_pass_on": _day(one.may_pass_on),
        "warns": warning(one) or None,
    }


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def outlooks_sheet(found: Mapping[str, Outlook], month: str) -> Sheet:
    """Show outlooks, one a row, with what they rest on."""
    notes = tuple(_notes(found))
    if not found:
        notes = ("No project has spent anything, or has a budget or jobs.",)
    rows = tuple(_row(name, one) for name, one in found.items())
    return Sheet(COLUMNS, rows, title=f"{month}, in US dollars; days are UTC", notes=notes)


def _row(project: str, one: Outlook) -> tuple[Cell, ...]:
    has, (says, tone) = one.taken, state_of(one)
    wide = f"{cents(one.low)} to {cents(one.high)}"
    return (
        Cell(project),
        Cell(NOTHING if one.bound is None else cents(one.bound.limit)),
        Cell(cents(has.spent)),
        Cell(cents(has.running), "quiet"),
        Cell(cents(has.queue), "quiet"),
        Cell(cents(one.to_come) if one.habit.is_enough else NOTHING, "quiet"),
        Cell(cents(one.expected), "strong"),
        Cell(wide if _has_range(one) else NOTHING),
        Cell(says, tone),
    )


def _has_range(one: Outlook) -> bool:
    return one.habit.is_enough and one.habit.spread is not None


def state_of(one: Outlook) -> tuple[str, Tone]:
    """Return in a few words whether a month stays inside its budget."""
    if one.bound is None:
        return "no bound", "quiet"
    if one.passed_on is not None:
        return f"passes it on {one.passed_on:%d %b}", "bad"
    if one.soft_on is not None:
        return f"soft line on {one.soft_on:%d %b}", "warn"
    if one.may_pass_on is not None:
        return f"may pass it on {one.may_pass_on:%d %b}", "warn"
    if not one.habit.is_enough:
        return "inside so far", "quiet"
    return "stays inside", "good"


def warning(one: Outlook) -> str:
    """Return what is to be said of a budget that is in danger; empty: it is not."""
    if one.bound is None:
        return ""
    limit, line = cents(one.bound.limit), cents(one.bound.soft_line)
    if one.passed_on is not None:
        more = cents(MicroUsd(one.expected - one.bound.limit))
        when = one.soft_on or one.passed_on
        return (
            f"wants {more} USD more than its {limit} USD by {one.last_day:%d %B}: it would pass "
            f"them on {one.passed_on:%d %B}, and from about {when:%d %B} nothing new is rented"
        )
    if one.soft_on is not None:
        return f"reaches its soft line of {line} USD on {one.soft_on:%d %B}: nothing new from then"
    if one.may_pass_on is not None:
        return f"stays inside its {limit} USD unless days are as dear as one in ten is"
    return ""


def _notes(found: Mapping[str, Outlook]) -> Iterator[str]:
    for name, one in found.items():
        says = warning(one)
        if says:
            yield f"{name} {says}."
    for name, one in found.items():
        yield f"{name}: {rests_on(one)}."


def rests_on(one: Outlook) -> str:
    """Return in a sentence what an outlook rests on."""
    has, habit = one.taken, one.habit
    parts: list[str] = []
    if has.waits:
        parts.append(f"{counted(has.waits, 'job')} that {_verb(has.waits, 'wait')}{_of_them(one)}")
    if has.reserved:
        parts.append(f"machines with {cents(has.reserved)} USD set aside, the most they can cost")
    if habit.since is None:
        parts.append(f"no day of spending before today: {_ALONE}")
    elif not habit.is_enough:
        known = f"{counted(habit.days, 'day')} of spending since {habit.since:%d %b}"
        parts.append(f"{known}, and fewer than {EVIDENCE_DAYS} are no habit: {_ALONE}")
    else:
        parts.append(_of_habit(habit))
    return "; ".join(parts)


_ALONE = "what is there and waits is all that is counted, what is yet to be submitted is not"


def _of_habit(habit: Habit) -> str:
    of_weekdays = ", by weekday" if habit.tells_weekdays else ""
    mean = Decimal(sum(habit.by_weekday)) / WEEK_DAYS / 1_000_000
    says = f"{cents(mean)} USD on a mean day"
    if habit.spread is not None:
        says += f", give or take {cents(Decimal(habit.spread) / 1_000_000)}"
    return f"{counted(habit.days, 'day')} since {habit.since:%d %b}{of_weekdays} ({says})"


def _of_them(one: Outlook) -> str:
    has = one.taken
    asides: list[str] = []
    if has.at_home:
        asides.append(f"{has.at_home} {_verb(has.at_home, 'fit')} on machines of ours, for nothing")
    if has.unpriced:
        asides.append(f"of {has.unpriced} nobody knows what they cost")
    return f" ({'; '.join(asides)})" if asides else ""


def _verb(number: int, word: str) -> str:
    return f"{word}s" if number == 1 else word


def outlooks_keys(found: Mapping[str, Outlook], month: str) -> Mapping[str, Any]:
    """Return the document of `budget forecast --json`."""
    return {"month": month, "projects": [outlook_keys(name, one) for name, one in found.items()]}
