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
from cloudwhale.planning.gravity import GB, moves

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


class Bringing:
    """What it takes to bring checkpoints to where some offers stand; asked for many jobs."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._offers = offers
        self._providers = {offer.provider for offer in offers}

    def is_asked(self, job: Job) -> bool:
        """Say whether a job has saved something in a cloud, and others are offered."""
        left = job.saved_from
        return left is not None and any(name != left.provider for name in self._providers)

    def usd_gb(self, job: Job, offer: Offer) -> float | None:
        """Return what a GB costs that a job brings to a machine, in dollars; None: it brings none.

        By what is said of the region that it leaves, see `gravity.moves`.
        """
        left = job.saved_from
        if left is None or left.provider == offer.provider:
            return None
        return moves(self._offers, [left.region]).price(left.region, offer.region)

    def costs_usd(self, job: Job) -> Row:
        """Return what a job's checkpoint costs that is brought to each of the offers."""
        left, saved = job.saved_from, job.checkpoint
        size = 0.0 if saved is None else saved.size_bytes / GB
        prices = moves(self._offers, [] if left is None else [left.region])
        return _row(
            size * prices.price(left.region, offer.region) if _leaves(job, offer) and left else 0.0
            for offer in self._offers
        )

    def takes_s(self, job: Job) -> Row:
        """Return how long that takes, about."""
        size = 0 if job.checkpoint is None else job.checkpoint.size_bytes
        return _row(size / BRINGS_BYTES_S * _leaves(job, offer) for offer in self._offers)

    def most(self, job: Job) -> MicroUsd:
        """Return the most that is paid for bringing a job's checkpoint to any of the offers."""
        if not self.is_asked(job) or job.checkpoint is None:
            return NOTHING
        first = {(offer.provider, offer.region): offer for offer in self._offers}
        return max(self.worst(job, offer) for offer in first.values())

    def worst(self, job: Job, offer: Offer) -> MicroUsd:
        """Return the most that is paid for bringing a job's checkpoint to a machine."""
        price, saved = self.usd_gb(job, offer), job.checkpoint
        if price is None or saved is None:
            return NOTHING
        return cost_of(math.ceil(SPARE * saved.size_bytes), price)


def _row(amounts: Iterable[float]) -> Row:
    import numpy as np

    return np.array(list(amounts), dtype=np.float64)


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
    return None if taken is None else Where(provider=taken.provider, region=taken.region)


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
