"""Stand-ins for GPUs inside a machine of the box: what tells of them, and gives them to containers.

Nothing computes on them. Their ids are drawn from the machine's, as the driver's are from a chip.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cloudwhale.model.gpus import MODELS
from cloudwhale.spi.prices import Shape
from cloudwhale_providers.sandbox.layer import text

HOOK = "#!/bin/sh\n# Docker takes GPUs where there is such a program.\nexec cat >/dev/null\n"
MIB_PER_GIB = 1024
DAEMON: Mapping[str, Any] = {
    "exec-opts": ["native.cgroupdriver=cgroupfs"],
    "runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime", "args": []}},
    "default-runtime": "nvidia",
}
"""As an image with Docker and the toolkit has it: no first boot need change it, and restart Docker.
"""


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
    """Return what a machine has beside others for them, text by path; nothing without GPUs."""
    if not gpus:
        return {}
    lines = [f"{one.uuid}\t{one.memory_mib}\t{one.name}" for one in gpus]
    return {
        "etc/cloudwhale-machine/gpus": "\n".join(lines) + "\n",
        "etc/docker/daemon.json": json.dumps(DAEMON, indent=4),
        "usr/bin/nvidia-smi": text("nvidia_smi.sh"),
        "usr/bin/nvidia-ctk": text("nvidia_ctk.py"),
        "usr/bin/nvidia-container-runtime": text("nvidia_runtime.py"),
        "usr/bin/nvidia-container-runtime-hook": HOOK,
    }


def words(gpus: Sequence[Gpu], shape: Shape) -> list[str]:
    """Return what the machine's agent is told: each device by the id that containers ask for."""
    gib = MODELS[shape.gpu].memory_gib if gpus else 0.0
    return [f"--device={one.uuid}: {shape.gpu} {gib:g}GB" for one in gpus]
