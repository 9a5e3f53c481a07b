"""Weighs the named scores of every feasible place of a job."""

from collections.abc import Sequence

from cloudwhale.model.job import Placement, Resources
from cloudwhale.model.plan import Scored
from cloudwhale.planning.inventory import Free
from cloudwhale.spi.policy import DeviceRoom, Room, Score

RIVALS_KEPT = 3  # product.md 8: the chosen place and the best three others


def ranked(
    wants: Resources, places: Sequence[tuple[Free, Placement]], score: Score
) -> list[Scored]:
    """Return every feasible place with its scores, best first; ties end at the node's id."""
    rooms = [_room(free, placement) for free, placement in places]
    rows = score.score(wants, rooms)
    scored = [
        Scored.model_construct(
            placement=placement,
            scores=dict(zip(score.names, row, strict=True)),
            total=sum(row) / len(row),
        )
        for (_, placement), row in zip(places, rows, strict=True)
    ]
    return sorted(scored, key=lambda place: (-place.total, place.placement.node))


def _room(free: Free, placement: Placement) -> Room:
    facts = free.node.facts
    return Room(
        node=free.node.id,
        cpu=facts.cpu,
        memory_gib=facts.memory_gib,
        disk_gib=facts.disk_gib,
        free_cpu=free.cpu,
        free_memory_gib=free.memory_gib,
        free_disk_gib=free.disk_gib,
        devices=tuple(
            DeviceRoom(d.device.id, d.device.model, d.device.memory_gib, d.memory_gib, d.share)
            for d in free.devices
        ),
        chosen=placement.devices,
    )
