"""What it takes to bring what a job has saved to a machine of another cloud: money and time.

Within one cloud a checkpoint is read where it lies, and what was saved on a machine of ours costs
nothing. The money is set aside with the machine that it is brought to, and charged with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cloudwhale.model import event as e
from cloudwhale.model.job import Job
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Egress, Rental
from cloudwhale.model.units import MICRO_PER_USD, NOTHING, MicroUsd
from cloudwhale.model.where import Where
from cloudwhale.planning.gravity import GB
from cloudwhale.planning.shortlist import NO_MOVES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row = NDArray[np.float64]

BRINGS_BYTES_S = 25e6
"""What is copied of a checkpoint from one cloud to another in a second: a first guess, as it may
pass the line of whoever runs cloudwhale."""

SPARE = 1.5
"""So many times the size of a checkpoint is paid for: a newer one may be larger, as long as the job
runs where it is."""

BESIDE_BYTES = 1_000_000
"""Of its manifest, at most."""

UNSAID_USD_GB = NO_MOVES.default_usd_gb


class Bringing:
    """What it takes to bring checkpoints to where some offers stand; asked for many jobs."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._offers = offers
        self._providers = {offer.provider for offer in offers}
        self._from: dict[Where, Row] = {}
        """What a GB costs that is brought from there to each offer; 0 within one cloud."""

    def is_asked(self, job: Job) -> bool:
        """Say whether a job has saved something in a cloud, and others are offered."""
        left = job.saved_from
        return left is not None and any(name != left.provider for name in self._providers)

    def usd_gb(self, job: Job, offer: Offer) -> float | None:
        """Return what a GB costs that a job brings to a machine, in dollars; None: it brings none.

        As the machine was offered on which it was saved: that cloud may offer nothing any more.
        """
        left = job.saved_from
        if left is None or left.provider == offer.provider:
            return None
        return self._usd_gb(left)

    def costs_usd(self, job: Job) -> Row:
        """Return what a job's checkpoint costs that is brought to each of the offers."""
        return self._usd_gb_from(job) * (_size(job) / GB)

    def takes_s(self, job: Job) -> Row:
        """Return how long that takes, about."""
        import numpy as np

        away = [_leaves(job, offer) for offer in self._offers]
        return np.array(away, dtype=np.float64) * (_size(job) / BRINGS_BYTES_S)

    def most(self, job: Job) -> MicroUsd:
        """Return the most that is paid for bringing a job's checkpoint to any of the offers."""
        if not self.is_asked(job) or job.checkpoint is None:
            return NOTHING
        return cost_of(_spare_bytes(job), float(self._usd_gb_from(job).max()))

    def worst(self, job: Job, offer: Offer) -> MicroUsd:
        """Return the most that is paid for bringing a job's checkpoint to a machine."""
        price = None if job.checkpoint is None else self.usd_gb(job, offer)
        return NOTHING if price is None else cost_of(_spare_bytes(job), price)

    @staticmethod
    def _usd_gb(left: Where) -> float:
        return UNSAID_USD_GB if left.egress_usd_gb is None else left.egress_usd_gb

    def _usd_gb_from(self, job: Job) -> Row:
        import numpy as np

        left = job.saved_from
        if left is None:
            return np.zeros(len(self._offers))
        found = self._from.get(left)
        if found is None:
            each = [self._usd_gb(left) * _leaves(job, offer) for offer in self._offers]
            found = self._from[left] = np.array(each, dtype=np.float64)
        return found


def _size(job: Job) -> int:
    return 0 if job.checkpoint is None else job.checkpoint.size_bytes


def _spare_bytes(job: Job) -> int:
    return math.ceil(SPARE * _size(job)) + BESIDE_BYTES


def _leaves(job: Job, offer: Offer) -> bool:
    return job.saved_from is not None and job.saved_from.provider != offer.provider


def cost_of(size_bytes: int, usd_gb: float) -> MicroUsd:
    """Return what so many bytes cost that leave a cloud, rounded up."""
    return MicroUsd(math.ceil(size_bytes / GB * usd_gb * MICRO_PER_USD - 1e-6))


def saved_regions(jobs: Iterable[Job]) -> tuple[str, ...]:
    """Return where in the clouds checkpoints lie that jobs go on from, each once, sorted."""
    places = (job.saved_from for job in jobs if job.checkpoint is not None)
    return tuple(sorted({place.region for place in places if place is not None}))


# -- what has happened -----------------------------------------------------------------------


def saved_there(job: Job, rental: Rental | None) -> Job:
    """Return a job whose newest checkpoint was made on a machine; None: on one of ours."""
    where = None if rental is None else _where(rental)
    return job if where == job.saved_from else job.but(saved_from=where)


def _where(rental: Rental) -> Where | None:
    taken = rental.taken
    if taken is None:
        return None
    return Where(provider=taken.provider, region=taken.region, egress_usd_gb=taken.egress_usd_gb)


def is_of(job: Job, event: e.Brought) -> bool:
    """Say whether a job still goes on from what was brought: it may have saved elsewhere since."""
    is_its = bool(job.saves) or job.checkpoint is None or job.checkpoint.name == event.checkpoint
    return is_its and job.saved_from == event.left


def brought(rental: Rental, event: e.Brought) -> Rental:
    """Return a machine to which a checkpoint was brought: what that costs is charged with it."""
    moved = Egress(
        job=event.job, provider=event.left.provider, region=event.left.region,
        size_bytes=event.size_bytes, cost=event.cost,
    )  # fmt: skip
    return rental.but(egress=(*rental.egress, moved))


def egress_of(rental: Rental) -> dict[str, MicroUsd]:
    """Return what each job has brought to a machine has cost."""
    found: dict[str, MicroUsd] = {}
    for one in rental.egress:
        found[one.job] = MicroUsd(found.get(one.job, NOTHING) + one.cost)
    return found
