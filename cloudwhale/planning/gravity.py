"""What it costs to bring a job's data to where a machine stands."""

from collections.abc import Iterable, Sequence

from cloudwhale.model.job import Job, JobSpec
from cloudwhale.model.offer import Offer
from cloudwhale.planning.shortlist import Moves

GB = 1e9


def regions_of(specs: Iterable[JobSpec]) -> tuple[str, ...]:
    """Return where the data of some jobs lie, each once, sorted."""
    return tuple(sorted({data.region for spec in specs for data in spec.data if data.region}))


def regions_of_jobs(jobs: Iterable[Job]) -> tuple[str, ...]:
    """Return the same for jobs."""
    return regions_of(job.spec for job in jobs)


def moves(offers: Sequence[Offer], sources: Sequence[str]) -> Moves:
    """Return what a GB costs from where data lie to where machines can be had.

    By what is said of machines of the region that it leaves: to another region of the same
    provider, else to the internet. Where nothing is offered, `Moves` has a price of its own.
    """
    first = {offer.region: offer for offer in reversed(offers)} if sources else {}
    prices: dict[tuple[str, str], float] = {}
    for left in (first[source] for source in sources if source in first):
        for target, offer in first.items():
            is_near = left.provider == offer.provider
            price = left.egress_near_usd_gb if is_near else None
            price = left.egress_usd_gb if price is None else price
            if price is not None:
                prices[left.region, target] = price
    return Moves(usd_gb=prices, regions=tuple(sources))


def moved_usd(spec: JobSpec, region: str, prices: Moves) -> float:
    """Return what bringing a job's data to a region costs, in dollars."""
    return sum(
        data.size_bytes / GB * prices.price(data.region, region)
        for data in spec.data
        if data.region
    )
