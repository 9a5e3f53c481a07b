"""What went wrong in a night, told shortly: the night shrunk, then what happened at last."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from night_checks import Played, play
from night_cloud import Mutant
from night_house import NONE
from night_values import BEGAN_AT, Night, as_data, from_data

from cloudwhale.model import event as e

T = TypeVar("T")

TRIES = 120
LAST = 24
QUIET = (e.Read, e.BootTold, e.Reserved, e.Released, e.StoreUsed, e.OrderPosted, e.StopPosted)


def shrunk(night: Night, rule: str, mutant: Mutant = NONE, tries: int = TRIES) -> Night:
    """Return a smaller night that breaks the same rule: fewer troubles, then fewer jobs."""
    left = [tries]

    def breaks(some: Night) -> bool:
        left[0] -= 1
        if left[0] < 0:
            return False
        wrong = play(some, mutant).violation
        return wrong is not None and wrong.rule == rule

    def of_troubles(some: Sequence[Any]) -> Night:
        return replace(night, troubles=tuple(some))

    wrong = play(night, mutant).violation
    if wrong is not None:  # what was to come later has nothing to do with it
        early = replace(
            night, troubles=tuple(one for one in night.troubles if one.at <= wrong.at),
            jobs=tuple(job for job in night.jobs if job.at <= wrong.at),
        )  # fmt: skip
        night = early if breaks(early) else night
    night = of_troubles(_fewer(night.troubles, lambda some: breaks(of_troubles(some))))

    def of_jobs(some: Sequence[Any]) -> Night:
        ids = {job.id for job in some}
        rest = tuple(job if job.after in ids else replace(job, after="") for job in some)
        return replace(night, jobs=rest)

    return of_jobs(_fewer(night.jobs, lambda some: breaks(of_jobs(some))))


def _fewer(things: Sequence[T], breaks: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Return few of some things that still break: halves, then quarters, then one by one."""
    step = max(1, len(things) // 2)
    while True:
        at = 0
        while at < len(things):
            rest = [*things[:at], *things[at + step :]]
            if breaks(rest):
                things = rest
            else:
                at += step
        if step == 1:
            return things
        step //= 2


def story(played: Played) -> Iterator[str]:
    """Yield a night that went wrong, in words: what it was, and what happened at last."""
    wrong, night = played.violation, played.house.night
    if wrong is None:
        yield f"night {night.seed}: nothing went wrong"
        return
    yield f"night {night.seed}, {wrong.at:.0f} s in: {wrong.rule}: {wrong.says}"
    yield f"{len(night.jobs)} jobs, {len(night.owned)} machines of our own, offers " + ", ".join(
        shelf.id for shelf in night.shelves
    )
    for one in night.troubles:
        if one.at <= wrong.at:
            words = [one.kind, one.word, f"by {one.by:g}" if one.by else ""]
            words.append(f"for {one.for_s:.0f} s" if one.for_s else "")
            yield f"  {one.at:7.0f} s  {' '.join(filter(None, words))}"
    yield "what happened at last:"
    yield from _last(played, wrong.says)


def _last(played: Played, says: str) -> Iterator[str]:
    """Yield the last events of those whom it was about; of all when it names nobody."""
    told = [one.event for one in played.house.store.since(0, 1_000_000)]
    rows = [(event.at - BEGAN_AT, _words(event), event) for event in told]
    names = {word.strip(":,.") for word in says.split()}
    known = {getattr(event, "job", "") for event in told} | set(played.checks.rentals)
    about = names & {name for name in known if name}
    some = [
        f"  {at:7.0f} s  {words}" for at, words, event in rows
        if not isinstance(event, QUIET) and (not about or any(name in words for name in about))
    ]  # fmt: skip
    yield from some[-LAST:]


def _words(event: e.Event) -> str:
    kind = event.kind.replace("-", " ")
    match event:
        case e.RentalChanged(rental=rental):
            return f"{rental.id} ({rental.offer}) is {rental.state.value}"
        case e.Placed(job=job, attempt=attempt, placement=place):
            return f"{job} attempt {attempt} is placed on {place.node}"
        case e.NodeJoined(node=node):
            return f"{node.id} joins, {node.state.value}"
        case e.CheckpointSaved(job=job, checkpoint=saved):
            return f"{job} has saved {saved.name} in attempt {saved.attempt}"
        case e.Noted(subject=subject, reason=reason):
            return f"{subject}: {reason.says}"
        case _:
            row = event.model_dump()
            whom = row.get("job") or row.get("node") or row.get("payer") or ""
            says = (row.get("reason") or {}).get("says", "")
            return f"{whom} {row.get('attempt', '')} {kind}{says and f': {says}'}".strip()


def keep(night: Night, rule: str, says: str, folder: Path) -> Path:
    """Write a night as a case that a test plays again; return where."""
    path = folder / f"{night.seed}-{rule}.yaml"
    row = {"says": says, "rule": rule, **as_data(night)}
    path.write_text(yaml.safe_dump(row, sort_keys=False, width=100))
    return path


def kept(path: Path) -> Night:
    """Return the night of a case."""
    return from_data(yaml.safe_load(path.read_text()))
