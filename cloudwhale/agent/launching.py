"""Starts shims: the only door through which a job's process can come into being."""

import json
import os
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.agent import shim
from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.cgroups import Groups
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.model.units import GiB

PASSED_ON = ("PATH", "HOME", "LANG", "USER")  # of our environment; nothing else reaches a job
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


def environment(
    order: StartOrder, checkpoints: Path, secrets: Mapping[str, str], ours: Mapping[str, str]
) -> dict[str, str]:
    """Return the job's environment."""
    mixed = zlib.crc32(f"{order.job}/{order.attempt}".encode())
    return {
        **{name: ours[name] for name in PASSED_ON if name in ours},
        **order.env,
        **secrets,
        "CUDA_VISIBLE_DEVICES": ",".join(device.id for device in order.devices),
        "CLOUDWHALE_JOB_ID": order.job,
        "CLOUDWHALE_ATTEMPT": str(order.attempt),
        "CLOUDWHALE_CHECKPOINT_DIR": str(checkpoints),
        "CLOUDWHALE_RESUME": "0" if order.restore is None else "1",
        "CLOUDWHALE_NODE_RANK": "0",
        "CLOUDWHALE_NUM_NODES": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(FIRST_PORT + mixed % PORTS),
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
    told = {
        "job": order.job,
        "attempt": order.attempt,
        "setup": order.setup,
        "command": order.command,
        "cwd": str(folder.work),
        "env": environment(order, checkpoints, secrets, os.environ),
        "secrets": list(secrets.values()),
        "limits": {
            "cpu": order.cpu,
            "memory_bytes": _bytes(order.memory_gib),
            "groups": None if groups is None else groups.told(),
        },
        "log": {
            "segment": sizes.log_segment,
            "head": sizes.log_head,
            "tail": sizes.log_tail,
        },
        "full_below": sizes.full_below,
        "full_paths": [str(folder.path), str(checkpoints)],
    }
    return json.dumps(told, separators=(",", ":")).encode()


def launch(folder: AttemptFolder, told: bytes) -> int:
    """Start a shim in its own session and return its process id; raise OSError."""
    stdin = _memory_file(told)
    errors = os.open(
        folder.path / "shim.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
    )
    try:
        # -I -S: no site-packages, no environment: it starts in a third of the time.
        words = [sys.executable, "-I", "-S", str(shim.__file__), str(folder.path)]
        return os.posix_spawn(
            sys.executable,
            words,
            os.environ,
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


def _memory_file(body: bytes) -> int:
    """Return a file that is on no disk, at its beginning; a pipe would hold 64 KiB only."""
    file = os.memfd_create("job")
    with open(file, "wb", closefd=False) as writer:
        writer.write(body)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _bytes(size: GiB | None) -> int | None:
    return None if size is None else round(size * BYTES_PER_GIB)
