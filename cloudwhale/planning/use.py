"""What projects have used: how fast a job uses devices, and how it is added up as it fades."""

from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import Use


def rate(job: Job, node: Node | None) -> float:
    """Return how many devices' worth of its node a placed job uses: devices times share.

    A job without devices uses the part of its node that its CPUs are, at most 1, so that projects
    are weighed on hosts without GPUs too. 0 when it has no place, or nobody knows the node.
    """
    if job.placement is None:
        return 0.0
    many = len(job.placement.members)  # the machines of a gang are alike
    if job.placement.devices:
        return many * len(job.placement.devices) * job.wants.gpu.share
    if node is None or node.facts.cpu <= 0:
        return 0.0
    return many * min(1.0, job.wants.cpu / node.facts.cpu)


def after(before: Use | None, device_s: Seconds, at: Instant) -> Use:
    """Return what a project has used when `device_s` more were told at a time.

    What is told late has faded as long as what was told in time.
    """
    more = Use(device_s=device_s, at=at)
    if before is None:
        return more
    newest = max(before.at, at)
    return Use(device_s=before.now(newest) + more.now(newest), at=newest)
