"""The seed's comparison: its workload, the head of the line, intervals, table and picture."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from makers import a_device, a_job, a_node, a_world, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import JobState, Placement
from cloudwhale.planning.planner import plan

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
NAMES = ("mix", "seeds", "seeds_picture", "intervals")


PLACED = {
    "state": JobState.RUNNING,
    "attempt": 1,
    "placement": Placement(node="host", devices=("gpu-0",)),
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let twelve jobs arrive within an hour; the benchmarks' folder is where they are found."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import mix

    monkeypatch.setattr(mix, "JOBS", 12)
    monkeypatch.setattr(mix, "HOURS", 1.0)
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


def test_a_seed_gives_the_same_jobs_every_time_and_another_seed_others() -> None:
    import mix

    assert mix.arrivals(3) == mix.arrivals(3)
    assert mix.arrivals(3) != mix.arrivals(4)
    assert mix.arrivals(3)[-1].at == pytest.approx(3600.0)


def test_files_say_lengths_that_are_off_by_up_to_the_factor() -> None:
    import mix

    off = [
        (job.spec.duration_s or 0.0) / job.work_s
        for seed in range(20)
        for job in mix.arrivals(seed)
    ]
    assert 0.5 <= min(off) < 0.6 and 1.7 < max(off) <= 2.0
    exact = [(job.spec.duration_s or 0.0) / job.work_s for job in mix.arrivals(1, noise=1.0)]
    assert exact == pytest.approx([1.0] * 12)


def test_every_job_fits_one_of_the_nodes() -> None:
    import seeds

    for contestant in seeds.CONTESTANTS:
        assert seeds.result(contestant, 0, 2.0).completed == 12


def test_nobody_passes_the_head_of_a_strict_line() -> None:
    import seeds

    who = seeds.chosen("fifo")
    node = a_node(cpu=8.0, devices=(a_device(),))
    first = a_job("a-1", resources=wants(gpus=1), submitted_at=0.0)
    large = a_job("b-1", resources=wants(gpus=1), submitted_at=1.0)
    small = a_job("c-1", resources=wants(), submitted_at=2.0)

    world = a_world([first, large, small], [node])

    def placed(made: p.Plan) -> set[str]:
        return {step.job for step in made.steps if isinstance(step, p.Place)}

    assert placed(plan(world, who.policies)) == {"a-1", "c-1"}
    assert placed(seeds.strictly(seeds.STRICT["fifo"], who.policies, world)) == {"a-1"}
    after = a_world([first.but(**PLACED), large, small], [node])
    assert placed(seeds.strictly(seeds.STRICT["fifo"], who.policies, after)) == set()


def test_an_interval_holds_its_middle_and_is_the_same_every_time() -> None:
    import intervals

    pairs = [(100.0, 80.0), (200.0, 190.0), (150.0, 90.0)]
    gain = intervals.gain(pairs, -1)
    assert gain == intervals.gain(pairs, -1)
    assert gain.middle == pytest.approx(90 / 450)
    assert gain.low <= gain.middle <= gain.high
    assert intervals.gain([(5.0, 5.0)] * 4) == intervals.Interval(0.0, 0.0, 0.0)


def a_result(seeds: object, contestant: str, seed: int, good: float) -> object:
    return seeds.Result(  # type: ignore[attr-defined]
        contestant, seed, 100 / good + seed, 0.5 * good, 50 / good + seed, 1.0, 0, 12
    )


def test_a_win_needs_all_three_against_both_orders() -> None:
    import seeds

    def results(whale: float, rival: float) -> list[seeds.Result]:
        good = dict.fromkeys(seeds.CONTESTANTS, rival) | {"whale": whale}
        found = [a_result(seeds, name, seed, good[name]) for name in good for seed in range(5)]
        return [each for each in found if isinstance(each, seeds.Result)]

    assert seeds.is_won(results(1.5, 1.0))
    assert not seeds.is_won(results(1.0, 1.0))
    worse_wait = [
        replace(each, longest_wait_s=1000.0) if each.contestant == "whale" else each
        for each in results(1.5, 1.0)
    ]
    assert not seeds.is_won(worse_wait)


def test_the_comparison_is_printed_and_drawn(tmp_path: Path) -> None:
    import seeds
    import seeds_picture

    results = [seeds.result(name, seed, 2.0) for name in seeds.CONTESTANTS for seed in range(2)]
    said = seeds.as_text(results, 2.0)
    assert all(name in said for name in seeds.CONTESTANTS)
    assert "12 jobs on 4 nodes with 6 GPUs, 2 seeds" in said
    seeds_picture.draw(results, tmp_path / "seeds.png")
    assert 5_000 < (tmp_path / "seeds.png").stat().st_size < 200_000
