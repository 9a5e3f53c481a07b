"""The story of a job: every decision about it in order, with the numbers behind each."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState, Peaks, Placement, Resources
from cloudwhale.model.plan import Decision, Round, Scored
from cloudwhale.model.reason import Code, Reason, Refusal
from cloudwhale.model.rental import ON_ITS_WAY, Rental
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.value import Value
from cloudwhale.reporting.sentences import SILENT, Tellable, headline, reason_of
from cloudwhale.reporting.tolls import Toll, tolls
from cloudwhale.spi.store import Told


class Numbers(Value):
    """What a round kept with a decision about the job."""

    round: int
    weights: dict[str, float]
    """What each named score counted; empty: nobody knows any more, or there was but one."""
    chosen: Scored | None
    rivals: tuple[Scored, ...]
    refused: dict[Code, int]
    """How many nodes refused, by code."""
    nearest: Refusal | None
    nearest_node: str | None


class Telling(Value):
    """One thing that happened, or several equal ones in a row."""

    at: Instant
    kind: str
    headline: str
    reason: Reason | None = None
    numbers: Numbers | None = None
    times: int = 1
    until: Instant | None = None
    """When the last of several equal ones happened."""
    held_until: Instant | None = None
    """Of a hold: it lasts no longer than this."""
    peaks: Peaks | None = None
    """Of an attempt's end: the most that it used, where anybody measured it."""
    grown: Resources | None = None
    """What the next attempt asks for, because this one outgrew what it had."""
    toll: Toll | None = None
    """Of the end of an attempt that was interrupted: what that has cost."""
    boot: dict[str, Seconds] | None = None
    """Of a place on a rented machine: how long the phases of its boot took; None: it told none."""


class Story(Value):
    """All that is known of a job, oldest first."""

    job: Job
    tellings: tuple[Telling, ...]
    coming: tuple[Rental, ...] = ()
    """Machines that are on their way for it."""


DECIDED = (e.Placed, e.Waits, e.Held, e.Parked, e.GaveUp, e.StopWished)
"""Events that a round has decided, which may have kept numbers."""

Weights = Callable[[Round], Mapping[str, float]]
"""What each named score counted in a round; empty when nobody knows."""


def _unknown(stored: Round) -> Mapping[str, float]:
    return {}


def story(
    job: Job,
    told: Sequence[Told],
    rounds: Sequence[tuple[Round, Decision | None]],
    weights: Weights = _unknown,
    rentals: Sequence[Rental] = (),
) -> Story:
    """Return a job's story from its events and the rounds that said something of it.

    `rentals`: the machines of its run, as they are or were last.
    """
    boots = {one.node: one.boot.took_s for one in rentals if one.node is not None}
    coming = [one for one in rentals if job.id in one.jobs and one.state in ON_ITS_WAY]
    decided = {stored.now: _numbers(stored, decision, weights) for stored, decision in rounds}
    costs = tolls(job.id, told, rentals)
    tellings: list[Telling] = []
    place: Placement | None = None
    for item in told:
        event = item.event
        if not isinstance(event, Tellable) or isinstance(event, SILENT):
            continue
        place = event.placement if isinstance(event, e.Placed) else place
        telling = _telling(event, place, decided)
        if telling is None:
            continue
        if isinstance(event, e.Placed):
            telling = telling.but(boot=boots.get(event.placement.node) or None)
        tellings.append(telling.but(toll=costs.get(item.seq)))
    is_waiting = job.state is JobState.PENDING
    return Story(
        job=job, tellings=tuple(_gathered(tellings)), coming=tuple(coming) if is_waiting else ()
    )


def _telling(
    event: Tellable, place: Placement | None, decided: Mapping[Instant, Numbers]
) -> Telling | None:
    said = headline(event, place)
    if said is None:
        return None
    peaks = event.peaks if isinstance(event, e.Leaves) and event.peaks != Peaks() else None
    return Telling(
        at=event.at,
        kind=str(getattr(event, "kind", "")),
        headline=said,
        reason=reason_of(event),
        numbers=decided.get(event.at) if isinstance(event, DECIDED) else None,
        held_until=event.until if isinstance(event, e.Held) else None,
        peaks=peaks,
        grown=event.grown if isinstance(event, e.Retried) else None,
    )


def _numbers(stored: Round, decision: Decision | None, weights: Weights) -> Numbers:
    chosen = decision.chosen if decision else None
    return Numbers(
        round=stored.number,
        weights=dict(weights(stored)) if chosen is not None else {},
        chosen=chosen,
        rivals=decision.rivals if decision else (),
        refused=decision.refused if decision else {},
        nearest=decision.nearest if decision else None,
        nearest_node=decision.nearest_node if decision else None,
    )


def _gathered(tellings: Sequence[Telling]) -> Iterator[Telling]:
    """Fold runs of the same thing: checkpoints, and waits for the same code.

    The newest of a run is told, with the time of the first.
    """
    open_run: Telling | None = None
    for telling in tellings:
        if open_run is not None and _same(open_run, telling):
            open_run = telling.but(at=open_run.at, times=open_run.times + 1, until=telling.at)
            continue
        if open_run is not None:
            yield open_run
        open_run = telling
    if open_run is not None:
        yield open_run


def _same(old: Telling, new: Telling) -> bool:
    if old.kind != new.kind:
        return False
    if new.kind == "noted":
        return old.reason == new.reason
    if new.kind not in ("checkpoint-saved", "waits", "held", "started"):
        return False
    if new.kind == "started":
        return old.headline == new.headline  # an agent that adopted the attempt says so again
    codes = [telling.reason.code if telling.reason else None for telling in (old, new)]
    return codes[0] == codes[1]
