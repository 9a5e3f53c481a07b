"""Receipts, ledger, the cloud's own meter and the report say the same of a night, exactly."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from money_nights import MoneyNight, a_night
from whole_worlds import a_whole_world

from cloudwhale.cli.books import books_of
from cloudwhale.model import event as e
from cloudwhale.model.cost import CostLine, CostSum, Dimension
from cloudwhale.model.units import MicroUsd, usd
from cloudwhale.planning import costing
from cloudwhale.planning.payers import project_and_month
from cloudwhale.reporting.receipt import run_receipt
from cloudwhale.simulation.playing import told
from cloudwhale.spi.store import CostQuery, JobQuery

NIGHTS = 200
AT_ONCE = 25

EACH: Sequence[tuple[Dimension, ...]] = (
    (), ("project",), ("day",), ("job",), ("run",), ("provider", "market"), ("user", "gpu"),
)  # fmt: skip


@pytest.mark.parametrize("first", range(0, NIGHTS, AT_ONCE))
def test_of_any_night_receipts_ledger_meter_and_report_are_equal(first: int) -> None:
    paid, seen = 0, set[str]()
    for seed in range(first, first + AT_ONCE):
        play = a_night(seed)
        play.play()
        lines = list(play.store.cost_lines(CostQuery()))
        running = still_running(play)
        adds_up([*lines, *running])
        is_the_ledger(play, lines)
        is_the_meter(play, [*lines, *running])
        is_the_report(play, lines)
        is_on_receipts(play, [*lines, *running])
        seen.update(what_happened(play, lines, running))
        paid += bool(lines)
    assert paid > AT_ONCE // 2 and seen >= OFTEN


OFTEN = {"several clouds", "gangs", "taken", "by the hour", "addresses"}
"""What some of any few nights have."""
SELDOM = {
    "egress": (55, 71, 73, 94), "several projects on a machine": (34, 35, 63, 69, 84, 95),
    "running": (19, 21, 33, 39, 65, 77),
}  # fmt: skip
"""What one in ten has, or fewer; with some that have it."""


@pytest.mark.parametrize("what", sorted(SELDOM))
def test_some_nights_have_what_few_have(what: str) -> None:
    assert any(what in played(seed) for seed in SELDOM[what])


def played(seed: int) -> set[str]:
    play = a_night(seed)
    play.play()
    return set(what_happened(play, list(play.store.cost_lines(CostQuery())), still_running(play)))


def what_happened(
    play: MoneyNight, lines: Sequence[CostLine], running: Sequence[CostLine]
) -> Iterable[str]:
    """Yield what a night had of what bills are made of."""
    projects: dict[str, set[str]] = {}
    for line in lines:
        projects.setdefault(line.rental, set()).add(line.project)
    ever = play.rentals_ever()
    had = {
        "running": bool(running),
        "egress": any(line.items.egress for line in lines),
        "several projects on a machine": any(len(each) > 1 for each in projects.values()),
        "several clouds": len({line.provider for line in lines}) > 1,
        "gangs": any(one.gang_size > 1 and one.spent for one in ever),
        "taken": any(one.interrupted_at is not None for one in ever),
        "by the hour": any(one.taken and one.taken.billing_step_s > 1000 for one in ever),
        "addresses": any(line.items.address for line in lines),
    }
    return (name for name, is_so in had.items() if is_so)


def test_a_world_in_which_machines_mix_models_of_gpu_is_played_to_its_end() -> None:
    """One offer has two, of which a job wants two that are alike: it is rented another."""
    a_whole_world(68, "greedy", jobs_most=4).play()


def still_running(play: MoneyNight) -> list[CostLine]:
    """Return the lines of machines that are not back when the play ends: some need days."""
    world = play.store.world(play.now)
    return [line for one in world.rentals.values() for line in costing.so_far(one, world)]


def adds_up(lines: Iterable[CostLine]) -> None:
    for line in lines:
        assert sum(dict(line.items).values()) == line.spent, line
        assert sum(dict(line.purposes).values()) == line.spent, line
        assert min([*dict(line.items).values(), *dict(line.purposes).values()]) >= 0, line
        assert line.purposes.moved == line.items.egress


def is_the_ledger(play: MoneyNight, lines: Sequence[CostLine]) -> None:
    charged = [one.event for one in told(play.store) if isinstance(one.event, e.Charged)]
    assert len(charged) == len(lines)
    families = {line.job: line.family for line in lines}
    for one in charged:
        assert one.line is not None
        assert one.line.but(family=families[one.job]) in lines and families[one.job] == one.job
        assert (one.rental, one.job, one.payer, one.project, one.amount) == (
            one.line.rental, one.line.job, one.line.run, one.line.project, one.line.spent
        )  # fmt: skip
    by_run, by_project = Counter[str](), Counter[str]()
    for line in lines:
        by_run[line.run] += line.spent
        by_project[line.project] += line.spent
    for account in play.store.accounts():
        whose = project_and_month(account.payer)
        if whose is None:
            assert account.spent == by_run[account.payer], account
        else:
            assert account.spent == by_project[whose[0]], account


def is_the_meter(play: MoneyNight, lines: Sequence[CostLine]) -> None:
    """Compare machine by machine with what clouds bill, and egress with what has left them."""
    rentals = play.store.world(play.now).rentals
    by_machine = Counter[str]()
    for line in lines:
        by_machine[line.rental] += line.spent - line.items.egress
    for cloud in play.clouds.values():
        for name, machine in cloud.hired.items():
            known = rentals.get(name)
            if known is not None and known.ended_at is None:
                # Nobody has seen its end yet: then it is the bill of one that runs.
                machine = replace(machine, ended_at=None)
            assert by_machine.pop(name, 0) == machine.bill(play.now), name
    assert not any(by_machine.values()), "a machine that was never there is paid for"
    assert sum(line.items.egress for line in lines) == play.egress()


def is_on_receipts(play: MoneyNight, lines: Sequence[CostLine]) -> None:
    for name in play.meddling.runs:
        run = play.store.run(name)
        assert run is not None
        jobs = play.store.jobs(JobQuery(run=name))
        books = books_of(play.store, jobs, run=name)
        receipt = run_receipt(run, jobs, play.now, books)
        mine = [line for line in lines if line.run == name]
        charged = [line for line in mine if not line.is_running]
        assert receipt.spent_usd == dollars(charged)
        for machine in receipt.machines:
            assert machine.spent_usd == dollars(one for one in mine if one.rental == machine.id)
        for job in receipt.jobs:
            assert job.spent_usd == dollars(one for one in charged if one.job == job.id)


def dollars(lines: Iterable[CostLine]) -> Decimal:
    return usd(MicroUsd(sum(line.spent for line in lines)))


def is_the_report(play: MoneyNight, lines: Sequence[CostLine]) -> None:
    whole = MicroUsd(sum(line.spent for line in lines))
    for by in EACH:
        found = play.store.costs(CostQuery(by=by, zone="Asia/Kolkata"))
        assert sum(one.spent for one in found) == whole == of_parts(found, "items")
        assert of_parts(found, "purposes") == whole
        assert sum(one.lines for one in found) == len(lines)


def of_parts(found: Iterable[CostSum], kind: str) -> int:
    return sum(sum(dict(getattr(one, kind)).values()) for one in found)
