"""What no scheduler can beat: least mean completion and least makespan of some jobs."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from cloudwhale.model.job import JobSpec
from cloudwhale.model.node import Node
from cloudwhale.model.units import Seconds
from cloudwhale.planning.fit import suits
from cloudwhale.simulation.executing import true_speed
from cloudwhale.simulation.playing import Arrival


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds of what the nodes can do with the jobs, alone, whoever plans."""

    mean_completion_s: Seconds
    makespan_s: Seconds


def bounds(arrivals: Sequence[Arrival], nodes: Sequence[Node]) -> Bounds | None:
    """Return both, or None of no jobs.

    Jobs are let run on all devices as if these were one machine, shortest remaining area first
    ("squashed area", in Schwiegelshohn, Approximation Algorithms for Scheduling Malleable Tasks,
    and before): nothing that keeps jobs whole is faster. No job ends sooner than on the fastest
    device that suits it, either.
    """
    if not arrivals:
        return None
    order = sorted(arrivals, key=lambda one: one.at)
    shortest = [shortest_s(one, nodes) for one in order]
    areas = [area_s(one) for one in order]
    speed = machine_speed(arrivals, nodes)
    squashed = _shortest_first([one.at for one in order], areas, speed)
    mean_s = max(squashed, sum(shortest)) / len(order)
    return Bounds(mean_s, _makespan_s([one.at for one in order], areas, shortest, speed))


def shortest_s(one: Arrival, nodes: Sequence[Node]) -> Seconds:
    """Return how long a job runs alone on the fastest device that suits it."""
    return one.work_s / fastest(one.spec, nodes)


def fastest(spec: JobSpec, nodes: Sequence[Node]) -> float:
    """Return the speed of the fastest device that suits a job; 1 where it needs none."""
    if not spec.resources.gpu.count:
        return 1.0
    models = {device.model: device for node in nodes for device in node.facts.devices}
    speeds = [true_speed(spec, name) for name, one in models.items() if suits(spec, one)]
    return max(speeds, default=1.0)


def area_s(one: Arrival) -> Seconds:
    """Return the device-seconds that a job asks for, on its reference."""
    gpu = one.spec.resources.gpu
    return one.work_s * gpu.count * gpu.share


def machine_speed(arrivals: Sequence[Arrival], nodes: Sequence[Node]) -> float:
    """Return the work that all devices together do in a second, each at most at its best."""
    kinds = {
        (one.spec.reference, tuple(sorted(one.spec.speeds.items()))): one.spec for one in arrivals
    }
    counts: dict[str, int] = {}
    for node in nodes:
        for device in node.facts.devices:
            counts[device.model] = counts.get(device.model, 0) + 1
    return sum(
        count * max(true_speed(spec, model) for spec in kinds.values())
        for model, count in counts.items()
    )


def _shortest_first(times: Sequence[float], areas: Sequence[float], speed: float) -> Seconds:
    """Return the sum of completions when the least remaining area goes first, at any moment."""
    waiting: list[tuple[float, float]] = []
    total_s, now, coming = 0.0, times[0], 0
    while waiting or coming < len(times):
        if not waiting:
            now = max(now, times[coming])
        while coming < len(times) and times[coming] <= now:
            heapq.heappush(waiting, (areas[coming], times[coming]))
            coming += 1
        area, came_at = heapq.heappop(waiting)
        ends_at = now + (area / speed if speed else 0.0)
        if coming < len(times) and times[coming] < ends_at:
            heapq.heappush(waiting, (area - (times[coming] - now) * speed, came_at))
            now = times[coming]
        else:
            total_s += ends_at - came_at
            now = ends_at
    return total_s


def _makespan_s(
    times: Sequence[float], areas: Sequence[float], shortest: Sequence[Seconds], speed: float
) -> Seconds:
    """Return the least time from the first arrival to the last end."""
    last = max(at + runs_s for at, runs_s in zip(times, shortest, strict=True))
    left = 0.0
    for at, area in zip(reversed(times), reversed(areas), strict=True):
        left += area
        last = max(last, at + (left / speed if speed else 0.0))
    return last - times[0]
