"""How good a place is, judged by the room that is there: the baselines beside the whale."""

from cloudwhale.spi.amounts import part, share
from cloudwhale.spi.policy import Room, Score


class FirstFit:
    """Every feasible place is as good as another: the first by name is taken."""

    weights = {"first-fit": 1.0}

    def score(self, room: Room) -> tuple[float, ...]:
        """Score every place 1."""
        return (1.0,)


class BestFit:
    """The place that would have the least left: whole nodes stay whole."""

    weights = {"best-fit": 1.0}

    def score(self, room: Room) -> tuple[float, ...]:
        """Score each place by 1 − the mean share of it that would be left."""
        return (1.0 - left(room),)


class WorstFit:
    """The place that would have the most left: load is spread."""

    weights = {"worst-fit": 1.0}

    def score(self, room: Room) -> tuple[float, ...]:
        """Score each place by the mean share of it that would be left."""
        return (left(room),)


class DotProduct:
    """The place whose remainder points most where the demand points."""

    weights = {"dot-product": 1.0}

    def score(self, room: Room) -> tuple[float, ...]:
        """Score each place by demand · remainder over the dimensions, both as shares of it."""
        shares = wanted_and_free(room)
        return (share(sum(wanted * free for wanted, free in shares) / len(shares)),)


class Fgd:
    """The place where the least becomes useless: fragmentation gradient descent (ATC 2023)."""

    weights = {"fgd": 1.0}

    def score(self, room: Room) -> tuple[float, ...]:
        """Score each place by the share of its devices that other jobs could use no longer.

        What the job itself takes is the same everywhere, so that the order is FGD's.
        """
        return (1.0 - part(room.lost_gpus, room.lost_gpus + 1.0),)


def left(room: Room) -> float:
    """Return the share of the node in [0, 1] that the job leaves, averaged over dimensions.

    A dimension that the node does not have (no GPU) does not count.
    """
    has_gpus = share(room.gpus)
    cpu = part(room.free_cpu - room.wants_cpu, room.cpu)
    memory = part(room.free_memory_gib - room.wants_memory_gib, room.memory_gib)
    gpus = part(room.free_gpus - room.wants_gpus, room.gpus)
    return (cpu + memory + has_gpus * gpus) / (2.0 + has_gpus)


def wanted_and_free(room: Room) -> tuple[tuple[float, float], ...]:
    """Return what the job wants and what is free, as shares of the node, by dimension.

    Of what the node does not have the job wants nothing.
    """
    return (
        (part(room.wants_cpu, room.cpu), part(room.free_cpu, room.cpu)),
        (part(room.wants_memory_gib, room.memory_gib), part(room.free_memory_gib, room.memory_gib)),
        (part(room.wants_disk_gib, room.disk_gib), part(room.free_disk_gib, room.disk_gib)),
        (_of(room.wants_gpus, room.gpus), _of(room.free_gpus, room.gpus)),
        (_of(room.wants_gpu_gib, room.gpu_gib), _of(room.free_gpu_gib, room.gpu_gib)),
    )


def _of(some: float, whole: float) -> float:
    """Return a part of what a node may have none of; then 0."""
    return share(some / (whole + 1e-12))


_: tuple[Score, ...] = (FirstFit(), BestFit(), WorstFit(), DotProduct(), Fgd())  # for the checkers
