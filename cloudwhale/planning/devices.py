"""Which of a node's open devices a job gets: few models, whole pairs, full devices first."""

from collections.abc import Sequence

from cloudwhale.model.job import GpuRequest
from cloudwhale.planning.inventory import DeviceFree

Links = tuple[tuple[str, str], ...]


def in_order(devices: Sequence[DeviceFree], links: Links) -> list[DeviceFree]:
    """Return the devices in the order in which a job for one of them would try them.

    Small models first, so that the large ones stay free; in a model the fullest first, so that
    whole devices stay whole; of those that are equally full the one whose NVLink partner is
    taken, so that pairs stay whole.
    """
    partner_is_whole = _whole_partners(devices, links)

    def key(d: DeviceFree) -> tuple[float, str, float, bool, float, str]:
        breaks_pair = d.device.id in partner_is_whole
        model = d.device.model
        return (d.device.memory_gib, model, d.share, breaks_pair, d.memory_gib, d.device.id)

    return sorted(devices, key=key)


def chosen_devices(gpu: GpuRequest, opened: Sequence[DeviceFree], links: Links) -> tuple[str, ...]:
    """Return the devices that a job gets of those with room for it, at least as many as it wants.

    One model where one has enough: ranks of unequal speed wait for the slowest.
    """
    ordered = in_order(opened, links)
    by_model: dict[tuple[float, str], list[DeviceFree]] = {}
    for device in ordered:
        model = (device.device.memory_gib, device.device.model)
        by_model.setdefault(model, []).append(device)
    enough = (found for found in by_model.values() if len(found) >= gpu.count)
    found = next(enough, ordered)
    most = min(len(found), gpu.count_most or gpu.count)
    if most > 1 and links:
        found = _pairs_first(found, links, most)
    return tuple(d.device.id for d in found[:most])


def is_plain(devices: Sequence[DeviceFree], links: Links) -> bool:
    """Say whether any count of devices is simply the first open ones in order."""
    return not links and len({(d.device.memory_gib, d.device.model) for d in devices}) < 2


def _whole_partners(devices: Sequence[DeviceFree], links: Links) -> set[str]:
    if not links:
        return set()
    whole = {d.device.id for d in devices if d.share >= 1.0}
    return {a for pair in links for a, b in (pair, pair[::-1]) if b in whole}


def _pairs_first(found: list[DeviceFree], links: Links, most: int) -> list[DeviceFree]:
    """Return the devices with joined ones beside each other; one alone comes from no pair."""
    by_id = {d.device.id: d for d in found}
    joined = {(a, b) for pair in links for a, b in (pair, pair[::-1])}
    pairs: list[DeviceFree] = []
    paired: set[str] = set()
    for one in by_id:
        for other in by_id:
            if one != other and (one, other) in joined and paired.isdisjoint((one, other)):
                pairs += [by_id[one], by_id[other]]
                paired |= {one, other}
    alone = [d for d in found if d.device.id not in paired]
    whole = most - most % 2 if len(pairs) >= most - most % 2 else len(pairs)
    return [*pairs[:whole], *alone, *pairs[whole:]]
