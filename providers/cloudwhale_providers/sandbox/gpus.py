"""Stand-ins for GPUs inside a machine of the box: what tells of them, and gives them to containers.

Nothing computes on them. Their ids are drawn from the machine's, as the driver's are from a chip.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from cloudwhale.model.gpus import MODELS
from cloudwhale.spi.prices import Shape

FIRST_MINOR = 128
"""Of the device files: no driver gives such numbers, so a GPU of this host is never meant."""
MIB_PER_GIB = 1024


@dataclass(frozen=True, slots=True)
class Gpu:
    """A stand-in, as the driver would tell of it."""

    uuid: str
    name: str
    memory_mib: int


def stand_ins(machine: str, shape: Shape) -> Sequence[Gpu]:
    """Return the GPUs of a machine by its id and type; none where its type has none."""
    found: list[Gpu] = []
    for number in range(shape.gpus):
        digest = hashlib.sha256(f"{machine} {number}".encode()).digest()
        memory_mib = int(MODELS[shape.gpu].memory_gib * MIB_PER_GIB)
        found.append(Gpu(f"GPU-{UUID(bytes=digest[:16])}", f"NVIDIA {shape.gpu}", memory_mib))
    return found


def files(gpus: Sequence[Gpu]) -> Mapping[str, str]:
    """Return the files that say what there is, by path in the machine; none without GPUs."""
    if not gpus:
        return {}
    lines = [f"{one.uuid}\t{one.memory_mib}\t{one.name}" for one in gpus]
    return {"etc/cloudwhale-machine/gpus": "\n".join(lines) + "\n"}


def words(gpus: Sequence[Gpu]) -> list[str]:
    """Return what the machine's agent is told, beside what its type has: ids for containers."""
    return [f"--device-id={one.uuid}" for one in gpus]
