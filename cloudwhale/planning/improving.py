"""Makes a match better step by step: moves aside for what has no place, moves and swaps."""

from collections.abc import Collection, Iterator

from cloudwhale.model.reason import Refusal
from cloudwhale.planning.board import Board
from cloudwhale.planning.ground import Ground, Seat

TRIES = 400
"""Of each kind in a round: an effort that is counted, so that the same world gets the same plan."""

# Sums of scores in another order differ by less.
A_GAIN = 1e-6


class Effort:
    """What a round may still try; shared by all its classes."""

    def __init__(self, tries: int = TRIES) -> None:
        self.to_make_room = tries
        self.to_improve = tries


def make_room(rank: int, need: int, board: Board, effort: Effort) -> bool:
    """Seat a job that fits nowhere by moving one other to its next best place; say if it worked."""
    ground = board.ground
    for node in board.could(need) if effort.to_make_room > 0 else ():
        for seat in ground.seats[node]:
            if effort.to_make_room <= 0:
                return False
            effort.to_make_room -= 1
            if isinstance(ground.place(need, ground.without(node, (seat,))), Refusal):
                continue
            target = board.best(seat.need, other_than=node)
            if target is not None:
                _move(seat, target, ground)
                _seat(rank, need, node, ground)
                return True
    return False


def improve(board: Board, ranks: Collection[int], effort: Effort) -> None:
    """Move and swap the seated of some ranks while the sum of scores grows and effort is left."""
    while effort.to_improve > 0 and _one_step(board, ranks, effort):
        pass


def _one_step(board: Board, ranks: Collection[int], effort: Effort) -> bool:
    """Carry out the first move or swap that gains, those that sit worst first; False: none does."""
    ground = board.ground
    seats = [seat for here in ground.seats for seat in here if seat.rank in ranks]
    if len(ground.songs) < 2:
        return False
    seats.sort(key=lambda seat: (ground.scored(seat).total, seat.rank))
    for seat in seats:
        for change in _changes(seat, seats, board):
            if effort.to_improve <= 0:
                return False
            effort.to_improve -= 1
            if _gains(change, ground):
                return True
    return False


Change = tuple[Seat, int, Seat | None]
"""Who moves, where to, and who takes its place in turn."""


def _changes(seat: Seat, seats: list[Seat], board: Board) -> Iterator[Change]:
    target = board.best(seat.need, other_than=seat.node)
    if target is not None:
        yield seat, target, None
    for other in seats:
        if other.node != seat.node and other.need != seat.need:
            yield seat, other.node, other


def _gains(change: Change, ground: Ground) -> bool:
    """Carry out a change that makes the sum of scores larger; else leave all as it was."""
    seat, target, other = change
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
