"""The Philly table: its baselines are the published schedulers, and the whale meets its bars."""

import json
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import philly
import philly_jobs
import philly_pool as pool
from philly_figures import bound_s, figures

BESIDE = Path(__file__).parents[3] / "shared" / "data"
FOLDER = Path(os.environ.get("CLOUDWHALE_TRACES", BESIDE))
needs_trace = pytest.mark.skipif(
    not (FOLDER / "philly_jobs_first60d.csv.gz").exists(), reason="the trace is not here"
)


@cache
def first_jobs() -> Sequence[pool.Job]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOUDWHALE_TRACES", str(FOLDER))
        return philly_jobs.philly(6000, 0, 64)


@needs_trace
@pytest.mark.parametrize("policy", ["fit-first", "sjf", "sgf", "srtf", "srsf"])
def test_a_baseline_comes_within_two_percent_of_the_reference(policy: str) -> None:
    found = figures(pool.play(first_jobs(), 480, pool.RULES[policy]()))
    ours = (found.completion_s, found.wait_p99_s, found.wait_max_s)
    assert ours == pytest.approx(philly.REFERENCE[480][policy], rel=0.02)


@needs_trace
@pytest.mark.parametrize("policy", list(philly.BARS))
def test_the_whale_meets_all_its_bars_at_once(policy: str) -> None:
    one = philly.row(policy, first_jobs(), 480, 300.0)
    assert philly.within([one])
    assert one.completion_s >= bound_s(first_jobs(), 480)


@pytest.mark.parametrize("seed", range(3))
def test_on_made_traces_the_limits_shorten_the_longest_wait_and_the_mean_stays_below_fifo(
    seed: int,
) -> None:
    made = philly_jobs.synthetic(seed, 1500, 64)
    least_work = pool.InOrder(lambda task: task.work, reserve=True)
    whale = figures(pool.play(made, 64, philly.WHALES["whale"]()))
    free = figures(pool.play(made, 64, least_work))
    fifo = figures(pool.play(made, 64, pool.RULES["fifo"]()))
    assert whale.completion_s < fifo.completion_s
    assert whale.wait_max_s <= 1.05 * free.wait_max_s


def test_the_table_is_printed_for_made_jobs_with_what_the_planner_makes_of_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["--synthetic", "1", "--jobs", "12", "--gpus", "32", "--policies", "sgf", "--played"]
    monkeypatch.setattr(sys, "argv", ["philly.py", *asked, "--json"])
    assert philly.main() == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["by"] for row in rows] == ["pool", "planner"]
    assert rows[0]["completion_s"] == pytest.approx(rows[1]["completion_s"])
    monkeypatch.setattr(sys, "argv", ["philly.py", *asked])
    assert philly.main() == 0
    assert "no schedule's mean completion is below" in capsys.readouterr().out


def test_without_the_trace_it_is_said_where_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLOUDWHALE_TRACES", raising=False)
    monkeypatch.setattr(sys, "argv", ["philly.py"])
    assert philly.main() == 2
    assert "CLOUDWHALE_TRACES" in capsys.readouterr().err
