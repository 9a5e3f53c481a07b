"""The openb cluster, its pod lists and what was published of them, read for the benchmark.

Node and pod lists: alibaba/clusterdata, cluster-trace-gpu-v2023 (Apache-2.0). Published figures:
hkust-adsl/kubernetes-scheduler-simulator, experiments/analysis/expected_results (Apache-2.0).
"""

import csv
import gzip
import os
from pathlib import Path

from cloudwhale.spi.filling import ClusterNode, Demand, Pod, Shape

ROOT = Path(__file__).parents[2]
TRACES = ("default", "gpushare40", "gpuspec33", "cpu100", "multigpu20")
NODES = "openb_node_list_gpu_node.csv"
PUBLISHED = "openb_published_alloc_pct.csv"


def folder() -> Path:
    """Return where the traces lie: $CLOUDWHALE_TRACES, or beside the repository."""
    named = os.environ.get("CLOUDWHALE_TRACES")
    return Path(named) if named else ROOT.parent / "shared" / "data"


def missing() -> str:
    """Return a sentence when the traces are not there, else nothing."""
    absent = [name for name in (NODES, PUBLISHED) if not (folder() / name).exists()]
    if not absent:
        return ""
    return (
        f"{folder()} has no {absent[0]}: get the folders data/csv and experiments/analysis of "
        "hkust-adsl/kubernetes-scheduler-simulator, and set CLOUDWHALE_TRACES to where they are"
    )


def nodes() -> list[ClusterNode]:
    """Return the nodes that have GPUs, by name."""
    with (folder() / NODES).open() as lines:
        return [
            ClusterNode(
                row["sn"],
                Shape(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"]),
            )
            for row in csv.DictReader(lines)
        ]


def pods(trace: str) -> list[Pod]:
    """Return the pods of a trace, by name."""
    with gzip.open(folder() / f"openb_pod_list_{trace}.csv.gz", "rt") as lines:
        return sorted((_pod(row) for row in csv.DictReader(lines)), key=lambda pod: pod.name)


def _pod(row: dict[str, str]) -> Pod:
    gpus = int(row["num_gpu"])
    models = frozenset(model for model in (row.get("gpu_spec") or "").split("|") if model)
    demand = Demand(
        cpu_milli=int(row["cpu_milli"]),
        memory_mib=int(row["memory_mib"]),
        gpus=gpus,
        gpu_milli=int(row["gpu_milli"]) if gpus else 0,
        models=models if gpus else frozenset(),
    )
    return Pod(row["name"], demand)


def published(policy: str) -> dict[tuple[str, int], float]:
    """Return the mean over seeds 42 to 51 of what was published, by trace and percent arrived."""
    found: dict[tuple[str, int], list[float]] = {}
    with (folder() / PUBLISHED).open() as lines:
        for row in csv.DictReader(lines):
            if row["policy"] == policy:
                for percent in (100, 130):
                    value = float(row[f"arrive{percent}"])
                    found.setdefault((row["trace"], percent), []).append(value)
    return {key: sum(values) / len(values) for key, values in found.items()}
