"""Trials of filling: each policy studies a cluster and its mix, then fills it once a seed."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from cloudwhale import plugins
from cloudwhale.simulation.at_once import at_once
from cloudwhale.simulation.filling import Asked, fill, mix_of
from cloudwhale.simulation.filling_bound import most_allocated_milli
from cloudwhale.simulation.traces.pods import capacity_milli, shuffled, until, workload
from cloudwhale.spi.filling import ClusterNode, Filling, Pod


@dataclass(frozen=True, slots=True)
class FillBench:
    """What all policies are given."""

    cluster: tuple[ClusterNode, ...]
    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class FillTodo:
    """One policy's fillings that are to come."""

    policy: str
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FillTrial:
    """How one policy filled the cluster, a value a seed."""

    policy: str
    seeds: tuple[int, ...]
    allocated_percent: dict[int, tuple[float, ...]]
    """Of the cluster's GPUs, by how many percent of them have been asked for."""
    classes: tuple[dict[str, Asked], ...]
    """Pods of each class, and how many were refused."""


def names() -> tuple[str, ...]:
    """Return every policy that fills, ours first."""
    return tuple(sorted(plugins.names(plugins.FILLINGS), key=lambda name: (name != "whale", name)))


BOUND = "bound"
"""No policy: what none could exceed, even if it knew every pod beforehand."""
BOUND_AT = (100, 130)
"""Percent asked for at which it is worked out, which takes seconds."""


def bound_trial(bench: FillBench, seeds: Sequence[int]) -> FillTrial:
    """Return what no policy could exceed."""
    capacity = capacity_milli(bench.cluster)
    drawn = [workload(bench.pods, capacity, seed) for seed in seeds]
    most = {
        percent: tuple(
            100.0 * most_allocated_milli(bench.cluster, until(each, capacity, percent)) / capacity
            for each in drawn
        )
        for percent in BOUND_AT
    }
    return FillTrial(BOUND, tuple(seeds), most, ())


def fill_trial(bench: FillBench, todo: FillTodo) -> FillTrial:
    """Study once, then fill once a seed; the study of a policy that learns takes a minute."""
    if todo.policy == BOUND:
        return bound_trial(bench, todo.seeds)
    policy: Filling = plugins.load(plugins.FILLINGS, todo.policy)()
    rule = policy.study([node.shape for node in bench.cluster], mix_of(bench.pods))
    capacity = capacity_milli(bench.cluster)
    found = [
        fill(shuffled(bench.cluster, seed), workload(bench.pods, capacity, seed), rule)
        for seed in todo.seeds
    ]
    last = max((max(one.allocated_percent, default=0) for one in found), default=0)
    curves = [_without_gaps(one.allocated_percent, last) for one in found]
    return FillTrial(
        todo.policy,
        todo.seeds,
        {percent: tuple(curve[percent] for curve in curves) for percent in range(last + 1)},
        tuple(one.classes for one in found),
    )


def _without_gaps(curve: Mapping[int, float], last: int) -> list[float]:
    """Return a value for each percent: in a small cluster one pod takes several at once."""
    found: list[float] = []
    for percent in range(last + 1):
        found.append(curve.get(percent, found[-1] if found else 0.0))
    return found


def fill_trials(
    bench: FillBench, todo: Sequence[FillTodo], processes: int | None = None
) -> Generator[FillTrial | None, None, None]:
    """Yield each policy's trial when it is done, None five times a second while none is."""
    yield from at_once(_fill, todo, begin=_begin, given=(bench,), processes=processes)


_here: list[FillBench] = []


def _begin(bench: FillBench) -> None:
    _here[:] = [bench]


def _fill(todo: FillTodo) -> FillTrial:
    [bench] = _here
    return fill_trial(bench, todo)
