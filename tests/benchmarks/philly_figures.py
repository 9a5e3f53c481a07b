"""What a schedule of the pool comes to, and what no schedule can be below."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from philly_pool import Job, Task


@dataclass(frozen=True, slots=True)
class Figures:
    """What a schedule comes to, in seconds."""

    completion_s: float
    """From arrival to end, mean over the jobs."""
    wait_p99_s: float
    """Of a job's time without GPUs, stops included: its completion less its length."""
    wait_max_s: float
    makespan_s: float
    stops: int


def figures(tasks: Sequence[Task]) -> Figures:
    """Return the figures of a schedule in which all have ended."""
    ends = [task.ended for task in tasks if task.ended is not None]
    assert ends and len(ends) == len(tasks)
    done = [end - task.at for task, end in zip(tasks, ends, strict=True)]
    waits = sorted(s - task.length_s for task, s in zip(tasks, done, strict=True))
    return Figures(
        completion_s=sum(done) / len(done),
        wait_p99_s=waits[min(len(waits) - 1, int(0.99 * len(waits)))],
        wait_max_s=waits[-1],
        makespan_s=max(ends) - min(task.at for task in tasks),
        stops=sum(task.stops for task in tasks),
    )


def bound_s(jobs: Sequence[Job], gpus: int) -> float:
    """Return what no schedule's mean completion can be below.

    The larger of the mean length and of the squashed area: one machine as fast as all GPUs that
    always works on the job with the least left, which may be cut as fine as one likes.
    """
    mean_s = sum(length_s for _, length_s, _ in jobs) / len(jobs)
    return max(mean_s, _squashed_s(sorted(jobs), gpus))


def _squashed_s(jobs: Sequence[Job], gpus: int) -> float:
    left: list[tuple[float, float]] = []
    total, now = 0.0, 0.0
    for position, (at, length_s, wide) in enumerate(jobs):
        now = max(now, at)
        heapq.heappush(left, (length_s * wide / gpus, at))
        until = jobs[position + 1][0] if position + 1 < len(jobs) else math.inf
        while left and now < until:
            work_s, came = heapq.heappop(left)
            if now + work_s > until:
                heapq.heappush(left, (work_s - (until - now), came))
                break
            now += work_s
            total += now - came
    return total / len(jobs)
