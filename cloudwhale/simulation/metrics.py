"""What a play comes to, in the words of the field: completion, wait, slowdown, use, fairness."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from cloudwhale.model.job import JobState
from cloudwhale.model.node import Node
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.simulation.bounds import area_s, machine_speed, shortest_s
from cloudwhale.simulation.playing import Arrival, Played, PlayedJob

SHORT_S = 10.0
"""Bounded slowdown takes no run to be shorter than this (Feitelson, Metrics, JSSPP 2001)."""
STARVES_AT = 10.0
"""A job starves whose wait is longer than so many times its run."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """The figures of one play; None where there is nothing to take them of."""

    jobs: int
    completed: int
    failed: int
    mean_completion_s: Seconds | None
    """From arrival to end, of those that completed; so are the next two."""
    median_completion_s: Seconds | None
    p99_completion_s: Seconds | None
    mean_wait_s: Seconds | None
    """From arrival to first start, or to the end of the play for those that never started."""
    p99_wait_s: Seconds | None
    longest_wait_s: Seconds | None
    longest_idle_s: Seconds | None
    """All the time in which one job held no place, after it gave way, too."""
    mean_slowdown: float | None
    """Bounded: completion by run alone on the fastest device that suits, 10 s at least."""
    makespan_s: Seconds | None
    """From the first arrival to the last end."""
    utilisation: float | None
    """Share of the owned devices' seconds that jobs held, in the makespan."""
    worst_fairness: float | None
    """Of the project that fares worst: completions by those in its part of the devices, alone."""
    starved: int
    """Jobs that waited for more than ten times their run."""
    cloud_usd: float
    """What was paid for rented machines."""
    preemptions: int
    rounds: int
    """Plans that were made."""


NAMES = tuple(each.name for each in fields(Metrics))


def metrics(played: Played, arrivals: Sequence[Arrival], nodes: Sequence[Node]) -> Metrics:
    """Return the figures of a play."""
    truth = {one.job: one for one in arrivals}
    jobs = list(played.jobs.values())
    waits = {one.job.id: wait_s(one, played.ended_at) for one in jobs}
    done = {one.job.id: one.completion_s for one in jobs if one.completion_s is not None}
    runs = {job: shortest_s(truth[job], nodes) for job in waits}
    lengths = sorted(waits.values())
    completions = sorted(done.values())
    slow = [max(1.0, took_s / max(runs[job], SHORT_S)) for job, took_s in done.items()]
    return Metrics(
        jobs=len(jobs),
        completed=len(done),
        failed=sum(one.job.state is JobState.FAILED for one in jobs),
        mean_completion_s=mean(completions),
        median_completion_s=quantile(completions, 0.5),
        p99_completion_s=quantile(completions, 0.99),
        mean_wait_s=mean(lengths),
        p99_wait_s=quantile(lengths, 0.99),
        longest_wait_s=max(lengths, default=None),
        longest_idle_s=max((one.wait_s for one in jobs), default=None),
        mean_slowdown=mean(slow),
        makespan_s=played.ended_at - played.began_at if jobs else None,
        utilisation=_utilisation(played, nodes) if jobs else None,
        worst_fairness=worst_fairness(done, arrivals, nodes),
        starved=sum(waits[job] > STARVES_AT * runs[job] for job in waits),
        cloud_usd=played.cost_usd,
        preemptions=sum(one.preemptions for one in jobs),
        rounds=played.rounds,
    )


def _utilisation(played: Played, nodes: Sequence[Node]) -> float | None:
    """Return which share of the owned devices' seconds jobs held; None where there are none."""
    owned = {(node.id, device.id) for node in nodes for device in node.facts.devices}
    makespan_s = played.ended_at - played.began_at
    if not owned or makespan_s <= 0:
        return None
    held_s = math.fsum(
        stay.share * (min(stay.until, played.ended_at) - stay.since)
        for stay in played.stays
        for device in stay.placement.devices
        if (stay.placement.node, device) in owned
    )
    return held_s / (len(owned) * makespan_s)


def wait_s(one: PlayedJob, until: Instant) -> Seconds:
    """Return the time from arrival to first start; to the end of the play if it never started."""
    began_at = one.job.first_started_at
    return (until if began_at is None else began_at) - one.job.submitted_at


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, or None of nothing."""
    return math.fsum(values) / len(values) if values else None


def quantile(ordered: Sequence[float], part: float) -> float | None:
    """Return a quantile of sorted values, between neighbours in proportion; None of nothing."""
    if not ordered:
        return None
    at = part * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def worst_fairness(
    done: Mapping[str, Seconds], arrivals: Sequence[Arrival], nodes: Sequence[Node]
) -> float | None:
    """Return the finish-time fairness of the project that fares worst; None with fewer than two.

    Completions of its jobs, by those that they would have in its equal part of all devices alone,
    first come first served and as if that part were one machine (after Mahajan et al., Themis,
    NSDI 2020). Above 1: it fares worse than it would alone.
    """
    projects: dict[str, list[Arrival]] = {}
    for one in sorted(arrivals, key=lambda each: (each.at, each.job)):
        if one.job in done:
            projects.setdefault(one.spec.project, []).append(one)
    if len(projects) < 2:
        return None
    part = machine_speed(arrivals, nodes) / len(projects)
    return max(
        math.fsum(done[one.job] for one in own) / _alone_s(own, nodes, part)
        for own in projects.values()
    )


def _alone_s(own: Sequence[Arrival], nodes: Sequence[Node], speed: float) -> Seconds:
    total_s, free_at = 0.0, -math.inf
    for one in own:
        free_at = max(free_at, one.at) + (area_s(one) / speed if speed else 0.0)
        total_s += max(free_at - one.at, shortest_s(one, nodes))
    return total_s
