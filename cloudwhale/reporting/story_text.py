"""A job's story as lines of text that fit a width."""

import textwrap
from collections.abc import Iterator

from cloudwhale.clock import iso
from cloudwhale.model.units import Instant, usd
from cloudwhale.reporting.amounts import peaks_words, wants_words
from cloudwhale.reporting.booting import phase_words, took_words
from cloudwhale.reporting.explain import Numbers, Story, Telling
from cloudwhale.reporting.figures import counted, moment, money, percent, span
from cloudwhale.reporting.score_table import score_lines
from cloudwhale.reporting.sentences import array_words
from cloudwhale.reporting.sheet import Cell, Line, Tone
from cloudwhale.reporting.tables import TONES, why
from cloudwhale.reporting.tolls import Toll

HANG = 12
"""Columns that the time takes; what belongs to a telling stands to the right of it."""

_KIND_TONES: dict[str, Tone] = {
    "placed": "busy",
    "started": "busy",
    "finished": "good",
    "failed": "bad",
    "gave-up": "bad",
    "parked": "bad",
    "retried": "warn",
    "waits": "warn",
    "held": "warn",
    "stop-wished": "warn",
    "gave-way": "warn",
    "attempt-lost": "warn",
    "checkpoint-late": "warn",
    "noted": "warn",
}


def story_lines(story: Story, now: Instant, width: int) -> list[Line]:
    """Return the story as lines no wider than `width`."""
    lines = [*_head(story, now, width), ()]
    for telling in story.tellings:
        lines += _telling_lines(telling, now, width)
    return lines


def _head(story: Story, now: Instant, width: int) -> Iterator[Line]:
    job = story.job
    project = f", project {job.spec.project}" if job.spec.project != "default" else ""
    array = f", {array_words(job.spec)}" if job.spec.array else ""
    is_it, since = ("", "at") if job.ended else ("is ", "since")
    yield (
        Cell(job.id, "strong"),
        Cell(f" ({job.spec.name}{array}{project}) {is_it}"),
        Cell(job.state.value, TONES[job.state]),
        Cell(f" {since} {moment(_since(story), now)}"),
    )
    said = why(job, now)
    if said:
        code = f" [{job.reason.code}]" if job.reason and said.endswith(job.reason.says) else ""
        yield from _wrapped("now", said + code, width)
    for rental in story.coming:
        boots = phase_words(rental, now)
        if boots:
            yield from _wrapped(f"{rental.id} boots", boots, width)
    if not job.ended and job.reason is not None and job.reason.change:
        yield from _wrapped("what would change it", job.reason.change, width, "strong")


_BEGINS_TO_WAIT = (
    "submitted",
    "retried",
    "cleared",
    "gave-way",
    "paused",
    "parked",
    "resume-asked",
)


def _since(story: Story) -> Instant:
    """Return when the job came into its state."""
    job = story.job
    if job.ended_at is not None:
        return job.ended_at
    if job.placement is not None:
        began = job.started_at if job.started_at is not None else job.placed_at
        return began if began is not None else job.submitted_at
    waits = (telling.at for telling in story.tellings if telling.kind in _BEGINS_TO_WAIT)
    return max(waits, default=job.submitted_at)


def _telling_lines(telling: Telling, now: Instant, width: int) -> Iterator[Line]:
    tone = _KIND_TONES.get(telling.kind, "plain")
    again = f" ({telling.times} times until {moment(telling.until, now)})" if telling.until else ""
    stored = f"  round {telling.numbers.round}" if telling.numbers else ""
    rows = textwrap.wrap(telling.headline, max(20, width - HANG), break_on_hyphens=False) or [""]
    if len(rows[-1] + again + stored) > width - HANG:
        rows.append("")  # what is quiet has a line of its own then
    for number, row in enumerate(rows):
        at = moment(telling.at, now) if number == 0 else ""
        quiet = again + stored if number == len(rows) - 1 else ""
        yield (
            Cell(f"{at:<{HANG}}", "quiet"),
            Cell(row, tone),
            Cell(quiet if row else quiet.lstrip(), "quiet"),
        )
    if telling.reason is not None:
        said = f"{telling.reason.says} [{telling.reason.code}]"
        yield from _wrapped("why", said, width, indent=HANG)
    yield from _end_lines(telling, now, width)
    if telling.numbers is not None:
        yield from _number_lines(telling.numbers, width)
    if telling.reason is not None and telling.reason.change:
        yield from _wrapped("what would change it", telling.reason.change, width, indent=HANG)


