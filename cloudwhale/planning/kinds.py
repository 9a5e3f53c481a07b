"""Offers as rent policies see them: what can be counted on of a machine.

Of several models of GPU on one, those of the model of which it has most are counted on: nobody is
rented a machine to run on a mixture of them.
"""

from collections.abc import Iterable, Iterator

from cloudwhale.model.node import Device, Node, NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MICRO_PER_USD, NOTHING
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.shortlist import hazard_of
from cloudwhale.spi.renting import Kind


def priced(offers: Iterable[Offer]) -> Iterator[Offer]:
    """Yield the offers whose price is known and bounded."""
    for offer in offers:
        price, cap = offer.price_usd_h, offer.cap_usd_h
        if price is not None and cap is not None and price <= cap:
            yield offer


def main(offer: Offer) -> Device | None:
    """Return one of the devices that an offer has most of; None without any."""
    devices = offer.facts.devices
    if not devices:
        return None
    names = [(device.model, device.memory_gib) for device in devices]
    return max(devices, key=lambda d: (names.count((d.model, d.memory_gib)), d.memory_gib))


def named(device: Device | None) -> tuple[str, float]:
    """Return the model of a device and its memory."""
    return ("", 0.0) if device is None else (device.model, device.memory_gib)


def each_once(offer: Offer) -> tuple[Device, ...]:
    """Return one device of each model that an offer has, first of which it has most."""
    most = main(offer)
    if most is None:
        return ()
    found = {named(device): device for device in (*reversed(offer.facts.devices), most)}
    return tuple(sorted(found.values(), key=lambda one: named(one) != named(most)))


def models_of(offer: Offer) -> tuple[tuple[str, float], ...]:
    """Return the models of an offer's devices and their memory; see `each_once`."""
    return tuple(map(named, each_once(offer)))


def as_kind(offer: Offer) -> Kind:
    """Return an offer as a kind of machine."""
    facts, most = offer.facts, main(offer)
    price, cap = offer.usd_h or NOTHING, offer.most_usd_h or NOTHING
    return Kind(
        offer=offer.id,
        zone=offer.zone,
        model="" if most is None else most.model,
        devices=sum(named(device) == named(most) for device in facts.devices),
        device_gib=0.0 if most is None else most.packs_gib,
        cpu=facts.cpu,
        memory_gib=facts.memory_gib,
        disk_gib=facts.disk_gib,
        usd_h=price / MICRO_PER_USD,
        cap_usd_h=cap / MICRO_PER_USD,
        boot_s=offer.boot_s,
        market=offer.market,
        hazard_per_h=hazard_of(offer),
        billing_step_s=offer.billing_step_s,
        billing_least_s=offer.billing_least_s,
        at_most=offer.capacity,
        quota=offer.quota,
        quota_units=offer.quota_units,
    )


def empty(offer: Offer) -> Free:
    """Return what would be free on a machine of an offer that nobody uses."""
    node = Node(
        id=offer.id, facts=offer.facts, state=NodeState.READY, owned=False, provider=offer.provider
    )
    return free_capacity([node], ())[node.id]
