"""Writes the orders that a plan's steps ask for, from what is stored of the job."""

from collections.abc import Mapping

from cloudwhale.mailbox.documents import LeaveOrder, StartOrder, StopOrder
from cloudwhale.model.job import CheckpointRule, Job
from cloudwhale.model.node import Node
from cloudwhale.model.units import Instant

DEFAULT_RULE = CheckpointRule()


def start_order(
    job: Job, node: Node, sealed: Mapping[str, str], *, fence: int, at: Instant
) -> StartOrder:
    """Return the order that starts the job's newest attempt on its node.

    `sealed`: the job's secrets by name, sealed to the node's key.
    """
    spec, wanted = job.spec, set(job.placement.devices if job.placement is not None else ())
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
        devices=tuple(device for device in node.facts.devices if device.id in wanted),
        cpu=spec.resources.cpu,
        memory_gib=spec.resources.memory_gib,
        shm_gib=spec.resources.shm_gib,
        mounts=spec.mounts,
        checkpoint=spec.checkpoint or DEFAULT_RULE,
        restore=job.checkpoint,
    )


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


def leave_order(*, fence: int, at: Instant) -> LeaveOrder:
    """Return the order that lets an agent go once nothing runs there."""
    return LeaveOrder(at=at, fence=fence, request_id=f"leave-{fence}-{at:.3f}")
