"""Puts waiting jobs on the machines we have, one class after the other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cloudwhale.model.job import Job, Placement
from cloudwhale.model.node import NodeState
from cloudwhale.model.plan import Decision
from cloudwhale.model.reason import Code, Reason, Refusal
from cloudwhale.model.units import Instant
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import could_ever_fit, fit
from cloudwhale.planning.inventory import Free, Reservation, free_capacity
from cloudwhale.planning.scoring import RIVALS_KEPT, ranked
from cloudwhale.spi.policy import Score


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why no node takes a class of equal jobs in this round."""

    reason: Reason
    refused: Mapping[Code, int]
    nearest: Refusal | None
    nearest_node: str | None


@dataclass(frozen=True, slots=True)
class Packed:
    """The places that were given, and why the others got none."""

    places: tuple[tuple[Job, Decision], ...]
    refused: tuple[tuple[Job, Verdict], ...]


@dataclass(frozen=True, slots=True)
class Packing:
    """All that the match may know, beside the jobs that wait."""

    now: Instant
    free: Mapping[str, Free]
    """What is free on each node, by node id, in the order of the ids."""
    score: Score
    running: Sequence[Job] = ()
    """The jobs that hold a place, in the order of their ids."""
    durations: Durations = field(default_factory=lambda: Durations({}))
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """Weight of each named score; empty: the policy's own."""
    reserved: Mapping[str, Reservation] = field(default_factory=dict[str, Reservation])
    """Room that is kept, by node id: who would run past the start must fit beside it."""


def pack(classes: Iterable[Sequence[Job]], given: Packing) -> Packed:
    """Give each job in turn its best place; smaller jobs may pass those that do not fit.

    Room only shrinks within a round, so a class that was refused once stays refused: the work
    grows with classes and places given, not with waiting jobs.
    """
    left = dict(given.free)
    empty = empty_capacity(left)
    verdicts: dict[str, Verdict] = {}
    places: list[tuple[Job, Decision]] = []
    refused: list[tuple[Job, Verdict]] = []
    for job in (job for some in classes for job in some):
        wanted = job.demand
        verdict = verdicts.get(wanted)
        if verdict is None:
            answer = _best_place(job, left, empty, given.score)
            if isinstance(answer, Decision):
                chosen = answer.chosen
                assert chosen is not None
                node = chosen.placement.node
                left[node] = left[node].less(job.wants, chosen.placement)
                places.append((job, answer))
                continue
            verdict = verdicts[wanted] = answer
        refused.append((job, verdict))
    return Packed(tuple(places), tuple(refused))


def empty_capacity(free: Mapping[str, Free]) -> Mapping[str, Free]:
    """Return what the same nodes would have free if nothing ran on them and all were ready."""
    return free_capacity([f.node.but(state=NodeState.READY) for f in free.values()], ())


def _best_place(
    job: Job, left: Mapping[str, Free], empty: Mapping[str, Free], score: Score
) -> Decision | Verdict:
    spec = job.spec if job.grown is None else job.spec.but(resources=job.grown)
    feasible: list[tuple[Free, Placement]] = []
    refusals: list[tuple[str, Refusal]] = []
    for node, free in left.items():
        answer: Placement | Refusal | None = could_ever_fit(spec, empty[node])
        answer = answer or fit(spec, free)
        if isinstance(answer, Refusal):
            refusals.append((node, answer))
        else:
            feasible.append((free, answer))
    refused, nearest_node, nearest = _summary(refusals)
    if not feasible:
        return Verdict(_why_not(refusals, nearest), refused, nearest, nearest_node)
    best, *others = ranked(job.wants, feasible, score)
    return Decision.model_construct(
        job=job.id,
        chosen=best,
        rivals=tuple(others[:RIVALS_KEPT]),
        refused=refused,
        nearest=nearest,
        nearest_node=nearest_node,
    )


def _summary(
    refusals: list[tuple[str, Refusal]],
) -> tuple[dict[Code, int], str | None, Refusal | None]:
    counts: dict[Code, int] = {}
    for _, refusal in refusals:
        counts[refusal.code] = counts.get(refusal.code, 0) + 1
    if not refusals:
        return counts, None, None
    node, nearest = min(
        refusals, key=lambda pair: (not pair[1].can_wait, pair[1].shortfall, pair[0])
    )
    return counts, node, nearest


def _why_not(refusals: list[tuple[str, Refusal]], nearest: Refusal | None) -> Reason:
    if nearest is None:
        return Reason(
            code=Code.NO_NODES,
            says="there is no node to run on",
            change="start a node's agent, or add a node",
        )
    among = f" (the nearest of {len(refusals)} nodes)" if len(refusals) > 1 else ""
    code = Code.NO_ROOM_NOW if nearest.can_wait else Code.NOTHING_FITS
    return Reason(code=code, says=nearest.says + among, change=nearest.change)
