"""A list of pods that fill a cluster: read, and drawn again until they ask for more than there is.

As the authors of FGD draw it (Weng et al., Beware of Fragmentation, USENIX ATC 2023).
"""

import random
from collections.abc import Sequence
from pathlib import Path

from cloudwhale.model.node import Node
from cloudwhale.simulation.traces.columns import (
    AMOUNT,
    COUNT,
    MIB_PER_GIB,
    MILLI,
    OPENB_SHAPE,
    SHARE_MILLI,
    openb_models,
)  # fmt: skip
from cloudwhale.simulation.traces.rows import Row, listed
from cloudwhale.spi.filling import GPU_MILLI, ClusterNode, Demand, Pod, Shape

INFLATED = 1.3
"""Pods are drawn until they ask for so many times the cluster's GPUs."""


def pods_from(file: Path) -> list[Pod]:
    """Return the pods of a list, by name; raise TraceError for a line that is wrong."""
    found = (_pod(one) for one in listed(file, OPENB_SHAPE, "pods"))
    return sorted(found, key=lambda pod: pod.name)


def _pod(one: Row) -> Pod:
    gpus = int(one.number("num_gpu", COUNT))
    models = openb_models(one.values.get("gpu_spec")) if gpus else ()
    demand = Demand(
        cpu_milli=int(one.number("cpu_milli", AMOUNT)),
        memory_mib=int(one.number("memory_mib", AMOUNT)),
        gpus=gpus,
        gpu_milli=int(one.number("gpu_milli", SHARE_MILLI)) if gpus else 0,
        models=frozenset(models),
    )
    return Pod(one.word("name"), demand)


def cluster_of(nodes: Sequence[Node]) -> list[ClusterNode]:
    """Return nodes as pods that never leave see them."""
    return [ClusterNode(node.id, _shape(node)) for node in nodes]


def _shape(node: Node) -> Shape:
    facts = node.facts
    return Shape(
        cpu_milli=round(facts.cpu * MILLI),
        memory_mib=round(facts.memory_gib * MIB_PER_GIB),
        gpus=len(facts.devices),
        model=facts.devices[0].model if facts.devices else "",
    )


def workload(offered: Sequence[Pod], capacity_milli: int, seed: int) -> list[Pod]:
    """Return the pods in the order of a seed, drawn again until they ask for 1.3 clusters."""
    dice = random.Random(f"openb-pods-{seed}")
    most = INFLATED * capacity_milli
    drawn = list(offered)
    dice.shuffle(drawn)
    asked = sum(pod.demand.gpu_total_milli for pod in drawn)
    while asked > most:
        asked -= drawn.pop(dice.randrange(len(drawn))).demand.gpu_total_milli
    while any(pod.demand.gpu_total_milli for pod in offered):
        again = offered[dice.randrange(len(offered))]
        asked += again.demand.gpu_total_milli
        if asked > most:
            break
        drawn.append(Pod(f"{again.name}-{len(drawn)}", again.demand))
    return drawn


def shuffled(cluster: Sequence[ClusterNode], seed: int) -> list[ClusterNode]:
    """Return the nodes in the order of a seed, in which the first wins a tie."""
    drawn = list(cluster)
    random.Random(f"openb-nodes-{seed}").shuffle(drawn)
    return drawn


def until(drawn: Sequence[Pod], capacity_milli: int, percent: int) -> list[Pod]:
    """Return the first pods, until they have asked for so many percent of the cluster."""
    asked = 0
    for number, pod in enumerate(drawn):
        asked += pod.demand.gpu_total_milli
        if 100 * asked >= percent * capacity_milli:
            return list(drawn[: number + 1])
    return list(drawn)


def capacity_milli(cluster: Sequence[ClusterNode]) -> int:
    """Return the GPU milli of the cluster."""
    return GPU_MILLI * sum(node.shape.gpus for node in cluster)
