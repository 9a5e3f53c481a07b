import math
from functools import cache

import numpy as np
import pytest

from cloudwhale.planning.lateness import quantile_each_s, quantile_s
from cloudwhale.planning.spot import (
    HOUR_S,
    Risk,
    expected_each_s,
    expected_s,
    expected_usd,
    interruptions,
    interval_s,
    plain_s,
    useful_share,
)

RISKS = (
    Risk(0.02, every_s=600.0, save_s=20.0, restart_s=400.0),
    Risk(0.3, every_s=1500.0, save_s=60.0, restart_s=300.0),
    Risk(1.0, every_s=1800.0, save_s=120.0, restart_s=900.0),
    Risk(0.1, restart_s=240.0),
    Risk(3.0, every_s=3000.0, save_s=90.0, restart_s=1200.0),
)
SAMPLES = 4000


@cache
def drawn_s(work_s: float, risk: Risk, seed: int) -> list[float]:
    """Return the times of played lives: machines one after another, saves, restarts."""
    drawn = np.random.default_rng(seed)
    mean_s = HOUR_S / (risk.hazard_per_h or 0.0)
    return [_one_s(work_s, risk, mean_s, drawn) for _ in range(SAMPLES)]


def _one_s(work_s: float, risk: Risk, mean_s: float, drawn: np.random.Generator) -> float:
    now = saved = ready_at = 0.0
    dies_at = drawn.exponential(mean_s)
    while True:
        chunk = min(work_s - saved, risk.every_s or work_s)
        is_last = saved + chunk >= work_s
        ends_at = max(now, ready_at) + chunk + (0.0 if is_last else risk.save_s)
        if ends_at <= dies_at:
            now, saved = ends_at, saved + chunk
            if is_last:
                return now
            continue
        now = dies_at
        dies_at = now + drawn.exponential(mean_s)
        ready_at = now + risk.restart_s


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("hours", [0.4, 2.0, 6.5])
def test_the_expected_time_is_that_of_many_lives(risk: Risk, hours: float) -> None:
    times = np.array(drawn_s(hours * HOUR_S, risk, seed=7))
    error_s = 4.0 * times.std() / math.sqrt(SAMPLES)  # of 15 trials, one in 1,000 falls outside
    assert expected_s(hours * HOUR_S, risk) == pytest.approx(times.mean(), abs=error_s)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_no_quantile_is_too_early(risk: Risk, q: float) -> None:
    for seed, hours in enumerate((0.4, 2.0, 6.5, 12.0)):
        times = np.array(drawn_s(hours * HOUR_S, risk, seed))
        in_time = float((times <= quantile_s(hours * HOUR_S, risk, q) * (1 + 1e-9)).mean())
        assert in_time >= q - 4.0 * math.sqrt(q * (1 - q) / SAMPLES)


@pytest.mark.parametrize("risk", RISKS[:3])  # elsewhere a stretch outlasts most machines
@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_where_work_is_saved_in_time_no_quantile_is_much_too_late(risk: Risk, q: float) -> None:
    for seed, hours in enumerate((0.4, 2.0, 6.5, 12.0)):
        plain = plain_s(hours * HOUR_S, risk)
        later_s = float(np.quantile(drawn_s(hours * HOUR_S, risk, seed), q)) - plain
        asked_later_s = quantile_s(hours * HOUR_S, risk, q) - plain
        assert asked_later_s <= 1.5 * later_s + 3 * (risk.segment_s() + risk.restart_s)


def test_what_nothing_interrupts_takes_its_plain_time() -> None:
    for risk in (Risk(), Risk(0.0, every_s=600.0, save_s=30.0, restart_s=99.0)):
        assert expected_s(7200.0, risk) == plain_s(7200.0, risk) == 7200.0
        assert quantile_s(7200.0, risk, 0.99) == 7200.0
        assert interruptions(7200.0, risk) == 0.0
        assert useful_share(7200.0, risk) == 1.0


def test_many_at_once_are_each_alone() -> None:
    works = np.array([0.0, 30.0, 600.0, 601.0, 7200.0, 90_000.0])
    for risk in (*RISKS, Risk()):
        assert expected_each_s(works, risk) == pytest.approx(
            [expected_s(float(work), risk) for work in works]
        )
        assert quantile_each_s(works, risk, 0.9) == pytest.approx(
            [quantile_s(float(work), risk, 0.9) for work in works]
        )


def test_more_risk_is_never_faster() -> None:
    works = np.linspace(60.0, 40_000.0, 50)
    before = works
    for hazard in (0.001, 0.01, 0.1, 1.0, 4.0):
        risk = Risk(hazard, every_s=900.0, save_s=15.0, restart_s=300.0)
        now = expected_each_s(works, risk)
        assert (now >= before).all()
        before = now
        late = [quantile_each_s(works, risk, q) for q in (0.5, 0.8, 0.9, 0.99)]
        assert all((a <= b).all() for a, b in zip(late, late[1:], strict=False))
        assert all((one >= works).all() for one in late)


def test_without_saves_long_work_is_never_done_and_no_number_overflows() -> None:
    risk = Risk(50.0, restart_s=3600.0)
    assert expected_s(100 * HOUR_S, risk) == math.inf
    assert expected_each_s(np.array([100 * HOUR_S]), risk)[0] == math.inf
    assert quantile_s(100 * HOUR_S, risk, 0.9) > 1e6 * HOUR_S
    assert useful_share(100 * HOUR_S, risk) == 0.0


def test_the_interval_is_the_best_one_and_near_youngs() -> None:
    for hazard, save_s in ((0.02, 20.0), (0.3, 60.0), (3.0, 200.0), (20.0, 600.0)):
        best_s = interval_s(hazard, save_s)

        def each(every_s: float, hazard: float = hazard, save_s: float = save_s) -> float:
            stretch_s = every_s + save_s
            return math.expm1(hazard / HOUR_S * stretch_s) / every_s

        assert each(best_s) <= min(each(best_s * part) for part in (0.9, 0.98, 1.02, 1.1))
    young_s = math.sqrt(2 * 20.0 * HOUR_S / 0.02)
    assert interval_s(0.02, 20.0) == pytest.approx(young_s, rel=0.02)
    assert interval_s(0.02, 0.0) == 60.0
    assert interval_s(None, 20.0) == interval_s(0.0, 20.0) == math.inf


def test_a_gang_stops_when_any_of_its_machines_goes() -> None:
    one = Risk(0.1, every_s=600.0, save_s=10.0, restart_s=300.0)
    assert one.of_gang(4).hazard_per_h == pytest.approx(0.4)
    assert Risk().of_gang(4).hazard_per_h is None


def test_money_and_interruptions_follow_from_the_time() -> None:
    risk = RISKS[1]
    whole_s = expected_s(6 * HOUR_S, risk)
    assert expected_usd(6 * HOUR_S, risk, 2.0) == pytest.approx(2.0 * whole_s / HOUR_S)
    assert interruptions(6 * HOUR_S, risk) == pytest.approx(0.3 * whole_s / HOUR_S)


def test_a_quantile_lies_between_0_and_1() -> None:
    with pytest.raises(ValueError, match="no quantile"):
        quantile_each_s(np.array([60.0]), RISKS[0], 1.0)
