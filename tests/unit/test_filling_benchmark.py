"""The benchmark of filling runs: on a cluster so small that its figures mean nothing."""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudwhale.simulation.traces.pods import capacity_milli, workload

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PODS = ("6000,8192,1,460,", "11300,8192,1,1000,", "3152,8192,1,810,G2|T4", "9000,8192,2,1000,",
        "1000,8192,0,0,")  # fmt: skip


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder as FGD's authors publish theirs; the benchmarks' folder is importable."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("CLOUDWHALE_TRACES", str(tmp_path))
    nodes = "".join(f"n-{n},96000,393216,8,{'G2' if n % 2 else 'T4'}\n" for n in range(4))
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\n" + nodes
    )
    pods = "".join(f"p-{n:02d},{PODS[n % len(PODS)]}\n" for n in range(40))
    with gzip.open(tmp_path / "openb_pod_list_default.csv.gz", "wt") as file:
        file.write("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + pods)
    figures = "".join(
        f"default,{policy},{seed},90.0,91.0\n"
        for policy in ("FGD", "BestFit", "DotProd")
        for seed in (42, 43)
    )
    (tmp_path / "openb_published_alloc_pct.csv").write_text(
        "trace,policy,seed,arrive100,arrive130\n" + figures
    )
    yield tmp_path
    for name in ("openb", "openb_trace"):
        sys.modules.pop(name, None)


def test_every_policy_stays_below_the_bound(traces: Path) -> None:
    import openb

    for seeds in ("42-43", "42,43"):
        assert openb.seeds_of(seeds) == (42, 43)
    tasks = [openb.Task("default", policy, (42, 43)) for policy in (*openb.POLICIES, "bound")]
    results = [openb.done(task) for task in tasks]
    for result in results[:-1]:
        for at in openb.PERCENTS:
            # A percent is the mean over the pods that round to it; one of them asks for 6 %.
            most = max(results[-1].percents[at])
            assert all(0.0 < value <= most + 7.0 for value in result.percents[at])
    text = openb.as_text(results)
    assert "dot-product" in text
    assert " 90.00" in text
    assert "share" in text
    assert json.loads(openb.as_json(results))["results"][0]["policy"] == "whale"


def test_each_term_can_be_left_out(traces: Path) -> None:
    import openb

    results = [openb.done(openb.Task("default", name, (42,))) for name in openb.ABLATED]
    assert [result.policy for result in results] == list(openb.ABLATED)
    assert all(result.percents[100] for result in results)


def test_a_workload_asks_for_more_than_the_cluster_and_repeats(traces: Path) -> None:
    import openb_trace

    cluster, listed = openb_trace.nodes(), openb_trace.pods("default")
    capacity = capacity_milli(cluster)
    drawn = workload(listed, capacity, 42)
    asked = sum(pod.demand.gpu_total_milli for pod in drawn)
    assert 1.2 * capacity < asked <= 1.3 * capacity
    assert drawn == workload(listed, capacity, 42)
    assert drawn != workload(listed, capacity, 43)


def test_the_benchmark_says_where_to_get_the_traces(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "openb.py")], capture_output=True, text=True, timeout=60,
        check=False, env={"CLOUDWHALE_TRACES": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "CLOUDWHALE_TRACES" in done.stderr


def test_the_benchmark_says_what_it_can_do() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "openb.py"), "--help"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "--ablation" in done.stdout
