"""Notices in words: a line for the subject, a few for the text, and facts for programs."""

from collections.abc import Mapping, Sequence
from typing import Any

from cloudwhale.clock import iso
from cloudwhale.model.notice import Notice, NoticeKind
from cloudwhale.model.units import Instant, MicroUsd, usd
from cloudwhale.reporting.figures import counted, moment, money, percent, span
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone, cells, clean

LISTED = 20
"""More of a digest are counted, not listed."""

_TITLES: dict[NoticeKind, str] = {
    NoticeKind.COMPLETED: "{name} is completed",
    NoticeKind.FAILED: "{name} has failed",
    NoticeKind.CANCELLED: "{name} was cancelled",
    NoticeKind.PARKED: "{name} is parked and waits for you",
    NoticeKind.PREEMPTED: "{name} was interrupted {times}",
    NoticeKind.CHECKPOINT_LATE: "{name} has saved nothing for too long",
    NoticeKind.LEAK: "something was left over in a cloud",
    NoticeKind.ATTENTION: "machine {name} cannot be given back",
    NoticeKind.NIGHT: "the night {name} is over",
}
_LOOK: dict[NoticeKind, str] = {
    NoticeKind.FAILED: "cloudwhale logs {subject}",
    NoticeKind.PARKED: "cloudwhale explain {subject}",
    NoticeKind.PREEMPTED: "cloudwhale explain {subject}",
    NoticeKind.CHECKPOINT_LATE: "cloudwhale logs {subject}",
    NoticeKind.BUDGET: "cloudwhale budget",
    NoticeKind.LEAK: "cloudwhale leaks",
    NoticeKind.ATTENTION: "cloudwhale leaks",
}
_LEFT = {"park": "parked", "carry-over": "carried over", "continue": "going on"}
"""What becomes of those that a night has not done."""


def title(notice: Notice) -> str:
    """Return one line that says what has happened."""
    if notice.kind is NoticeKind.BUDGET:
        words = _budget_title(notice)
    else:
        times = counted(notice.interruptions or 0, "time")
        words = _TITLES[notice.kind].format(name=notice.name or notice.subject, times=times)
    return " ".join(clean(words).split())


def text(notice: Notice) -> str:
    """Return what has happened in a few lines, without the title."""
    return clean("\n".join(_lines(notice)))


def facts(notice: Notice) -> dict[str, Any]:
    """Return a notice for programs: the keys are those of `--json` everywhere."""
    found: dict[str, Any] = {
        "id": notice.id, "kind": notice.kind.value, "at": iso(notice.at),
        "subject": notice.subject, "name": notice.name, "project": notice.project,
        "run": notice.run, "user": notice.user, "attempt": notice.attempt,
        "ran_s": notice.ran_s, "interruptions": notice.interruptions,
        "spent_usd": _usd(notice.spent), "reserved_usd": _usd(notice.reserved),
        "budget_usd": _usd(notice.limit), "says": notice.says, "change": notice.change,
        "counts": notice.counts,
    }  # fmt: skip
    return {key: value for key, value in found.items() if value not in (None, "", {})}


def digest_title(notices: Sequence[Notice]) -> str:
    """Return one line for many: how many of each kind."""
    kinds = [notice.kind.value for notice in notices]
    parts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
    return f"{counted(len(notices), 'notice')}: {', '.join(parts)}"


def digest_text(notices: Sequence[Notice]) -> str:
    """Return the titles of many, the first of them."""
    more = len(notices) - LISTED
    lines = [title(notice) for notice in notices[:LISTED]]
    return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def _usd(amount: MicroUsd | None) -> float | None:
    return None if amount is None else float(usd(amount))


def _budget_title(notice: Notice) -> str:
    name = notice.name or notice.subject
    if notice.share is None:
        return f"the budget of run {notice.run} does not reach for {name}"
    if notice.share < 1.0:
        return f"{name} has reached {percent(notice.share)} of its budget"
    return f"{name} has reached its budget"


def _lines(notice: Notice) -> list[str]:
    lines = [_ran(notice), notice.says and _sentence(notice.says)]
    if notice.kind is NoticeKind.NIGHT:
        lines.append(_night(notice))
    if notice.limit is not None:
        lines.append(_taken(notice))
    elif notice.kind is NoticeKind.ATTENTION and notice.reserved:
        lines.append(f"It may still cost {money(notice.reserved)}.")
    if notice.change:
        lines.append(f"What would change it: {notice.change}.")
    where = {"project": notice.project, "run": notice.run}
    named = [f"{what} {name}" for what, name in where.items() if name]
    if named:
        lines.append(_sentence(", ".join(named)))
    look = _LOOK.get(notice.kind, "")
    if look:
        lines.append(f"See `{look.format(subject=notice.subject)}`.")
    return [line for line in lines if line]


def _sentence(words: str) -> str:
    whole = words[:1].upper() + words[1:]
    return whole if whole.endswith((".", "!", "?")) else f"{whole}."


def _ran(notice: Notice) -> str:
    if notice.ran_s is None:
        return ""
    ran = f"It ran for {span(notice.ran_s)}"
    ran += f" in {counted(notice.attempt, 'attempt')}" if notice.attempt else ""
    return f"{ran}{f' and cost {money(notice.spent)}' if notice.spent else ''}."


def _night(notice: Notice) -> str:
    parts = [f"{number} {_LEFT.get(what, what)}" for what, number in notice.counts.items()]
    return f"Jobs: {', '.join(parts)}." if parts else ""


def _taken(notice: Notice) -> str:
    kept = f", {money(notice.reserved)} set aside" if notice.reserved else ""
    return f"{money(notice.spent)} of {money(notice.limit)} spent{kept}."


# -- the list --------------------------------------------------------------------------------

_TONES: Mapping[str, Tone] = {"due": "busy", "told": "good", "given-up": "bad"}


def notices_sheet(notices: Sequence[Notice], now: Instant) -> Sheet:
    """Show notices, one a row, and how far each is to each target."""
    columns = (
        Column("when"),
        Column("kind"),
        Column("what", gives_way=True),
        Column("targets"),
        Column("answer", gives_way=True),
    )
    rows = (
        cells(
            moment(one.at, now),
            one.kind.value,
            title(one),
            Cell(_targets(one), _TONES[one.state]),
            "; ".join(dict.fromkeys(w.says for w in one.ways.values() if w.says)),
        )
        for one in notices
    )
    nothing = ("Nothing was told yet; `cloudwhale notify` shows who would be.",)
    return Sheet(columns, tuple(rows), notes=() if notices else nothing)


def notice_keys(notice: Notice) -> dict[str, Any]:
    """Return a notice as `--json` shows it."""
    ways = {
        name: {"state": way.state, "says": way.says, "digest": way.digest, "at": iso(way.at)}
        for name, way in notice.ways.items()
    }
    return facts(notice) | {"title": title(notice), "state": notice.state, "targets": ways}


def _targets(notice: Notice) -> str:
    return ", ".join(f"{name} {way.state}" for name, way in notice.ways.items())
