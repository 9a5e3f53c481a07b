"""Whom the settings tell: the list, a trial, and what people were told."""

import sys
from collections.abc import Iterable, Mapping, Sequence

from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.cli.looking import desk_here, settings_here
from cloudwhale.cli.output import document_or, say
from cloudwhale.clock import SystemClock
from cloudwhale.control.notifying.message import Answer, trial
from cloudwhale.control.notifying.sending import send
from cloudwhale.control.notifying.targets import Target
from cloudwhale.control.notifying.targets import targets as read_targets
from cloudwhale.model.job import JobSpec
from cloudwhale.model.notice import EVERY_KIND
from cloudwhale.reporting.figures import counted
from cloudwhale.reporting.notices import notice_keys, notices_sheet
from cloudwhale.reporting.sheet import Cell, Column, Sheet, cells
from cloudwhale.settings import Settings

NOBODY = "The settings tell nobody: write a table [notify.NAME] into cloudwhale.toml."


def targets(*, as_json: bool) -> int:
    """Show whom the settings tell, and of what."""
    found = read_targets(settings_here().notify)
    document_or(
        as_json,
        lambda: {"targets": [_keys(one) for one in found.values()]},
        lambda paper: paper.sheet(_targets_sheet(found)),
    )
    return Exit.DONE


def listed(last: int, *, as_json: bool) -> int:
    """Show what people were told last."""
    with desk_here() as desk:
        notices, now = desk.store.notices(limit=last), desk.clock.now()
    document_or(
        as_json,
        lambda: {"notices": [notice_keys(one) for one in notices]},
        lambda paper: paper.sheet(notices_sheet(notices, now)),
    )
    return Exit.DONE


def tried(name: str, *, as_json: bool) -> int:
    """Send a trial to every target, or to one, and show what came of it."""
    found = read_targets(settings_here().notify)
    if name and name not in found:
        raise NotFound(
            f"The settings have no target {name!r}.",
            f"Those that they have: {', '.join(found) or 'none'}.",
        )
    now = SystemClock().now()
    chosen = [one for one in found.values() if name in ("", one.name)]
    answers = {one.name: send(trial(now), one, now) for one in chosen}
    document_or(
        as_json,
        lambda: {"targets": [_keys(found[one]) | _answer(a) for one, a in answers.items()]},
        lambda paper: paper.sheet(_answers_sheet(answers)),
    )
    return Exit.DONE if all(a.outcome == "told" for a in answers.values()) else Exit.TROUBLE


def warn_of_nobody_told(settings: Settings, specs: Iterable[JobSpec]) -> None:
    """Say on standard error which jobs ask that somebody be told, where there is nobody to tell."""
    asking = [one for one in specs if one.notify.on and one.notify.webhook is None]
    if asking and not settings.notify:
        more = f" and {counted(len(asking) - 1, 'other')}" if asking[1:] else ""
        kinds = ", ".join(asking[0].notify.on)
        says = f"Nobody will be told of {asking[0].name}{more} (notify: {kinds})"
        say(f"{says}: {NOBODY[:1].lower()}{NOBODY[1:]}", sys.stderr)


def _keys(target: Target) -> dict[str, object]:
    return {"name": target.name, "way": target.way, "on": sorted(target.on)}


def _answer(answer: Answer) -> dict[str, object]:
    return {"arrived": answer.outcome == "told", "says": answer.says}


def _targets_sheet(found: Mapping[str, Target]) -> Sheet:
    columns = (Column("target"), Column("way"), Column("is told of", gives_way=True))
    rows = (cells(one.name, one.way, _on(one.on)) for one in found.values())
    return Sheet(columns, tuple(rows), notes=() if found else (NOBODY,))


def _on(kinds: Sequence[str] | frozenset[str]) -> str:
    return "everything" if frozenset(kinds) == EVERY_KIND else ", ".join(sorted(kinds))


def _answers_sheet(answers: Mapping[str, Answer]) -> Sheet:
    columns = (Column("target"), Column("arrived"), Column("answer", gives_way=True))
    rows = (
        cells(
            name,
            Cell("yes", "good") if one.outcome == "told" else Cell("no", "bad"),
            one.says,
        )
        for name, one in answers.items()
    )
    return Sheet(columns, tuple(rows), notes=() if answers else (NOBODY,))
