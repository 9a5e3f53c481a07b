"""Trials: each contestant plays the same jobs over some seeds, several at once."""

import multiprocessing as mp
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.sharedctypes import SynchronizedArray
from typing import Any

from cloudwhale.model.node import Node
from cloudwhale.model.units import MicroUsd, Seconds
from cloudwhale.simulation.at_once import at_once
from cloudwhale.simulation.bounds import Bounds, bounds
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.faults import Fault
from cloudwhale.simulation.lineup import chosen
from cloudwhale.simulation.metrics import Metrics, metrics, wait_s
from cloudwhale.simulation.playing import (
    Arrival,
    BrokenOff,
    Offered,
    PlanRefused,
    Progress,
    Setting,
    Stay,
    play,
)
from cloudwhale.simulation.traces.estimates import Estimates, estimated
from cloudwhale.simulation.traces.synthetic import Mix, mixed
from cloudwhale.spi.errors import CloudwhaleError

FOREVER_S: Seconds = 1e10
"""No trace is broken off: what can never run was refused when it was read."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What all contestants are given."""

    nodes: tuple[Node, ...]
    arrivals: tuple[Arrival, ...] | None = None
    """None: each seed draws its own from `mix`."""
    mix: Mix = Mix()
    estimates: Estimates | None = None
    """None: as the trace says."""
    physics: Physics = Physics()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What they share: `shares`, for example."""
    clouds: tuple[Offered, ...] = ()
    faults: tuple[Fault, ...] = ()
    budget: MicroUsd | None = None
    """What each may spend in all; None: nothing is rented."""

    def jobs(self, seed: int) -> list[Arrival]:
        """Return the jobs of one seed, by arrival."""
        found = mixed(seed, self.mix) if self.arrivals is None else list(self.arrivals)
        return found if self.estimates is None else estimated(found, self.estimates, seed)

    @property
    def is_drawn(self) -> bool:
        """Say whether another seed gives another play."""
        noisy = self.estimates is not None and self.estimates.is_drawn
        return self.arrivals is None or noisy


@dataclass(frozen=True, slots=True)
class Trial:
    """One contestant's play of one seed."""

    contestant: str
    seed: int
    metrics: Metrics
    waits_s: tuple[Seconds, ...]
    """Of every job, shortest first."""
    completions_s: tuple[Seconds, ...]
    """Of those that completed, shortest first."""
    stays: tuple[Stay, ...]
    """Which job held which devices, when."""


@dataclass(frozen=True, slots=True)
class Todo:
    """One trial that is to come."""

    contestant: str
    seed: int
    number: int = 0
    """Its place among all, where it counts its ended jobs."""


class TrialFailed(CloudwhaleError):
    """A play broke off, which is a bug: it says whose, of which seed, when and why."""


def trial(bench: Bench, todo: Todo, progress: Callable[[Progress], None] | None = None) -> Trial:
    """Play one contestant on one seed; `progress` is told of jobs that end.

    Raise TrialFailed where a plan breaks a rule of the checker, or the rounds come to no end.
    """
    jobs = bench.jobs(todo.seed)
    who = chosen(todo.contestant, bench.settings, todo.seed)
    setting = Setting(
        bench.nodes, jobs, bench.physics, FOREVER_S, bench.clouds, bench.faults, bench.budget
    )  # fmt: skip
    try:
        played = play(setting, who, progress=progress)
    except BrokenOff as error:
        raise _failed(todo, error) from error
    return Trial(
        todo.contestant,
        todo.seed,
        metrics(played, jobs, bench.nodes),
        tuple(sorted(wait_s(one, played.ended_at) for one in played.jobs.values())),
        tuple(sorted(j.completion_s for j in played.jobs.values() if j.completion_s is not None)),
        played.stays,
    )


def _failed(todo: Todo, error: BrokenOff) -> TrialFailed:
    what = "the checker refuses the plan" if isinstance(error, PlanRefused) else "no end of rounds"
    return TrialFailed(
        f"the policy {todo.contestant} broke off on seed {todo.seed} after "
        f"{error.after_s:.1f} s, in round {error.number}: {what}: {error}",
        "That is a bug of cloudwhale, or of the policy where that is a plug-in. Report this "
        "sentence with the command, and the trace and cluster that were played.",
    )


def bounds_of(bench: Bench, seeds: Sequence[int]) -> Bounds | None:
    """Return the mean over the seeds of what nobody can beat; None of no jobs.

    None, too, where more machines can be rented: it is what the owned ones can do.
    """
    if bench.clouds and bench.budget is not None:
        return None
    found = [one for seed in seeds if (one := bounds(bench.jobs(seed), bench.nodes)) is not None]
    if not found:
        return None
    return Bounds(
        sum(one.mean_completion_s for one in found) / len(found),
        sum(one.makespan_s for one in found) / len(found),
    )


# -- several at once -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the trials are."""

    ended: int
    """Jobs that have ended in those that run or are done."""
    whole: int
    """All jobs of all trials."""


def trials(
    bench: Bench, todo: Sequence[Todo], processes: int | None = None
) -> Generator[Trial | Standing, None, None]:
    """Yield each trial when it is done, and between them, five times a second, how far they are.

    Whoever closes the iterator ends what runs.
    """
    numbered = [replace(one, number=number) for number, one in enumerate(todo)]
    whole = sum(len(bench.jobs(one.seed)) for one in todo)
    counts: SynchronizedArray[int] = mp.Array("l", max(1, len(todo)))
    for done in at_once(_play, numbered, begin=_begin, given=(bench, counts), processes=processes):
        yield Standing(sum(counts[:]), whole) if done is None else done


@dataclass(slots=True)
class _Here:
    """What a process of the pool works on."""

    bench: Bench
    counts: "SynchronizedArray[int]"


_here: list[_Here] = []


def _begin(bench: Bench, counts: "SynchronizedArray[int]") -> None:
    _here[:] = [_Here(bench, counts)]


def _play(todo: Todo) -> Trial:
    [here] = _here

    def count(progress: Progress) -> None:
        here.counts[todo.number] = progress.ended

    return trial(here.bench, todo, count)
