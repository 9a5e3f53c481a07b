"""Starburst's rules (Luo et al., USENIX ATC 2024): who has waited up to a limit is rented for."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from cloudwhale.model.units import Seconds
from cloudwhale.spi.waiting import Verdict, Wait, Waiting, Waits

HOUR_S: Seconds = 3600.0


class _Limited(ABC):
    """First come, first served, who fits passes; past its limit a job is rented for."""

    needs_quotes = True
    passes = True
    """Whether a job that fits may start before one that waits."""

    @abstractmethod
    def limit_s(self, one: Waiting) -> Seconds:
        """Return how long a job may wait."""

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        """Return `start` for those that fit, in order, and `rent` for those that waited enough."""
        free = dict(waits.free)
        found: dict[str, Verdict] = {}
        blocked = False
        for one in waits.waiting:
            node = None if blocked else _fullest(one, free)
            until = one.job.submitted_at + self.limit_s(one)
            if one.start_by is not None:
                until = min(until, one.start_by)
            if node is not None:
                free[node] -= one.devices
                found[one.job.id] = Verdict("start", "there is room", node=node)
            elif one.quote is not None and until <= waits.now:
                found[one.job.id] = Verdict("rent", "has waited for as long as it may")
            else:
                blocked = not self.passes
                at = until if until > waits.now else None
                found[one.job.id] = Verdict("wait", f"waits {self.limit_s(one):.0f} s", at=at)
        return found


class Never:
    """Nobody is rented for, and who fits may start."""

    needs_quotes = True

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        """Return nothing."""
        return {}


class NoWait(_Limited):
    """Who does not fit at once is rented for."""

    def limit_s(self, one: Waiting) -> Seconds:
        """Return 0."""
        return 0.0


class ConstantWait(_Limited):
    """All wait equally long, in line: who waits blocks those behind."""

    passes = False

    def __init__(self, wait_s: Seconds = 600.0) -> None:
        self.wait_s = wait_s

    def limit_s(self, one: Waiting) -> Seconds:
        """Return the same for all."""
        return self.wait_s


class StarWait(_Limited):
    """The more devices, the longer: what is left of Compute-Wait where no lengths are known."""

    def __init__(self, per_device_s: Seconds = 600.0) -> None:
        self.per_device_s = per_device_s

    def limit_s(self, one: Waiting) -> Seconds:
        """Return the limit, by the devices."""
        return self.per_device_s * one.devices


class ComputeWait(_Limited):
    """The more a job would compute, the longer: the rule that Starburst settled on."""

    def __init__(self, part: float = 0.1, guess_s: Seconds = HOUR_S) -> None:
        self.part = part
        self.guess_s = guess_s

    def limit_s(self, one: Waiting) -> Seconds:
        """Return the limit, by devices and length."""
        length_s = self.guess_s if one.length_s is None else one.length_s
        return self.part * one.devices * length_s


def _fullest(one: Waiting, free: Mapping[str, float]) -> str | None:
    """Return the node that it fits on with least left beside it; ties end at the id."""
    fits = [n for n in one.fits_now if free.get(n, 0.0) >= one.devices - 1e-9]
    return min(fits, key=lambda node: (free[node], node), default=None)


_: tuple[Wait, ...] = (Never(), NoWait(), ConstantWait(), StarWait(), ComputeWait())
