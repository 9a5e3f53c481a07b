"""Starts shims: the only door through which a job can come into being."""

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloudwhale.agent import inputs
from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.cgroups import Groups
from cloudwhale.agent.containers.runtime import Containers
from cloudwhale.agent.leases import told_of_lease
from cloudwhale.agent.plain_processes import PlainProcesses
from cloudwhale.agent.users import home_of, user_of
from cloudwhale.clock import SPEED
from cloudwhale.mailbox.documents import GangSeat, StartOrder
from cloudwhale.model.node import Device
from cloudwhale.model.units import GiB
from cloudwhale.spi.runtime import Runtime

PROCESSES: Runtime = PlainProcesses()
CONTAINERS: Runtime = Containers()
FIRST_PORT, PORTS = 20_000, 10_000  # below what the kernel gives to outgoing connections
BYTES_PER_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Sizes:
    """Where a log's middle is dropped, and what counts as a full disk, in bytes."""

    log_segment: int = 5 << 20
    log_head: int = 50 << 20
    log_tail: int = 50 << 20
    full_below: int = 1 << 20


NORMAL = Sizes()


def runtime_of(order: StartOrder) -> Runtime:
    """Return how a job is run: one with an image in a container of it, others as processes."""
    return PROCESSES if order.image is None else CONTAINERS


def environment(
    order: StartOrder, checkpoints: Path, secrets: Mapping[str, str], ours: Mapping[str, str]
) -> dict[str, str]:
    """Return the job's environment."""
    mixed = zlib.crc32(f"{order.job}/{order.attempt}".encode())
    alone = GangSeat(rank=0, nodes=1, address="127.0.0.1", port=FIRST_PORT + mixed % PORTS)
    seat = order.gang or alone
    return {
        **runtime_of(order).passed_on(ours),
        **order.env,
        **secrets,
        "CUDA_VISIBLE_DEVICES": ",".join(device.id for device in order.devices),
        "CLOUDWHALE_JOB_ID": order.job,
        "CLOUDWHALE_ATTEMPT": str(order.attempt),
        "CLOUDWHALE_CHECKPOINT_DIR": str(checkpoints),
        "CLOUDWHALE_RESUME": "0" if order.restore is None else "1",
        "CLOUDWHALE_RESTART_COUNT": str(order.attempt - 1),
        "CLOUDWHALE_GRACE_SECONDS": f"{order.checkpoint.grace_s:g}",
        "CLOUDWHALE_NODE_RANK": str(seat.rank),
        "CLOUDWHALE_NUM_NODES": str(seat.nodes),
        "MASTER_ADDR": seat.address,
        "MASTER_PORT": str(seat.port),
    }


def description(
    order: StartOrder,
    folder: AttemptFolder,
    secrets: Mapping[str, str],
    groups: Groups | None,
    sizes: Sizes,
) -> bytes:
    """Return what the shim is told of the job: JSON, secrets in the clear, never to be written."""
    checkpoints = folder.checkpoints(order)
    env = environment(order, checkpoints, secrets, os.environ)
    told: dict[str, Any] = {
        "job": order.job,
        "attempt": order.attempt,
        "setup": order.setup,
        "command": order.command,
        "cwd": str(folder.work),
        "log": {
            "segment": sizes.log_segment,
            "head": sizes.log_head,
            "tail": sizes.log_tail,
        },
        "lease": told_of_lease(folder, order),
        "full_below": sizes.full_below,
        "full_paths": [str(folder.path), str(checkpoints)],
    }
    if order.inputs:
        env["CLOUDWHALE_INPUT_DIR"] = str(folder.path / inputs.FOLDER)
    user = user_of(folder)
    if user is not None:
        told["user"] = user
        env |= {"HOME": str(home_of(folder)), "USER": f"cloudwhale-{user}"}
    if order.image is None:
        told |= {"env": env, "secrets": list(secrets.values()), **_for_a_process(order, groups)}
    else:
        # Apart: Docker writes a container's environment to its disk.
        told |= {
            "env": {name: value for name, value in env.items() if name not in secrets},
            "secrets": {name: env[name] for name in secrets},
            **_for_a_container(order, folder, checkpoints),
        }
        if user is not None:
            told["saves"] = [*told["saves"], str(home_of(folder))]
    return json.dumps(told, separators=(",", ":")).encode()


def _for_a_process(order: StartOrder, groups: Groups | None) -> dict[str, Any]:
    return {
        "limits": {
            "cpu": order.cpu,
            "memory_bytes": _bytes(order.memory_gib),
            "groups": None if groups is None else groups.told(),
        },
    }


def _for_a_container(order: StartOrder, folder: AttemptFolder, checkpoints: Path) -> dict[str, Any]:
    inside = checkpoints.is_relative_to(folder.work)
    memory = _bytes(order.memory_gib)
    return {
        "image": order.image,
        "node": folder.path.parents[2].name,
        "box": str(folder.path / "box"),
        "saves": [] if inside else [str(checkpoints)],
        "host_network": order.host_network,
        "gpus": [one.id for one in order.devices if _is_given(one)],
        "cpu": order.cpu,
        "memory_bytes": memory,
        # As Linux itself has it; Docker's 64 MiB are too little for any data loader.
        "shm_bytes": _bytes(order.shm_gib) or (memory or _host_memory()) // 2,
        "mounts": {
            **order.mounts,
            **{path: f"{path}:ro" for path in inputs.folders_of(folder)},
        },
    }


def _is_given(device: Device) -> bool:
    """Say whether containers get it: a driver gives it, or a stand-in for one, by such an id."""
    return not device.declared or device.id.startswith("GPU-")


def _host_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def launch(runtime: Runtime, folder: AttemptFolder, told: bytes) -> int:
    """Start a shim in its own session and return its process id; raise OSError."""
    stdin = _memory_file(told)
    errors = os.open(
        folder.path / "shim.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
    )
    try:
        words = runtime.shim(str(folder.path))
        return os.posix_spawn(
            words[0],
            words,
            _by_the_real_clock(),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, stdin, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, errors, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(stdin)
        os.close(errors)


def _by_the_real_clock() -> dict[str, str]:
    """Return the environment of shims: those of processes have no other clock either."""
    return {name: value for name, value in os.environ.items() if name != SPEED}


def _memory_file(body: bytes) -> int:
    """Return a file that is on no disk, at its beginning; a pipe would hold 64 KiB only."""
    file = os.memfd_create("job")
    with open(file, "wb", closefd=False) as writer:
        writer.write(body)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _bytes(size: GiB | None) -> int | None:
    return None if size is None else round(size * BYTES_PER_GIB)
