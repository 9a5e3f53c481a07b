"""Why nothing that could be rented fits a job: what is lacking, by how much, the nearest offer."""

from collections.abc import Iterator, Mapping

from cloudwhale.control.preview_bindings import with_spec
from cloudwhale.control.preview_machines import called
from cloudwhale.control.preview_places import Places
from cloudwhale.model.job import Job, JobSpec
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Reason
from cloudwhale.planning.fit import could_ever_fit, model_suits
from cloudwhale.planning.inventory import DUST
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.stock import Option, Stock
from cloudwhale.reporting.figures import cents

Lack = tuple[float, str]
"""How far off, as a part of what is asked, and that in words."""


WIDER = {
    "regions": "a wider `regions`",
    "never": "a narrower `never`",
    "max_price_usd_h": "a higher `max_price_usd_h`",
}
"""What lets a setting's machines in again."""


def missing(places: Places, job: Job, reason: Reason) -> Reason:
    """Return a reason why a job fits nowhere that also says why nothing rented would do.

    Names the setting or the market that keeps out what would do, else what is lacking, by how
    much, and where. The same reason when something would do.
    """
    if next(places.options(job), None) is not None:
        return reason
    option = None if places.barred is None else next(places.barred.options(job), None)
    if option is not None:
        return _kept_out(reason, places.bars(option), option, WIDER)
    if places.stock is None:
        return reason
    option = next(places.stock.options(with_spec(job, market="auto")), None)
    if option is not None:
        return _kept_out(reason, f"market: {job.spec.market}", option, {})
    return reason.but(says=f"{reason.says}; {nearest_miss(spec_of(job), places.stock)}")


def _kept_out(reason: Reason, what: str, option: Option, wider: Mapping[str, str]) -> Reason:
    says = (
        f"{reason.says}; `{what}` keeps out {called(option.offer)}, which would do for "
        f"{cents(option.price_usd_h)} USD an hour"
    )
    return reason.but(says=says, change=wider.get(what, "`market: auto` instead"))


def nearest_miss(spec: JobSpec, stock: Stock) -> str:
    """Return what the nearest offer lacks, and its name."""
    found = [(_lacks(spec, offer, stock), offer) for offer in stock.offers]
    if not found:
        return "nothing can be rented"
    lacks, offer = min(found, key=_far)
    said = "; ".join(says for _, says in lacks)
    return f"the nearest that could be rented, {called(offer)}, does not do: {said}"


def _far(found: tuple[tuple[Lack, ...], Offer]) -> tuple[float, float, str]:
    """Return how far an offer is from what is asked; of those as near, the cheapest comes first."""
    lacks, offer = found
    return sum(far for far, _ in lacks), float(offer.usd_h or 0), offer.id


def _lacks(spec: JobSpec, offer: Offer, stock: Stock) -> tuple[Lack, ...]:
    found = (*_gpu_lacks(spec, offer), *_amount_lacks(spec, offer))
    if spec.market not in ("auto", offer.market):
        found = (*found, (1.0, f"asks for {spec.market} machines only, it is {offer.market}"))
    if found:
        return found
    no = could_ever_fit(spec, stock.empty(offer.id))
    return ((1.0, no.says),) if no is not None else ((1.0, "nobody knows what it can cost"),)


def _gpu_lacks(spec: JobSpec, offer: Offer) -> Iterator[Lack]:
    gpu, devices = spec.resources.gpu, offer.facts.devices
    if not gpu.count:
        return
    if not devices:
        yield 2.0, f"needs {gpu.count} GPUs, it has none"
        return
    named = [device for device in devices if model_suits(spec, device)]
    if not named:
        yield 1.0, f"needs {' or '.join(gpu.models)}, it has {devices[0].model}"
    least, most = gpu.memory_gib.least, gpu.memory_gib.most
    has_gib = max(device.memory_gib for device in named or devices)
    if has_gib < least:
        far = 1 - has_gib / least
        yield far, f"needs {least:g} GiB on each GPU, it has {has_gib:g}: {least - has_gib:g} short"
    elif most is not None and has_gib > most:
        yield 1 - most / has_gib, f"wants at most {most:g} GiB on each GPU, it has {has_gib:g}"
    if len(devices) < gpu.count:
        lacks = gpu.count - len(devices)
        yield (
            lacks / gpu.count,
            f"needs {gpu.count} GPUs on one machine, it has {len(devices)}: {lacks} short",
        )


def _amount_lacks(spec: JobSpec, offer: Offer) -> Iterator[Lack]:
    wants, facts = spec.resources, offer.facts
    for unit, wanted, has in (
        ("CPUs", wants.cpu, facts.cpu),
        ("GiB of memory", wants.memory_gib or 0.0, facts.memory_gib),
        ("GiB of disk", wants.disk_gib or 0.0, facts.disk_gib),
    ):
        if wanted > has + DUST:
            says = f"needs {wanted:g} {unit}, it has {has:g}: {wanted - has:g} short"
            yield 1 - has / wanted, says
