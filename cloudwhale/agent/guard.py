"""Which attempts must be stopped for what their GPUs say: pure, asked once a second."""

from collections.abc import Collection, Mapping

from cloudwhale.agent.seen import StopWish
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.model.units import GiB, Seconds

TOLERANCE_GIB: GiB = 0.1  # what a driver rounds, and what comes and goes while a kernel is loaded
TOLERANCE_SHARE = 0.02
GRACE_S: Seconds = 0.5  # stopped within a second of being seen; the rest is to kill
GONE_GRACE_S: Seconds = 1.0  # without its GPU a job has nothing left to save


def may_use_gib(declared: GiB) -> GiB:
    """Return the memory of a device up to which a job that declared so much is left alone."""
    return declared + max(TOLERANCE_GIB, TOLERANCE_SHARE * declared)


def outgrown(order: StartOrder, used: Mapping[str, GiB]) -> StopWish | None:
    """Return how to stop a job that uses more of a shared device than it declared; or None.

    `used`: memory by device. A job with its devices to itself may use all of them.
    """
    declared = order.gpu_memory_gib
    if declared is None:
        return None
    over = {device: gib for device, gib in used.items() if gib > may_use_gib(declared)}
    if not over:
        return None
    device = max(over, key=lambda one: (over[one], one))
    says = f"it used {over[device]:.2f} GiB of {device}, and {declared:.2f} GiB were declared"
    return StopWish(order.checkpoint.signal, GRACE_S, says, "gpu-outgrown")


def bereft(order: StartOrder, present: Collection[str]) -> StopWish | None:
    """Return how to stop a job that has lost a device; or None. Stand-ins are never lost."""
    gone = [one.id for one in order.devices if not one.declared and one.id not in present]
    if not gone:
        return None
    says = f"{', '.join(gone)} no longer answers: the GPU fell off the bus, or must be reset"
    return StopWish(order.checkpoint.signal, GONE_GRACE_S, says, "device-lost")


def shut_out(order: StartOrder, shut: Collection[str]) -> StopWish | None:
    """Return how to stop a job whose container may not open its GPUs any more; or None.

    What it has open still works, so it gets all its time to save.
    """
    if not shut:
        return None
    says = (
        f"its container can no longer open {', '.join(sorted(shut))}: systemd has read its units"
        " anew, and its GPUs came by a hook; `nvidia-ctk cdi generate` mends it for good"
    )
    return StopWish(order.checkpoint.signal, order.checkpoint.grace_s, says, "no-gpus")
