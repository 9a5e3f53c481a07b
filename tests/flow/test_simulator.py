"""Whole lives on the simulator: what fails, what is rented, and that a seed repeats to the byte."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from clouding import RENTING, an_offer
from simulating import a_chosen, a_machine, an_arrival, nothing_runs_twice

from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.job import GpuRequest, JobState
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation import faults as f
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.engine import Engine, Progress
from cloudwhale.simulation.playing import Offered, Played, Setting, play
from cloudwhale.spi.errors import SpecError

TWO = [a_machine("n1"), a_machine("n2")]


def the_play(*faults: f.Fault, work_s: float = 3000.0, jobs: int = 2) -> Played:
    arrivals = [an_arrival(n, f"j{n}", work_s) for n in range(jobs)]
    return play(Setting(TWO, arrivals, faults=faults), a_chosen())


def kinds_of(played: Played, subject: str) -> list[type[e.Happened]]:
    return [type(told.event) for told in played.store.events(subject)]


def test_a_lost_machine_costs_its_job_no_more_than_its_lease_and_what_it_had_not_saved() -> None:
    played = the_play(f.MachineLost("n1", at=1000.0), jobs=1, work_s=2000.0)
    job = played.jobs["j0"].job
    assert job.state is JobState.COMPLETED and job.attempt == 2
    assert [stay.placement.node for stay in played.stays] == ["n1", "n2"]
    assert kinds_of(played, "n1").count(e.NodeLost) == 1
    # 600 s of silence, 30 s more until it is out, a minute between heartbeats; start, restore
    assert 2000 + 630 - 60 <= (played.jobs["j0"].completion_s or 0.0) <= 2000 + 630 + 60 + 32 + 20


def test_a_machine_that_comes_back_takes_jobs_again() -> None:
    played = the_play(f.MachineLost("n1", at=100.0, for_s=1000.0), jobs=4)
    assert all(one.job.state is JobState.COMPLETED for one in played.jobs.values())
    assert any(s.placement.node == "n1" and s.since > 1100.0 for s in played.stays)


def test_a_killed_agent_is_started_again_and_its_job_loses_nothing() -> None:
    played = the_play(f.AgentKilled("n1", at=500.0), jobs=1)
    assert played.jobs["j0"].job.attempt == 1
    assert played.jobs["j0"].completion_s == 3001.0


def test_a_controller_that_was_away_reads_afterwards_what_ended_meanwhile() -> None:
    played = the_play(f.ControllerRestarted(at=2900.0, for_s=600.0), jobs=1)
    assert played.jobs["j0"].completion_s == 3001.0, "as its agent measured it"
    assert played.store.events("j0")[-1].event.at == 3500.0


def test_a_store_that_fails_loses_nothing() -> None:
    played = the_play(f.StoreFails(at=2999.0, for_s=100.0), jobs=1)
    assert played.jobs["j0"].completion_s == 3001.0
    assert kinds_of(played, "j0").count(e.Finished) == 1


def test_a_slow_store_makes_every_turn_later() -> None:
    played = the_play(f.StoreSlow(at=0.0, for_s=5000.0, by_s=7.0), jobs=1)
    assert played.jobs["j0"].job.started_at is not None
    assert played.jobs["j0"].job.started_at >= 8.0


def test_a_fault_of_a_machine_that_there_is_not_is_refused() -> None:
    with pytest.raises(SpecError, match="no machine 'n7'"):
        the_play(f.AgentKilled("n7", at=1.0))


def test_wrong_estimates_change_what_is_said_and_not_what_is_true() -> None:
    played = the_play(f.WrongEstimates(by=3.0, seed=1))
    jobs = [one.job for one in played.jobs.values()]
    assert all(1000.0 <= (job.spec.duration_s or 0.0) <= 9000.0 for job in jobs)
    assert len({job.spec.duration_s for job in jobs}) == 2
    assert [one.completion_s for one in played.jobs.values()] == [3001.0, 3001.0]


def renting(*faults: f.Fault) -> Engine:
    arrivals = [
        replace(one, spec=one.spec.but(resources=one.spec.resources.but(cpu=8.0, gpu=GpuRequest())))
        for one in (an_arrival(n, f"j{n}", 1200.0) for n in range(3))
    ]
    chosen = Chosen(RENTING, order="priority", score="best-fit", wait="never", rent="one-each")
    engine = Engine(
        Setting(
            [a_machine("n1", gpus=0)], arrivals, clouds=[Offered("cloud", [Shelf(an_offer())])],
            budget=micro_usd(20), faults=faults,
        ),
        chosen,
    )  # fmt: skip
    engine.play()
    return engine


def test_who_finds_no_place_here_runs_on_a_rented_machine_and_its_bill_is_paid() -> None:
    engine = renting()
    cloud = engine.clouds["cloud"]
    paid = sum(
        one.event.amount
        for one in engine.store.since(0, 10_000)
        if isinstance(one.event, e.Charged)
    )
    assert len(cloud.hired) == 2 and cloud.running == 0
    assert paid == cloud.bill() > 0
    nothing_runs_twice(engine)


def test_a_machine_that_is_taken_back_costs_time_and_no_job() -> None:
    engine = renting(f.Preempted(per_h=4.0, notice_s=60.0))
    assert len(engine.clouds["cloud"].hired) > 2
    world = engine.store.world(engine.now)
    assert not world.jobs and not world.rentals
    nothing_runs_twice(engine)


def test_capacity_that_comes_late_is_waited_for() -> None:
    engine = renting(f.NoCapacity(at=0.0, for_s=600.0))
    launched = [one.launched_at for one in engine.clouds["cloud"].hired.values()]
    assert all(at >= 600.0 for at in launched)


def busy(seed: int) -> Setting:
    arrivals = [
        an_arrival(
            n * 37.0, f"j{n}", 200.0 + 40 * n, share=(0.5, 1.0)[n % 2], priority=20 * (n % 5)
        )
        for n in range(20)
    ]
    faults = f.random_faults(seed, ["n1", "n2"], 3000.0)
    return Setting(TWO, arrivals, faults=faults)


def test_a_play_repeats_to_the_byte_and_another_seed_is_another_play() -> None:
    first = play(busy(1), a_chosen()).digest
    assert play(busy(1), a_chosen()).digest == first
    assert play(busy(2), a_chosen()).digest != first


def test_a_play_repeats_in_another_process_with_other_hashes() -> None:
    here = Path(__file__)
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]; import test_simulator as t; "
        "print(t.play(t.busy(1), t.a_chosen()).digest)"
    )
    command = [sys.executable, "-c", code, str(here.parent), str(here.parent.parent)]
    found = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert found == {play(busy(1), a_chosen()).digest}


def test_progress_is_told_until_all_have_ended() -> None:
    told: list[Progress] = []
    play(
        Setting(TWO, [an_arrival(n, f"j{n}", 50.0) for n in range(5)]),
        a_chosen(),
        None,
        told.append,
    )
    assert [one.ended for one in told] == sorted({one.ended for one in told})
    assert (told[-1].ended, told[-1].arrived, told[-1].jobs) == (5, 5, 5)


def test_a_machine_that_comes_back_does_not_begin_what_runs_elsewhere_by_then() -> None:
    arrivals = [an_arrival(0.0, "j0", 3000.0)]
    faults = [f.MachineLost("n1", at=0.5, for_s=1500.0)]
    engine = Engine(Setting(TWO, arrivals, faults=faults), a_chosen())
    engine.play()
    assert len(engine.machines["n1"].begun) == 0
    nothing_runs_twice(engine)
