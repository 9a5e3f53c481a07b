"""Puts waiting jobs on the machines we have: each class as a whole, first class first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cloudwhale.model.job import Job
from cloudwhale.model.plan import Decision, Scored
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.board import Board, SmallBoard
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.ground import Ground, Seat
from cloudwhale.planning.improving import Progress, Waiting
from cloudwhale.planning.inventory import Free, Reservation
from cloudwhale.planning.needs import Needs
from cloudwhale.planning.refusals import Verdict as Verdict
from cloudwhale.planning.scoring import Song, Taste, cached_on
from cloudwhale.planning.seating import seat_class
from cloudwhale.planning.speeds import left_s
from cloudwhale.planning.usual import usual
from cloudwhale.spi.policy import Score

SMALL = 256
"""Pairs of a need and a node that are judged one by one in less time than numpy takes to import."""


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
    there: Mapping[str, str] = field(default_factory=dict[str, str])
    """Ids of the nodes on which some start, or not at all, by the ids of the jobs."""
    strict: bool = False
    """Whether everybody behind the first class that did not get all its places stays out."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The places that were given, and why the others got none."""

    places: tuple[tuple[Job, Decision], ...]
    refused: tuple[tuple[Job, Verdict], ...]


def pack(classes: Sequence[Sequence[Job]], given: Packing) -> Packed:
    """Match each class to places; return what each job got, in the order of the classes.

    Later classes get what earlier ones leave. Within a class smaller jobs may pass those that do
    not fit, and nobody of its head is refused whom only jobs behind it keep out (`seating`).
    """
    nodes = {name: free.node for name, free in given.free.items()}
    needs = Needs(given.now, given.durations, given.reserved, nodes, given.there)
    jobs = [job for some in classes for job in some]
    waiting = numbered(jobs, needs)
    ground = ground_of(waiting, needs, given)
    board = _board(ground, needs)
    progress, start = Progress(board.tries, board.tries), 0
    left_out: list[Waiting] = []
    for some in classes:
        left_out += seat_class(waiting[start : start + len(some)], board, progress)
        start += len(some)
        if given.strict and left_out:
            break
    seats = sorted((s for here in ground.seats for s in here), key=lambda seat: seat.rank)
    found = _packed(jobs, seats, left_out, board)
    behind = waiting[start:]
    if not behind:
        return found
    told = _stands_behind(jobs[left_out[0].rank])
    stuck = ((jobs[w.rank], Verdict(w.need, ground, {}, None, told=told)) for w in behind)
    return Packed(found.places, (*found.refused, *stuck))


def _stands_behind(first: Job) -> Reason:
    return Reason(
        code=Code.STANDS_BEHIND,
        says=f"stands behind {first.id}, which does not fit yet, and nobody passes",
        change=f"{first.id} starts, or `strict` is switched off",
    )


def numbered(jobs: Iterable[Job], needs: Needs) -> list[Waiting]:
    """Return the jobs by the numbers of their needs; the first has the least rank."""
    return [Waiting(rank, needs.of(job)) for rank, job in enumerate(jobs)]


def ground_of(waiting: Sequence[Waiting], needs: Needs, given: Packing) -> Ground:
    """Return the nodes as they are before the match."""
    return Ground(_songs(given), needs.all, lambda: _taste(waiting, needs, given))


def _board(ground: Ground, needs: Needs) -> Board:
    if len(ground.needs) * len(ground.songs) <= SMALL:
        return SmallBoard(ground)
    from cloudwhale.planning.large_board import LargeBoard

    return LargeBoard(ground, needs.devices)


def _songs(given: Packing) -> list[Song]:
    busy = _busy(given)
    songs: list[Song] = []
    for name, free in given.free.items():
        kept = given.reserved.get(name)
        left, job = (None, "") if kept is None else (kept.left, kept.job)
        songs.append(Song(free, busy.get(name, 0.0), left, job, cached_on(free.node)))
    return songs


def _busy(given: Packing) -> dict[str, Seconds]:
    """Return until when the jobs of each node are expected to run, by node id."""
    busy: dict[str, Seconds] = {}
    for job in given.running:
        place = job.placement
        if place is None or place.node not in given.free:
            continue
        free = given.free[place.node]
        at = free.node.facts.positions.get(place.devices[0]) if place.devices else None
        device = None if at is None else free.devices[at]
        model = None if device is None else device.device.model
        neighbours = 0 if device is None else max(0, device.jobs - 1)
        end_s = left_s(job, model, neighbours, given.durations, given.now)
        busy[place.node] = max(busy.get(place.node, 0.0), end_s)
    return busy


def _taste(waiting: Sequence[Waiting], needs: Needs, given: Packing) -> Taste:
    counts: dict[int, int] = {}
    for job in waiting:
        counts[job.need] = counts.get(job.need, 0) + 1
    demands = [(needs.all[need].wants, float(count)) for need, count in counts.items()]
    demands += [(job.wants, 1.0) for job in given.running]
    own = given.score.weights
    return Taste(
        policy=given.score,
        weights=given.weights if given.weights.keys() & own.keys() else own,
        kinds=usual(demands, needs.devices),
    )


def _packed(
    jobs: Sequence[Job], seats: Sequence[Seat], left_out: Sequence[Waiting], board: Board
) -> Packed:
    """Say what came of each job; those without a place and of one need share a verdict."""
    needs = list(dict.fromkeys(job.need for job in left_out))
    asked: list[tuple[int, int | None]] = [(seat.need, seat.node) for seat in seats]
    found = board.verdicts([*asked, *((need, None) for need in needs)])
    verdicts = dict(zip(needs, found[len(seats) :], strict=True))
    rows = zip(seats, board.scored(seats), board.rivals(seats), found[: len(seats)], strict=True)
    return Packed(
        places=tuple(
            (jobs[seat.rank], _decision(jobs[seat.rank], chosen, rivals, elsewhere))
            for seat, chosen, rivals, elsewhere in rows
        ),
        refused=tuple((jobs[job.rank], verdicts[job.need]) for job in left_out),
    )


def _decision(job: Job, chosen: Scored, rivals: tuple[Scored, ...], elsewhere: Verdict) -> Decision:
    return Decision.model_construct(
        job=job.id,
        chosen=chosen,
        rivals=rivals,
        refused=dict(elsewhere.refused),
        nearest=elsewhere.nearest,
        nearest_node=elsewhere.nearest_node,
    )
