"""Receipts at any moment of whole lives: parts add up to machines, machines and jobs to the run."""

from collections.abc import Iterator
from decimal import Decimal
from functools import cache

import pytest
from whole_worlds import Payers, a_whole_world

from cloudwhale.cli.books import books_of
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.receipt import Parts, RunReceipt
from cloudwhale.reporting.receipt import run_receipt
from cloudwhale.simulation.playing import told
from cloudwhale.spi.store import JobQuery

SEEDS = range(309, 315)
MOMENTS = 5
ZERO = Decimal(0)


@cache
def played(seed: int) -> Payers:
    play = a_whole_world(seed, "greedy", jobs_most=5)
    play.play()
    return play


def receipts(seed: int) -> Iterator[tuple[bool, RunReceipt]]:
    """Yield receipts of all runs at some moments of a life, and at its end; whether it is that."""
    play = played(seed)
    stories = [one.event for one in told(play.store)]
    store = MemoryStore()
    for number in range(1, MOMENTS + 1):
        begin, end = store.version(), number * len(stories) // MOMENTS
        # What is told at one moment is stored together: a machine is charged and back, or neither.
        while 0 < end < len(stories) and stories[end].at == stories[end - 1].at:
            end += 1
        store.append(stories[begin:end])
        now = play.now if number == MOMENTS else stories[end - 1].at
        for name in play.meddling.runs:
            run = store.run(name)
            if run is not None:
                jobs = store.jobs(JobQuery(run=name))
                books = books_of(store, jobs, name, now)
                yield number == MOMENTS, run_receipt(run, jobs, now, books)


def bought(parts: Parts) -> Decimal:
    return parts.machine_usd + parts.disk_usd + parts.address_usd + parts.egress_usd


def meant(parts: Parts) -> Decimal:
    return parts.useful_usd + parts.egress_usd + wasted(parts)


def wasted(parts: Parts) -> Decimal:
    lost = parts.wasted_lost_work_usd + parts.wasted_failed_attempts_usd
    return lost + parts.wasted_boot_usd + parts.wasted_idle_usd + parts.wasted_over_asking_usd


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_add_up_to_machines_and_machines_to_the_run(seed: int) -> None:
    for is_over, receipt in receipts(seed):
        for machine in receipt.machines:
            assert bought(machine.parts) == meant(machine.parts) == machine.spent_usd
            assert sum((line.spent_usd for line in machine.lines), ZERO) == machine.spent_usd
            assert machine.parts.egress_usd == machine.egress_usd
        whole = sum((machine.spent_usd for machine in receipt.machines), ZERO)
        assert receipt.spent_usd + receipt.running_usd == whole
        assert bought(receipt.parts) == meant(receipt.parts) == receipt.spent_usd
        assert receipt.wasted_usd == wasted(receipt.parts)
        assert not (is_over and receipt.running_usd)


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_add_up_to_the_run_and_so_do_clouds(seed: int) -> None:
    for _, receipt in receipts(seed):
        for job in receipt.jobs:
            assert bought(job.parts) == meant(job.parts) == job.spent_usd
            assert job.wasted_usd == wasted(job.parts)
        assert sum((job.spent_usd for job in receipt.jobs), ZERO) == receipt.spent_usd
        clouds = sum((one.spent_usd for one in receipt.providers), ZERO)
        assert clouds == receipt.spent_usd + receipt.running_usd


def test_some_of_these_lives_are_seen_while_machines_run_and_some_have_brought_data() -> None:
    every = [receipt for seed in SEEDS for _, receipt in receipts(seed)]
    assert any(receipt.running_usd for receipt in every)
    assert any(receipt.wasted_usd for receipt in every)
    assert any(isinstance(one.event, e.Charged) for one in told(played(SEEDS[0]).store))
