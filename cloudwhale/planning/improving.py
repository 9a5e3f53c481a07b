"""Makes a match better step by step: moves aside for what has no place, moves and swaps."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from cloudwhale.model.reason import Refusal
from cloudwhale.planning.board import Board
from cloudwhale.planning.ground import Ground, Seat

TARGETS = 3
"""Other nodes that a job tries to move to, the best first."""

# Sums of scores in another order differ by less.
A_GAIN = 1e-6


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job in the round's order."""

    rank: int
    """The first is the least; no two have the same."""
    need: int


@dataclass(slots=True)
class Progress:
    """How far a round is: the effort that is left is counted, never timed, so that the same world
    gets the same plan.
    """

    to_make_room: int
    """Others that may still be asked to move aside."""
    to_improve: int
    """Moves and swaps that may still be tried."""
    refused: set[int] = field(default_factory=set[int])
    """Needs without a place: room only shrinks from one window to the next."""


def make_room(
    job: Waiting, others: Collection[int], nodes: Iterable[int], board: Board, progress: Progress
) -> bool:
    """Seat a job that fits nowhere by moving one other to its next best place; say if it worked.

    `others`: ranks of those who may be moved; `nodes`: where it would fit without all of them.
    """
    ground = board.ground
    for node in nodes:
        for seat in ground.seats[node]:
            if seat.rank not in others:
                continue
            if progress.to_make_room <= 0:
                return False
            progress.to_make_room -= 1
            if isinstance(ground.place(job.need, ground.without(node, (seat,))), Refusal):
                continue
            target = board.best(seat.need, (node,))
            if target is not None:
                _move(seat, target, ground)
                _seat(job.rank, job.need, node, ground)
                return True
    return False


def improve(board: Board, ranks: Collection[int], progress: Progress) -> bool:
    """Move and swap the seated of some ranks while the sum of scores grows and effort is left.

    Returns whether anybody moved.
    """
    if len(ranks) < 2 or len(board.ground.songs) < 2:
        return False  # the only one has the best place already
    has_moved = False
    while progress.to_improve > 0 and _one_pass(board, ranks, progress):
        has_moved = True
    return has_moved


def _one_pass(board: Board, ranks: Collection[int], progress: Progress) -> bool:
    """Carry out what gains, those that sit worst first; say whether anything did."""
    ground, gained = board.ground, False
    seats = [seat for here in ground.seats for seat in here if seat.rank in ranks]
    totals = [one.total for one in board.scored(seats)]
    order = sorted(zip(totals, seats, strict=True), key=lambda pair: (pair[0], pair[1].rank))
    for _, seat in order:
        if seat not in ground.seats[seat.node]:
            continue  # it has moved in this pass
        for change in _changes(seat, ranks, board):
            if progress.to_improve <= 0:
                return False
            progress.to_improve -= 1
            if _gains(change, ground):
                gained = True
                break
    return gained


Change = tuple[Seat, int, Seat | None]
"""Who moves, where to, and who takes its place in turn."""


def _changes(seat: Seat, ranks: Collection[int], board: Board) -> Iterator[Change]:
    tried = [seat.node]
    while len(tried) <= TARGETS:
        target = board.best(seat.need, tried)
        if target is None:
            break
        yield seat, target, None
        tried.append(target)
    for here in tuple(board.ground.seats):
        for other in here:
            if other.node != seat.node and other.need != seat.need and other.rank in ranks:
                yield seat, other.node, other


def _gains(change: Change, ground: Ground) -> bool:
    """Carry out a change that makes the sum of scores larger; else leave all as it was."""
    seat, target, _ = change
    nodes = (seat.node, target)
    before = sum(ground.worth(node) for node in nodes)
    old = [ground.seats[node] for node in nodes]
    if _carried_out(change, ground) and sum(map(ground.worth, nodes)) > before + A_GAIN:
        return True
    for node, seats in zip(nodes, old, strict=True):
        ground.restore(node, seats)
    return False


def _carried_out(change: Change, ground: Ground) -> bool:
    seat, target, other = change
    ground.rise(seat)
    if other is not None:
        ground.rise(other)
    moved = ground.try_seat(seat.rank, seat.need, target)
    if moved is None:
        return False
    ground.sit(moved)
    if other is None:
        return True
    back = ground.try_seat(other.rank, other.need, seat.node)
    if back is None:
        return False
    ground.sit(back)
    return True


def _move(seat: Seat, target: int, ground: Ground) -> None:
    ground.rise(seat)
    _seat(seat.rank, seat.need, target, ground)


def _seat(rank: int, need: int, node: int, ground: Ground) -> None:
    found = ground.try_seat(rank, need, node)
    assert found is not None, "it was looked at before"
    ground.sit(found)
