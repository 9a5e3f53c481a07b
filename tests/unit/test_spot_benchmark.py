"""The spot table: what it is made of, on series so few that its figures mean little."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import spot
import spot_picture
import spot_trace

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "spot.py"


def small() -> spot_trace.Zones:
    zones = spot_trace.drawn(3, zones=2, ticks=700)
    return spot_trace.Zones(zones.title, zones.tick_s, zones.series)


@pytest.fixture(scope="module")
def cells() -> list[spot.Cell]:
    return list(spot.play(small(), 0.9, 2, 0))


def test_every_rule_has_a_cell_and_none_misses(cells: list[spot.Cell]) -> None:
    assert [cell.rule for cell in cells] == [*spot.RULES, spot.OPTIMUM]
    assert sum(cell.misses for cell in cells) == 0


def test_the_optimum_closes_the_whole_gap_and_uniform_progress_none(
    cells: list[spot.Cell],
) -> None:
    closed = {cell.rule: cell.closed for cell in cells}
    assert closed[spot.UP] == 0.0
    assert closed[spot.OPTIMUM] == pytest.approx(100.0)
    assert all(share <= 100.0 + 1e-6 for share in closed.values())


def test_the_same_seed_draws_the_same_starts() -> None:
    series = small().series[0]
    assert spot_trace.starts(series, 300, 5, "0") == spot_trace.starts(series, 300, 5, "0")
    assert spot_trace.starts(series, 300, 5, "0") != spot_trace.starts(series, 300, 5, "1")


def test_drawn_spells_have_heavy_tails() -> None:
    flags = spot_trace.drawn(1).series[0].is_on
    lasts = [len(spell) for spell in "".join("x" if on else " " for on in flags).split()]
    assert max(lasts) > 5 * sorted(lasts)[len(lasts) // 2]


def test_the_table_names_every_rule(cells: list[spot.Cell]) -> None:
    text = "\n".join(spot.table(cells))
    assert all(rule in text for rule in (*spot.RULES, spot.OPTIMUM))


def test_the_picture_is_drawn(cells: list[spot.Cell], tmp_path: Path) -> None:
    spot_picture.draw(cells, tmp_path / "spot.png")
    assert (tmp_path / "spot.png").read_bytes().startswith(b"\x89PNG")


def test_the_benchmark_prints_json_where_no_record_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--starts", "1", "--fractions", "0.95",
         "--quick", "--json"],
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "CLOUDWHALE_TRACES": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {cell["rule"] for cell in found} == {*spot.RULES, spot.OPTIMUM}
