"""How a rehearsal is told: a few lines for a person, one document for a program."""

from textwrap import wrap
from typing import Any

from cloudwhale.model.units import Seconds
from cloudwhale.reporting.figures import size, span
from cloudwhale.reporting.rehearsal import InTime, Judgement, Verdict, in_time
from cloudwhale.reporting.rehearsed import Act, Rehearsed
from cloudwhale.reporting.repeating import repeated
from cloudwhale.reporting.sheet import Cell, Line, Tone

UPLOAD_MB_S = 100.0
"""What a machine in a cloud writes to the object store beside it, to be on the safe side."""
NOTICES_S: tuple[Seconds, ...] = (120.0, 30.0)
"""What clouds give before they take a spot machine; nothing at all is possible too."""

_TONES: dict[Verdict, Tone] = {Verdict.RESUMES: "good", Verdict.CANNOT_TELL: "warn"}


def sheet_lines(seen: Rehearsed, judgement: Judgement, width: int) -> list[Line]:
    """Return a rehearsal's verdict, what it rests on, and what was measured, wrapped."""
    tone = _TONES.get(judgement.verdict, "bad")
    lines: list[Line] = [
        (Cell(f"{seen.job}: {judgement.verdict.value.replace('-', ' ')}", tone),),
        *_wrapped(judgement.says, width),
        *_wrapped(judgement.remedy, width),
    ]
    for fact in (*judgement.evidence, *measured(seen)):
        lines += _wrapped(fact, width, "- ")
    return lines


def _wrapped(text: str, width: int, mark: str = "") -> list[Line]:
    after = " " * len(mark)
    rows = wrap(text, width, initial_indent=f"  {mark}", subsequent_indent=f"  {after}")
    return [(Cell(row, "quiet" if mark else "plain"),) for row in rows]


def measured(seen: Rehearsed) -> list[str]:
    """Return sentences with what was measured."""
    first, published = seen.first, seen.published
    if published is None or first.stop_s is None:
        return []
    told = [
        f"ended {span(first.stop_s)} after its signal; {span(seen.lost_s)} of work would have been "
        f"lost, of {span(first.ended_at - first.began_at)}",
        f"{published.name} has {size(published.size_bytes)}",
    ]
    told += [_notice_words(seen, one) for one in _notices(seen)]
    told.append(
        f"taken without any notice it loses what it did since its last save that was published, at "
        f"most its own interval and {span(seen.rule.every_s)} (`every`)"
    )
    same, other = repeated(seen)
    if same or other:
        told.append(_repeated_words(same, other))
    return told


def _notices(seen: Rehearsed) -> list[InTime]:
    found = (in_time(seen, notice_s, UPLOAD_MB_S) for notice_s in NOTICES_S)
    return [one for one in found if one is not None]


def _notice_words(seen: Rehearsed, one: InTime) -> str:
    what = f"a notice of {span(one.notice_s)}"
    sums = (
        f"{span(one.stop_s)} of {span(one.grace_s)} to save, then {span(one.upload_s)} to upload "
        f"at {UPLOAD_MB_S:.0f} MB/s"
    )
    if seen.first.killed:
        return f"{what} would not be enough: it was killed"
    return f"{what} {'is enough' if one.is_enough else 'is NOT enough'}: {sums}"


def _repeated_words(same: int, other: int) -> str:
    if not other:
        return f"{same} lines of work that it did twice are the same to the last digit"
    return (
        f"{other} of {same + other} lines of work that it did twice differ: its optimiser, random "
        f"state or data order is not in the checkpoint, or it is not deterministic"
    )


def keys(seen: Rehearsed, judgement: Judgement) -> dict[str, Any]:
    """Return the document of `rehearse --json`."""
    published, (same, other) = seen.published, repeated(seen)
    return {
        "job": seen.job,
        "verdict": judgement.verdict.value,
        "says": judgement.says,
        "remedy": judgement.remedy,
        "evidence": list(judgement.evidence),
        "signal": seen.rule.signal,
        "grace_s": seen.rule.grace_s,
        "stop_s": seen.first.stop_s,
        "publish_s": seen.publish_s,
        "lost_work_s": seen.lost_s,
        "checkpoint": None
        if published is None
        else {"name": published.name, "size_gib": published.size_bytes / 2**30},
        "was_read": seen.was_read,
        "repeated_lines": {"same": same, "different": other},
        "notices": [_notice_keys(one, killed=seen.first.killed) for one in _notices(seen)],
        "attempts": [
            _act_keys(name, act)
            for name, act in (
                ("first", seen.first),
                ("resumed", seen.second),
                ("fresh", seen.fresh),
            )
            if act is not None
        ],
    }


def _notice_keys(one: InTime, *, killed: bool) -> dict[str, Any]:
    return {
        "notice_s": one.notice_s,
        "grace_s": one.grace_s,
        "upload_s": one.upload_s,
        "is_enough": one.is_enough and not killed,
    }


def _act_keys(name: str, act: Act) -> dict[str, Any]:
    return {
        "name": name,
        "ran_s": act.ended_at - act.began_at,
        "exit_code": act.exit_code,
        "stop_s": act.stop_s,
        "killed": act.killed,
        "saves": len(act.saves),
        "lines": len(act.lines),
    }
