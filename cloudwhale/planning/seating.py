"""Seats the jobs of a class together: who would lose most by another's choice chooses first."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from cloudwhale.model.reason import Refusal
from cloudwhale.planning.board import Board, Top
from cloudwhale.planning.ground import Seat
from cloudwhale.planning.improving import Progress, Waiting, improve, make_room

WINDOW = 256
"""Jobs that are matched together: those further back wait until the ones before have places."""

HEAD = 32
"""So many first jobs of a class are never passed over by those behind them."""


FEW = 64
"""Jobs for which several starts are tried, where nodes are few as well."""

NEAR = 0.02
"""Places that differ by less are as good as each other."""


Could: TypeAlias = Callable[[int], Sequence[int]]
"""The nodes where a need would have fitted before anybody of the window was seated."""


def seat_class(jobs: Sequence[Waiting], board: Board, progress: Progress) -> list[Waiting]:
    """Seat the jobs of one class, first first, and return those without a place.

    Jobs are taken by regret, not by rank; then what has no place tries to move others aside, and
    what sits badly to move or swap. At last nobody of the head stays out whom only jobs behind
    it keep out: moved they may be, passed over it is not.
    """
    left_out: list[Waiting] = []
    for start in range(0, len(jobs), WINDOW):
        window = jobs[start : start + WINDOW]
        able = [job for job in window if job.need not in progress.refused]
        if not able:  # most classes of a long queue: somebody with the same needs was refused
            left_out += window
            continue
        needs = list(dict.fromkeys(job.need for job in able))
        could = board.fitting(needs)
        if not any(could(need) for need in needs):  # nobody can be seated, moved or kept
            progress.refused.update(needs)
            left_out += window
            continue
        seated = _window(able, could, board, progress)
        head = [job for job in able if job.rank < jobs[0].rank + HEAD]
        _keep_the_head(head, could, board, seated)
        unseated = [job for job in window if job.rank not in seated]
        progress.refused.update(job.need for job in unseated)
        left_out += unseated
    return left_out


def _window(jobs: Sequence[Waiting], could: Could, board: Board, progress: Progress) -> set[int]:
    """Return the ranks of those that got a place."""
    seated = _best_start(jobs, could, board)
    before = len(seated)
    for job in jobs:
        if job.rank not in seated and progress.to_make_room > 0:
            if make_room(job, seated, could(job.need), board, progress):
                seated.add(job.rank)
    if improve(board, seated, progress) or len(seated) > before:
        _seat_what_fits([job for job in jobs if job.rank not in seated], board, seated)
    return seated


def _best_start(jobs: Sequence[Waiting], could: Could, board: Board) -> set[int]:
    """Seat jobs by regret; of few jobs also by rank and the hardest first, and keep the best.

    The best has the most jobs with a place, then the largest sum of scores, then it was first.
    """
    if len(jobs) < 2 or len(jobs) > FEW or board.at_once > 1:
        return _by_regret(jobs, board)
    ground = board.ground
    before = tuple(ground.seats)
    found: list[tuple[int, float, int, tuple[tuple[Seat, ...], ...], set[int]]] = []
    for number, order in enumerate((None, jobs, _hardest_first(jobs, could, board))):
        seated = _by_regret(jobs, board) if order is None else _one_by_one(order, board)
        total = sum(ground.worth(node) for node in range(len(before)) if ground.seats[node])
        found.append((len(seated), total, -number, tuple(ground.seats), seated))
        ground.go_back_to(before)
    *_, seats, seated = max(found, key=lambda one: one[:3])
    ground.go_back_to(seats)
    return seated


def _one_by_one(jobs: Iterable[Waiting], board: Board) -> set[int]:
    seated: set[int] = set()
    _seat_what_fits(jobs, board, seated)
    return seated


def _hardest_first(jobs: Sequence[Waiting], could: Could, board: Board) -> list[Waiting]:
    """Return the jobs with the fewest places first, then the largest, then by rank."""

    def key(job: Waiting) -> tuple[int, float, float, int]:
        wants = board.ground.needs[job.need].wants
        return (len(could(job.need)), -wants.gpu.count * wants.gpu.share, -wants.cpu, job.rank)

    return sorted(jobs, key=key)


def _by_regret(jobs: Sequence[Waiting], board: Board) -> set[int]:
    """Seat jobs until nothing fits; return the ranks of those that have a place."""
    left = {job.rank: job.need for job in jobs}
    seated: set[int] = set()
    while left:
        taken: set[int] = set()
        for rank, top in _most_regret_first(left, board):
            node = top.node if top.node not in taken else None
            if node is None:
                node = board.as_good(left[rank], taken, top.total - NEAR)
            if node is None:
                continue
            seat = board.ground.try_seat(rank, left[rank], node)
            assert seat is not None, "the board offers what fits"
            board.ground.sit(seat)
            seated.add(rank)
            taken.add(node)
            del left[rank]
            if len(taken) >= board.at_once:
                break
    return seated


def _most_regret_first(left: dict[int, int], board: Board) -> list[tuple[int, Top]]:
    """Return the jobs with their best places; forget those that have none.

    Room only shrinks here, so that they would fit no better later.
    """
    needs = list(dict.fromkeys(left.values()))
    tops = dict(zip(needs, board.tops(needs), strict=True))
    order: list[tuple[float, int, Top]] = []
    for rank, need in tuple(left.items()):
        top = tops[need]
        if top is None:
            del left[rank]
        else:
            order.append((-top.regret, rank, top))
    order.sort(key=lambda one: one[:2])
    return [(rank, top) for _, rank, top in order]


def _seat_what_fits(jobs: Iterable[Waiting], board: Board, seated: set[int]) -> None:
    """Seat jobs in turn, each at its best place; what fits nowhere once fits nowhere later."""
    jobs = list(jobs)
    needs = list(dict.fromkeys(job.need for job in jobs))
    tops = zip(needs, board.tops(needs), strict=True)
    refused = {need for need, top in tops if top is None}
    for job in jobs:
        node = None if job.need in refused else board.best(job.need)
        seat = None if node is None else board.ground.try_seat(job.rank, job.need, node)
        if seat is None:
            refused.add(job.need)
        else:
            board.ground.sit(seat)
            seated.add(job.rank)


def _keep_the_head(head: Sequence[Waiting], could: Could, board: Board, seated: set[int]) -> None:
    """Give the first jobs the places of later ones, where nothing else keeps them out."""
    for job in head:
        if job.rank in seated:
            continue
        taken = {node for node, here in enumerate(board.ground.seats) if here}
        nodes = [node for node in could(job.need) if node in taken]
        later = _fewest_later(job, nodes, board, seated)
        if later is None:
            continue
        node, gone = later
        for seat in gone:
            board.ground.rise(seat)
            seated.discard(seat.rank)
        seat_now = board.ground.try_seat(job.rank, job.need, node)
        assert seat_now is not None, "it fitted without them"
        board.ground.sit(seat_now)
        seated.add(job.rank)
        displaced = sorted(gone, key=lambda seat: seat.rank)
        _seat_what_fits((Waiting(seat.rank, seat.need) for seat in displaced), board, seated)


def _fewest_later(
    job: Waiting, nodes: Iterable[int], board: Board, window: Collection[int]
) -> tuple[int, tuple[Seat, ...]] | None:
    """Return the node where the fewest jobs behind this one keep it out, and who they are."""
    found: list[tuple[int, int, tuple[Seat, ...]]] = []
    for node in nodes:
        gone = _later_in_the_way(job, board, node, window)
        if gone is not None:
            found.append((len(gone), node, gone))
    best = min(found, key=lambda one: one[:2], default=None)
    return None if best is None else best[1:]


def _later_in_the_way(
    job: Waiting, board: Board, node: int, window: Collection[int]
) -> tuple[Seat, ...] | None:
    ground = board.ground
    gone = [s for s in ground.seats[node] if s.rank > job.rank and s.rank in window]
    if not gone or isinstance(ground.place(job.need, ground.without(node, gone)), Refusal):
        return None
    for seat in sorted(gone, key=lambda one: one.rank):  # the first of them stay if they can
        fewer = [one for one in gone if one != seat]
        if not isinstance(ground.place(job.need, ground.without(node, fewer)), Refusal):
            gone = fewer
    return tuple(gone)
