"""Plays a wait policy over a stream of jobs: own nodes for nothing, an endless cloud for money."""

import csv
import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cloudwhale.model.job import GpuRequest, Job, JobSpec, Resources
from cloudwhale.spi.waiting import Quote, Running, Wait, Waiting, Waits

HOUR_S = 3600.0
USD_PER_GPU_H = 2.5
NODES, GPUS = 4, 8
LOOKS_S = 300.0
"""While jobs wait, the policy is asked that often."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job of a stream."""

    job: Job
    at_s: float
    runs_s: float
    gpus: int


def arrival(number: int, at_h: float, runs_h: float, gpus: int) -> Arrival:
    """Make a job of a stream from hours."""
    spec = JobSpec(name="burst", command="true", resources=Resources(gpu=GpuRequest(count=gpus)))
    job = Job(id=f"burst-{number:05d}", run="burst", spec=spec, submitted_at=at_h * HOUR_S)
    return Arrival(job, at_h * HOUR_S, runs_h * HOUR_S, gpus)


def read(file: Path) -> list[Arrival]:
    """Read job_id, arrival_h, runtime_h, num_gpus."""
    with file.open(newline="") as lines:
        return [
            arrival(
                int(row["job_id"]),
                float(row["arrival_h"]),
                float(row["runtime_h"]),
                int(row["num_gpus"]),
            )
            for row in csv.DictReader(lines)
        ]


def drawn(seed: int, load: float = 1.0, jobs: int = 500) -> list[Arrival]:
    """Draw a stream of the published kind: Poisson, 16/h at load 1, exp(1 h), four sizes."""
    draws = random.Random(f"burst-{seed}")
    at_h, found = 0.0, list[Arrival]()
    for number in range(jobs):
        gpus = draws.choices((1, 2, 4, 8), (0.7, 0.15, 0.1, 0.05))[0]
        found.append(arrival(number, at_h, draws.expovariate(1.0), gpus))
        at_h += draws.expovariate(16.0 * load)
    return found


Estimate = Callable[[Arrival], float | None]


def exact(one: Arrival) -> float | None:
    """Return the true length."""
    return one.runs_s


def nothing(one: Arrival) -> float | None:
    """Return nothing."""
    return None


def noisy(seed: int, times: float = 3.0) -> Estimate:
    """Return estimates that are off by up to a factor either way, evenly in its logarithm."""

    def said(one: Arrival) -> float | None:
        draws = random.Random(f"noise-{seed}-{one.job.id}")
        return float(one.runs_s * times ** draws.uniform(-1.0, 1.0))

    return said


@dataclass(slots=True)
class Outcome:
    """What a play has cost."""

    usd: float = 0.0
    waited_s: float = 0.0
    jobs: int = 0
    rented: int = 0
    rounds: int = 0

    @property
    def wait_h(self) -> float:
        """Return the mean wait of all jobs, those rented for included."""
        return self.waited_s / max(1, self.jobs) / HOUR_S


@dataclass(slots=True)
class _Here:
    one: Arrival
    node: str
    since_s: float


@dataclass(slots=True)
class Play:
    """A stream, a policy and what an hour of waiting is worth."""

    stream: Sequence[Arrival]
    wait: Wait
    usd_h: float = 1.0
    estimate: Estimate = exact
    free: dict[str, float] = field(default_factory=dict[str, float])
    here: dict[str, _Here] = field(default_factory=dict[str, _Here])
    waiting: dict[str, Arrival] = field(default_factory=dict[str, Arrival])
    said: dict[str, float | None] = field(default_factory=dict[str, "float | None"])
    ended_s: list[float] = field(default_factory=list[float])
    outcome: Outcome = field(default_factory=Outcome)

    def run(self) -> Outcome:
        """Play to the end."""
        self.free = {f"node-{n}": float(GPUS) for n in range(NODES)}
        self.said = {one.job.id: self.estimate(one) for one in self.stream}
        self.outcome.jobs = len(self.stream)
        events: list[tuple[float, int, str]] = []
        known = {one.job.id: one for one in self.stream}
        for one in self.stream:
            heapq.heappush(events, (one.at_s, 1, one.job.id))
        look_s = float("inf")
        while events or self.waiting:
            now = min(look_s, events[0][0] if events else float("inf"))
            while events and events[0][0] <= now:
                _, kind, name = heapq.heappop(events)
                if kind == 1:
                    self.waiting[name] = known[name]
                else:
                    self._end(known[name], cloud=kind == 2)
            look_s = self._round(now, events)
        return self.outcome

    def _end(self, one: Arrival, *, cloud: bool) -> None:
        self.ended_s.append(one.runs_s)
        if not cloud:
            here = self.here.pop(one.job.id)
            self.free[here.node] += one.gpus

    def _round(self, now: float, events: list[tuple[float, int, str]]) -> float:
        if not self.waiting:
            return float("inf")
        self.outcome.rounds += 1
        verdicts = self.wait.verdicts(self._waits(now))
        again = now + LOOKS_S
        for name, one in list(self.waiting.items()):
            verdict = verdicts[name]
            if verdict.kind == "wait":
                if verdict.at is not None and verdict.at > now:
                    again = min(again, verdict.at)
                continue
            del self.waiting[name]
            self.outcome.waited_s += now - one.at_s
            if verdict.kind == "rent":
                self.outcome.usd += USD_PER_GPU_H * one.gpus * one.runs_s / HOUR_S
                self.outcome.rented += 1
                heapq.heappush(events, (now + one.runs_s, 2, name))
                continue
            assert self.free[verdict.node] >= one.gpus, verdict
            self.free[verdict.node] -= one.gpus
            self.here[name] = _Here(one, verdict.node, now)
            heapq.heappush(events, (now + one.runs_s, 0, name))
        return again if self.waiting else float("inf")

    def _waits(self, now: float) -> Waits:
        mean_s = self._mean_s()
        return Waits(
            now=now,
            waiting=[self._seen(one, mean_s) for one in self.waiting.values()],
            running=[
                Running(h.one.job, h.node, h.one.gpus, now - h.since_s, self.said[name])
                for name, h in self.here.items()
            ],
            devices=dict.fromkeys(self.free, float(GPUS)),
            free=dict(self.free),
            ended_s=tuple(self.ended_s),
        )

    def _mean_s(self) -> float:
        return sum(self.ended_s) / len(self.ended_s) if len(self.ended_s) >= 5 else HOUR_S

    def _seen(self, one: Arrival, mean_s: float) -> Waiting:
        said = self.said[one.job.id]
        length_s = mean_s if said is None else said
        return Waiting(
            job=one.job,
            devices=one.gpus,
            length_s=said,
            nodes=tuple(self.free),
            fits_now=tuple(n for n, f in self.free.items() if f >= one.gpus),
            quote=Quote(
                USD_PER_GPU_H * one.gpus * length_s / HOUR_S, USD_PER_GPU_H * one.gpus, length_s
            ),
            start_by=None,
            usd_h=self.usd_h,
        )
