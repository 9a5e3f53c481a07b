"""The benchmarks run: each with numbers so small that its figures mean nothing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import Shell

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SMALL: dict[str, dict[str, float]] = {
    "start_up": {"JOBS": 30, "ALIVE": 5, "RUNS": 1},
    "latency": {"RUNS": 1, "QUIET_S": 0.1},
    "controller_costs": {"JOBS": 3, "IDLE_S": 0.3, "SETTLE_S": 0.1, "DRAIN_LIMIT_S": 60.0},
}
ROWS = {"start-up": 4, "latency": 2, "throughput": 3, "idle": 1}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Shrink the benchmarks' sizes; their folder is where their modules find each other."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import controller_costs
    import latency
    import start_up

    for module in (start_up, latency, controller_costs):
        for name, value in SMALL[module.__name__].items():
            monkeypatch.setattr(module, name, value)
    yield
    for name in (*SMALL, "commands", "run"):
        sys.modules.pop(name, None)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home for one benchmark; its agent goes too, which else would wait a minute for work."""
    shell = Shell(tmp_path)
    shell.home.mkdir()
    yield shell.home
    shell.close()


@pytest.mark.parametrize("name", ROWS)
def test_a_benchmark_measures_what_it_says(small: None, home: Path, name: str) -> None:
    import run

    rows = list(run.rows_of(name, home))
    assert len(rows) == ROWS[name]
    assert run.BENCHMARKS.keys() == ROWS.keys()
    for row in rows:
        assert row.figure > 0.0 or row.unit == "%"
        assert row.bar > 0.0
        assert row.spread.endswith("n=1")
        assert run.as_text(row).startswith("ok" if row.is_good else "MISSED")


@pytest.mark.parametrize(
    ("words", "code", "said"), [(["--help"], 0, "start-up"), (["no-such-one"], 2, "no benchmark")]
)
def test_the_benchmarks_say_what_there_is(words: list[str], code: int, said: str) -> None:
    script = str(BENCHMARKS / "run.py")
    done = subprocess.run(
        [sys.executable, script, *words], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr


def test_the_sandbox_s_benchmark_says_where_the_time_goes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import sandbox

    (sample,) = sandbox.measure(home, 1)
    assert len(sample.parts) == len(sandbox.PARTS)
    assert min(sample.parts) >= 0.0
    assert sum(sample.parts[:-1]) == pytest.approx(sample.parts[-1])
    lines = sandbox.table([sample])
    assert len(lines) == 1 + len(sandbox.PARTS)
    assert lines[-1].startswith("in all")
    for name in ("sandbox", "commands"):
        sys.modules.pop(name, None)
