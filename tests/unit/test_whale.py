import math
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np
import pytest

from cloudwhale.spi.amounts import least, most, part, share
from cloudwhale.spi.policy import Room, Score
from cloudwhale_policies.fits import BestFit, DotProduct, Fgd, FirstFit, WorstFit
from cloudwhale_policies.whale import Whale, strand

ALL: tuple[Score, ...] = (Whale(), BestFit(), WorstFit(), FirstFit(), DotProduct(), Fgd())
PLAIN = Room(
    wants_cpu=1.0, wants_memory_gib=2.0, wants_disk_gib=0.0, wants_gpus=0.5, wants_gpu_gib=12.0,
    wants_disk_io_mb_s=0.0, wants_network_mb_s=0.0, cpu=8.0, memory_gib=32.0, disk_gib=100.0,
    gpus=2.0, free_cpu=6.0, free_memory_gib=20.0, free_disk_gib=90.0, free_gpus=1.5,
    gpu_gib=48.0, free_gpu_gib=36.0, free_disk_io_mb_s=math.inf, free_network_mb_s=math.inf,
    done_s=100.0, soonest_s=80.0, run_s=90.0, busy_s=45.0, needs=2.0, found=1.0,
    throughput=0.95, sm=0.2, lost_gpus=0.5,
)  # fmt: skip


def scores(room: Room) -> dict[str, float]:
    return dict(zip(Whale.weights, Whale().score(room), strict=True))


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
def test_weights_sum_to_one_and_each_score_lies_between_nothing_and_all(policy: Score) -> None:
    assert sum(policy.weights.values()) == pytest.approx(1.0)
    full = replace(PLAIN, free_disk_io_mb_s=-5.0, wants_disk_io_mb_s=10.0, lost_gpus=9.0)
    idle = replace(PLAIN, busy_s=0.0, gpus=0.0, wants_gpus=0.0, free_gpus=0.0, wants_cpu=0.0)
    for room in (PLAIN, full, idle):
        row = policy.score(room)
        assert len(row) == len(policy.weights)
        assert all(0.0 <= one <= 1.0 for one in row)


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
def test_many_places_score_what_each_of_them_scores_alone(policy: Score) -> None:
    others = [
        PLAIN,
        replace(PLAIN, busy_s=0.0, needs=0.0),
        replace(PLAIN, gpus=0.0, wants_gpus=0.0),
    ]
    columns = {f.name: np.array([getattr(r, f.name) for r in others]) for f in fields(Room)}
    together = policy.score(Room(**cast(dict[str, Any], columns)))
    for number, room in enumerate(others):
        at = [float(np.broadcast_to(one, 3)[number]) for one in together]
        assert at == pytest.approx(policy.score(room))


def test_a_place_that_spoils_nothing_beyond_the_job_scores_a_half() -> None:
    assert strand(replace(PLAIN, lost_gpus=PLAIN.wants_gpus)) == 0.5
    assert strand(replace(PLAIN, lost_gpus=0.0)) == 1.0
    assert strand(replace(PLAIN, lost_gpus=2.0)) < 0.5


def test_finish_is_the_best_time_over_the_time_here() -> None:
    assert scores(PLAIN)["finish"] == 0.8


def test_a_job_that_ends_before_its_neighbours_keeps_no_machine_busy() -> None:
    assert scores(PLAIN)["release"] == 0.5
    assert scores(replace(PLAIN, busy_s=900.0))["release"] == 1.0
    assert scores(replace(PLAIN, busy_s=0.0))["release"] == 0.0


def test_who_likes_nothing_is_at_home_everywhere() -> None:
    assert scores(PLAIN)["affinity"] == 0.5
    assert scores(replace(PLAIN, needs=0.0, found=0.0))["affinity"] == 1.0


def test_each_kind_of_noise_lowers_quiet() -> None:
    quiet = scores(PLAIN)["quiet"]
    for noise in (
        {"throughput": 0.5},
        {"sm": 1.0},
        {"wants_disk_io_mb_s": 100.0, "free_disk_io_mb_s": 30.0},
        {"wants_network_mb_s": 100.0, "free_network_mb_s": 30.0},
    ):
        assert scores(replace(PLAIN, **noise))["quiet"] < quiet


def test_amounts_are_numbers_or_arrays() -> None:
    assert (least(1.0, 2.0), most(1.0, 2.0), share(3.0), part(1.0, 4.0), part(1.0, 0.0)) == (
        1.0, 2.0, 1.0, 0.25, 1.0,
    )  # fmt: skip
    some, whole = cast(float, np.array([1.0, 5.0, 1.0])), cast(float, np.array([4.0, 4.0, 0.0]))
    assert np.array_equal(part(some, whole), [0.25, 1.0, 1.0])
