"""The benchmark of costs runs: with numbers so small that its figures mean little."""

from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import costs

    return costs


def test_figures_of_a_small_ledger_are_measured(benchmark: Any, tmp_path: Path) -> None:
    benchmark.fill(tmp_path, 400)
    (by_project,) = benchmark.commands_figures(tmp_path, 400, times=1)
    page, size = benchmark.page_figures(tmp_path, 300, times=1)
    (focus,) = benchmark.focus_figures(tmp_path, 400)
    assert by_project.value > 0 and page.value > 0 and focus.value > 0
    assert 0.01 < size.value < benchmark.PAGE_BAR_MB


def test_rounds_are_measured_in_pairs_with_a_reader_beside_them(
    benchmark: Any, tmp_path: Path
) -> None:
    benchmark.fill(tmp_path, 400)
    quiet, beside = benchmark.paired_rounds(tmp_path, 3)
    assert len(quiet) == len(beside) == 3
    assert all(one.wall_s >= 0 and one.cpu_s > 0 for one in (*quiet, *beside))
