"""How good a place is, asked in six ways: soon, unspoilt, fitting, together, known, quiet."""

from cloudwhale.spi.amounts import most, part
from cloudwhale.spi.policy import Room, Score
from cloudwhale_policies.fits import left, wanted_and_free

# A job without GPUs, or with a crumb of one, is judged as if it took a tenth of a device.
LEAST_GPUS = 0.1

# Alignment is the question; tightness tells apart what is aligned alike.
ALIGNMENT = 0.5

# Two jobs that keep one device busy all the time halve each other.
SM_CONTENTION = 0.5


class Whale:
    """Six named scores; the defaults have the least mean completion of those that were tried."""

    weights = {
        "finish": 0.53,
        "strand": 0.25,
        "fit": 0.05,
        "release": 0.02,
        "affinity": 0.05,
        "quiet": 0.1,
    }

    def score(self, room: Room) -> tuple[float, ...]:
        """Return finish, strand, fit, release, affinity, quiet; each in [0, 1]."""
        return (
            part(room.soonest_s, room.done_s),
            strand(room),
            fit(room),
            part(room.busy_s, room.run_s),
            part(room.found, room.needs),
            quiet(room),
        )


def strand(room: Room) -> float:
    """Return takes / (takes + lost): a half where only what the job takes is lost to others.

    1 where nobody could have used it anyway, towards 0 the more it makes useless.
    """
    takes = most(room.wants_gpus, LEAST_GPUS)
    return takes / (takes + room.lost_gpus)


def fit(room: Room) -> float:
    """Return how well the demand points where the remainder points, and how little it leaves."""
    shares = wanted_and_free(room)
    dot = sum(wanted * free for wanted, free in shares)
    long = sum(wanted * wanted for wanted, _ in shares) * sum(free * free for _, free in shares)
    return ALIGNMENT * part(dot, long**0.5) + (1.0 - ALIGNMENT) * (1.0 - left(room))


def quiet(room: Room) -> float:
    """Return the expected throughput beside what is there: devices, disk and network."""
    return (
        room.throughput
        * (1.0 - SM_CONTENTION * room.sm)
        * part(room.free_disk_io_mb_s, room.wants_disk_io_mb_s)
        * part(room.free_network_mb_s, room.wants_network_mb_s)
    )


_: Score = Whale()  # checked by the type checkers
