"""The benchmark of `offers` runs: with numbers so small that its figures mean nothing."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with one run."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import offers

    monkeypatch.setattr(offers, "RUNS", 1)
    yield offers
    for name in ("offers", "run", "commands", "controller_costs", "latency", "start_up"):
        sys.modules.pop(name, None)


def test_each_part_is_measured_and_one_has_a_bar(benchmark: Any, tmp_path: Path) -> None:
    rows = list(benchmark.measure(tmp_path, 960))
    assert [row[3] for row in rows] == [benchmark.BAR_S, 0.0, 0.0, 0.0]
    assert rows[0][0].startswith("960 offers filtered")
    assert all(seconds > 0 for row in rows for seconds in row[1])


def test_a_seed_makes_the_same_market_again(benchmark: Any) -> None:
    assert benchmark.a_market(960, 1) == benchmark.a_market(960, 1)
    assert benchmark.a_market(960, 1) != benchmark.a_market(960, 2)


def test_it_can_answer_in_one_document(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark.gc, "set_threshold", lambda *many: None)
    monkeypatch.setattr(sys, "argv", ["offers.py", "--rows", "480", "--json"])
    benchmark.main()
    found = json.loads(capsys.readouterr().out)
    assert [row["bar"] for row in found] == [0.3, None, None, None]
