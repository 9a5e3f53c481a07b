"""How good a place is, judged by what it would leave: tightest, loosest, or simply the first."""

from collections.abc import Sequence

from cloudwhale.model.job import Resources
from cloudwhale.spi.policy import Room, Score


class FirstFit:
    """Every feasible place is as good as another: the first by name is taken."""

    names = ("first-fit",)

    def score(self, wants: Resources, rooms: Sequence[Room]) -> Sequence[tuple[float, ...]]:
        """Score every place 1."""
        return [(1.0,) for _ in rooms]


class BestFit:
    """The place that would have the least left: whole nodes stay whole."""

    names = ("best-fit",)

    def score(self, wants: Resources, rooms: Sequence[Room]) -> Sequence[tuple[float, ...]]:
        """Score each place by 1 − the mean share of it that would be left."""
        return [(1.0 - _left(wants, room),) for room in rooms]


class WorstFit:
    """The place that would have the most left: load is spread."""

    names = ("worst-fit",)

    def score(self, wants: Resources, rooms: Sequence[Room]) -> Sequence[tuple[float, ...]]:
        """Score each place by the mean share of it that would be left."""
        return [(_left(wants, room),) for room in rooms]


def _left(wants: Resources, room: Room) -> float:
    """Return the share of the node in [0, 1] that the job leaves, averaged over dimensions.

    A dimension that the node does not have (no GPU) does not count.
    """
    parts = [
        _share(room.free_cpu - wants.cpu, room.cpu),
        _share(room.free_memory_gib - (wants.memory_gib or 0.0), room.memory_gib),
    ]
    if room.devices:
        taken = len(room.chosen) * wants.gpu.share
        parts.append(_share(sum(d.free_share for d in room.devices) - taken, len(room.devices)))
    return sum(parts) / len(parts)


def _share(left: float, total: float) -> float:
    return min(1.0, max(0.0, left / total)) if total > 0 else 0.0


_: tuple[Score, ...] = (FirstFit(), BestFit(), WorstFit())  # checked by the type checkers
