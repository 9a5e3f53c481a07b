"""Traces that have a name: what they are played on, where they are kept, and where to get them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.model.node import Node
from cloudwhale.simulation.clusters import (
    CPU_PER_GPU,
    GIB_PER_GPU,
    POOL_MODEL,
    Pool,
    openb_nodes,
    pool,
)
from cloudwhale.simulation.offers import by_the_gpu_hour
from cloudwhale.simulation.playing import Offered
from cloudwhale.simulation.traces.rows import TraceError

VARIABLE = "CLOUDWHALE_TRACES"
"""Names the folder in which named traces lie; it is no setting."""

SYNTHETIC = "synthetic"


@dataclass(frozen=True, slots=True)
class Known:
    """A public trace."""

    name: str
    says: str
    file: str
    """Its name in the folder, with or without `.gz`; `{}` stands for the variant."""
    source: str
    """Where to get it, and what to make of it."""
    variant: str = ""
    """Which is meant when none is named; empty: it has none."""
    pool: Pool | None = None
    """What it is played on; None: on nodes that lie beside it."""
    usd_per_gpu_h: float | None = None
    """What a GPU-hour costs in the cloud beside it; None: it has none."""


KNOWN: Mapping[str, Known] = {
    known.name: known
    for known in (
        Known(
            "openb", "8,152 pods of an Alibaba cluster: fills it, GPU shares and models",
            "openb_pod_list_{}.csv",
            "github.com/alibaba/clusterdata, cluster-trace-gpu-v2023/csv: the lists of pods and "
            "openb_node_list_gpu_node.csv",
            variant="default",
        ),
        Known(
            "philly", "54,890 jobs of Microsoft's Philly cluster, whole GPUs, two months",
            "philly_jobs_first60d.csv",
            "github.com/siasosp23/artifacts, sia-simulator/traces/philly.csv (made of "
            "github.com/msr-fiddle/philly-traces, CC BY 4.0), as columns "
            "submit_s,duration_s,num_gpus,vc",
            pool=Pool(1, 480),
        ),
        Known(
            "burst", "500 jobs, one arrives every 225 s, of 1, 2, 4 and 8 GPUs",
            "burst_synth500_load1.csv",
            "the generator of github.com/michaelzhiluo/starburst with seed 13 and 16 arrivals an "
            "hour, as columns job_id,arrival_h,runtime_h,num_gpus",
            pool=Pool(4, 8),
            usd_per_gpu_h=2.5,
        ),
    )
}  # fmt: skip

NAMES = (SYNTHETIC, *KNOWN)

OPENB_NODES = "openb_node_list_gpu_node.csv"


def split_name(word: str) -> tuple[str, str]:
    """Return name and variant of `openb:gpuspec33`; the variant is empty when there is none."""
    name, _, variant = word.partition(":")
    return name, variant


def is_named(word: str) -> bool:
    """Say whether a word is the name of a trace rather than a file's."""
    return split_name(word)[0] in NAMES


def file_of(word: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return the file of a named trace; raise TraceError that says where to get it."""
    known, variant = _known(word)
    return _found(known, known.file.format(variant or known.variant), environment)


def _known(word: str) -> tuple[Known, str]:
    name, variant = split_name(word)
    known = KNOWN.get(name)
    if known is None or (":" in word and not known.variant):
        raise TraceError(f"the trace {name} has no variants", f"Write --trace {name}.")
    return known, variant


def is_there(file: Path) -> bool:
    """Say whether a file can be seen; one in a folder that may not be entered cannot."""
    try:
        return file.is_file()
    except OSError:
        return False


def _found(known: Known, name: str, environment: Mapping[str, str] | None) -> Path:
    env = os.environ if environment is None else environment
    folder = env.get(VARIABLE, "")
    get = f"Get it from {known.source}; set ${VARIABLE} to the folder that holds it as {name}[.gz]."
    if not folder:
        raise TraceError(
            f"the trace {known.name} is looked up in ${VARIABLE}, which is not set", get
        )
    tried = [Path(folder) / name, Path(folder) / f"{name}.gz"]
    for file in tried:
        if is_there(file):
            return file
    raise TraceError(f"{tried[0]} is not there, and neither is {tried[1].name}", get)


def clouds_of(word: str) -> tuple[Offered, ...]:
    """Return what can be rented beside the nodes that a named trace is played on."""
    usd = _known(word)[0].usd_per_gpu_h
    return () if usd is None else (by_the_gpu_hour(POOL_MODEL, usd, CPU_PER_GPU, GIB_PER_GPU),)


def nodes_of(word: str, environment: Mapping[str, str] | None = None) -> Sequence[Node]:
    """Return the nodes that a named trace is played on when nothing else is said."""
    known, _ = _known(word)
    if known.pool is not None:
        return pool(known.pool)
    return openb_nodes(_found(known, OPENB_NODES, environment))