def _number_lines(numbers: Numbers, width: int) -> Iterator[Line]:
    if numbers.chosen is not None:
        yield from score_lines(numbers.chosen, numbers.rivals, numbers.weights, width, HANG)
    if numbers.refused:
        total = sum(numbers.refused.values())
        each = ", ".join(f"{code} {count}" for code, count in sorted(numbers.refused.items()))
        yield from _wrapped(
            "why not there", f"{counted(total, 'node')} refused: {each}", width, indent=HANG
        )
    if numbers.nearest is not None:
        short = numbers.nearest.shortfall
        miss = f" (short by {percent(short)})" if short > 0 else ""
        never = "" if numbers.nearest.can_wait else "; waiting does not help"
        said = f"{numbers.nearest_node}: {numbers.nearest.says}{miss}{never}"
        yield from _wrapped("nearest miss", said, width, indent=HANG)


def _end_lines(telling: Telling, now: Instant, width: int) -> Iterator[Line]:
    """What a hold, a rented place or the end of an attempt says beside its reason."""
    if telling.held_until is not None:
        left = telling.held_until - telling.at
        said = f"{moment(telling.held_until, now)}, {span(left)} after it was decided"
        yield from _wrapped("until at most", said, width, indent=HANG)
    if telling.boot is not None and (took := took_words(telling.boot)):
        said = f"{span(sum(telling.boot.values()))}: {took}"
        yield from _wrapped("its machine booted in", said, width, indent=HANG)
    if telling.toll is not None:
        yield from _wrapped("it cost", toll_words(telling.toll), width, indent=HANG)
    if telling.peaks is not None:
        yield from _wrapped("used at most", peaks_words(telling.peaks), width, indent=HANG)
    if telling.grown is not None:
        yield from _wrapped("asks now for", wants_words(telling.grown), width, indent=HANG)


def toll_words(toll: Toll) -> str:
    """Return what an interruption has cost, in work, money and time."""
    money_words = "" if toll.wasted is None else f", {money(toll.wasted)} of idle machine time"
    again = "it has not run again" if toll.away_s is None else f"it ran {span(toll.away_s)} later"
    return f"{span(toll.lost_s)} of work{money_words}; {again}"


def _wrapped(
    label: str, said: str, width: int, tone: Tone = "plain", indent: int = 2
) -> Iterator[Line]:
    head = f"{label}: "
    room = max(20, width - indent)
    rows = textwrap.wrap(head + said, room, subsequent_indent="  ", break_on_hyphens=False)
    for number, row in enumerate(rows):
        if number == 0:
            yield (
                Cell(" " * indent + head.rstrip(), "quiet"),
                Cell(" " + row[len(head) :], tone),
            )
        else:
            yield (Cell(" " * indent + row, tone),)


def story_keys(story: Story) -> list[dict[str, object]]:
    """Return the tellings as `explain --json` prints them; times as ISO 8601."""
    return [_telling_keys(telling) for telling in story.tellings]


def _telling_keys(telling: Telling) -> dict[str, object]:
    numbers = telling.numbers.model_dump() if telling.numbers else {}
    return {
        "at": iso(telling.at),
        "kind": telling.kind,
        "says": telling.headline,
        "reason": telling.reason.model_dump() if telling.reason else None,
        "times": telling.times,
        "until": iso(telling.until),
        "held_until": iso(telling.held_until),
        "peaks": telling.peaks.model_dump() if telling.peaks else None,
        "interruption": _toll_keys(telling.toll),
        "grown": telling.grown.model_dump() if telling.grown else None,
        "boot": telling.boot,
        **{key: numbers.get(key) for key in Numbers.model_fields},
    }


def _toll_keys(toll: Toll | None) -> dict[str, object] | None:
    if toll is None:
        return None
    wasted = None if toll.wasted is None else usd(toll.wasted)
    return {"lost_work_s": toll.lost_s, "wasted_usd": wasted, "away_s": toll.away_s}
