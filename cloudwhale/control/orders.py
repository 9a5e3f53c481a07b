"""Writes the orders that a plan's steps ask for, from what is stored of the job."""

import zlib
from collections.abc import Mapping, Sequence

from cloudwhale.mailbox.documents import (
    GangSeat,
    IntroduceOrder,
    LeaseOrder,
    LeaveOrder,
    StartOrder,
    StopOrder,
)
from cloudwhale.model.job import CheckpointRule, Job, Resources
from cloudwhale.model.node import Device, Node
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import GiB, Instant
from cloudwhale.planning.ganging import restored
from cloudwhale.planning.inventory import device_memory_taken

DEFAULT_RULE = CheckpointRule()
FIRST_PORT, PORTS = 20_000, 10_000  # below what the kernel gives to outgoing connections


def start_order(
    job: Job, node: Node, sealed: Mapping[str, str], *, fence: int, at: Instant
) -> StartOrder:
    """Return the order that starts the job's newest attempt on its node.

    `sealed`: the job's secrets by name, sealed to the node's key.
    """
    spec, wants = job.spec, job.wants
    place = job.placement
    given = set((None if place is None else place.devices_on(node.id)) or ())
    devices = tuple(device for device in node.facts.devices if device.id in given)
    return StartOrder(
        at=at,
        fence=fence,
        request_id=f"start-{job.id}-{job.attempt}",
        job=job.id,
        attempt=job.attempt,
        project=spec.project,
        name=spec.name,
        command=spec.command,
        setup=spec.setup,
        image=spec.image,
        env={**spec.array, **spec.env},
        secrets={name: sealed[name] for name in spec.secrets},
        workdir=job.workdir_key,
        devices=devices,
        share=wants.gpu.share,
        gpu_memory_gib=_gpu_memory_gib(wants, devices),
        cpu=wants.cpu,
        memory_gib=wants.memory_gib,
        shm_gib=wants.shm_gib,
        mounts=spec.mounts,
        checkpoint=spec.checkpoint or DEFAULT_RULE,
        restore=job.checkpoint,
        inputs=spec.inputs,
        outputs=spec.outputs,
    )


def gang_seat(job: Job, rank: int, first: Node | None) -> GangSeat | None:
    """Return what a rank of a job is told of its gang; None for a job that is no gang.

    `first`: the node of rank 0. The port is another for each attempt: the last one may hold it yet.
    """
    if job.placement is None or not job.placement.others:
        return None
    port = FIRST_PORT + zlib.crc32(f"{job.id}/{job.attempt}".encode()) % PORTS
    address = "" if first is None else first.facts.address
    many = len(job.placement.members)
    return GangSeat(rank=rank, nodes=many, address=address or job.placement.node, port=port)


def of_rank(order: StartOrder, job: Job, seat: GangSeat) -> StartOrder:
    """Return the order of one rank: what it goes on from is its own part of the common checkpoint.

    What the job leaves is rank 0's.
    """
    return order.but(
        gang=seat,
        restore=restored(job, seat.rank),
        outputs=order.outputs if seat.rank == 0 else (),
        host_network=order.image is not None,
    )


def _gpu_memory_gib(wants: Resources, devices: Sequence[Device]) -> GiB | None:
    """Return what a job that shares its devices may use of each; None: all of it."""
    if not devices or wants.gpu.share >= 1.0:
        return None
    return min(device_memory_taken(wants, device) for device in devices)


def stop_order(job: Job, *, fence: int, at: Instant) -> StopOrder:
    """Return the order that stops the job's newest attempt, checkpoint first."""
    rule = job.spec.checkpoint or DEFAULT_RULE
    return StopOrder(
        at=at,
        fence=fence,
        request_id=f"stop-{job.id}-{job.attempt}",
        job=job.id,
        attempt=job.attempt,
        signal=rule.signal,
        grace_s=rule.grace_s,
    )


def stray_order(job: str, attempt: int, *, fence: int, at: Instant) -> StopOrder:
    """Return the order that ends an attempt nobody counts on; what it saves is not read."""
    return StopOrder(
        at=at,
        fence=fence,
        request_id=f"stray-{job}-{attempt}",
        job=job,
        attempt=attempt,
        grace_s=DEFAULT_RULE.grace_s,
    )


def introduce_order(*, fence: int, at: Instant) -> IntroduceOrder:
    """Return the order that makes an agent say again who it is."""
    return IntroduceOrder(at=at, fence=fence, request_id=f"introduce-{fence}-{at:.3f}")


def leave_order(*, fence: int, at: Instant, agent: str = "") -> LeaveOrder:
    """Return the order that lets an agent go once nothing runs there; `agent`: that one alone."""
    return LeaveOrder(at=at, fence=fence, request_id=f"leave-{fence}-{at:.3f}", agent=agent)


def lease_order(rental: Rental, *, fence: int, at: Instant) -> LeaseOrder:
    """Return the order that tells a machine how long it is paid for, in seconds from `at` on."""
    lease = rental.lease
    return LeaseOrder(
        at=at,
        fence=fence,
        request_id=f"lease-{rental.id}-{lease.number}-{lease.watched_until:.3f}",
        number=lease.number,
        watched_s=max(0.0, lease.watched_until - at),
        away_s=max(0.0, lease.away_until - at),
    )
