"""A machine's timetable: side by side while all fits, one after another where it does not."""

import math

from rental_checks import a_demand, a_kind, a_problem

from cloudwhale.spi.renting import Demand, Kind
from cloudwhale_policies.renting.arrays import Tables
from cloudwhale_policies.renting.machine import Machine, Yard

HOUR = 3600.0


def packed(demands: list[Demand], kind: Kind | None = None, **fields: object) -> Machine:
    """Return one machine with all of some jobs of an hour each, in their order."""
    problem = a_problem(demands, [kind or a_kind(boot_s=0.0)], HOUR, **fields)
    tables = Tables(problem)
    machine = Yard(tables).packed(0, 1, tables.lot_of)
    assert machine is not None
    return machine


def test_halves_of_a_device_run_side_by_side() -> None:
    assert packed([a_demand(share=0.5), a_demand(share=0.5)]).starts == (0.0, 0.0)


def test_three_thirds_fill_a_device_and_the_fourth_waits() -> None:
    assert packed([a_demand(share=1 / 3)] * 4).starts == (0.0, 0.0, 0.0, HOUR)


def test_memory_of_a_device_keeps_two_halves_apart() -> None:
    hungry = a_demand(share=0.5, device_gib=13.0)
    assert packed([hungry, hungry]).starts == (0.0, HOUR)


def test_cpu_keeps_jobs_apart_that_the_devices_would_hold() -> None:
    assert packed([a_demand(share=0.25, cpu=5.0)] * 2).starts == (0.0, HOUR)


def test_a_job_without_devices_runs_beside_one_that_has_them_all() -> None:
    assert packed([a_demand(1), a_demand(0)]).starts == (0.0, 0.0)


def test_two_devices_must_be_free_at_once_and_all_the_time() -> None:
    machine = packed([a_demand(1), a_demand(2), a_demand(1)], a_kind(boot_s=0.0, devices=2))
    assert machine.starts == (0.0, HOUR, 0.0)
    assert [mask.bit_count() for mask in machine.masks] == [1, 2, 1]


def test_a_share_goes_to_a_device_that_is_shared_already() -> None:
    kind = a_kind(boot_s=0.0, devices=2)
    machine = packed([a_demand(share=0.5), a_demand(share=0.5), a_demand(1)], kind)
    assert machine.masks[0] == machine.masks[1] != machine.masks[2]
    assert machine.starts == (0.0, 0.0, 0.0)


def test_nothing_starts_before_the_boot_has_ended() -> None:
    assert packed([a_demand()], a_kind(boot_s=90.0)).starts == (90.0,)


def test_a_job_that_would_end_too_late_finds_no_start() -> None:
    problem = a_problem([a_demand()] * 2, [a_kind(boot_s=0.0)], HOUR, done_by_s=[math.inf, HOUR])
    tables = Tables(problem)
    yard = Yard(tables)
    first = yard.packed(0, 1, [0])
    assert first is not None
    assert yard.earliest(first, 1) is None
    assert yard.earliest(yard.empty(0), 1) == 0.0


def test_a_start_right_at_boot_is_always_in_time() -> None:
    assert packed([a_demand()], a_kind(boot_s=90.0), start_by_s=[10.0]).starts == (90.0,)


def test_a_machine_costs_from_its_launch_until_its_last_job_has_ended() -> None:
    machine = packed([a_demand()] * 2, a_kind(boot_s=HOUR, usd_h=2.0))
    assert machine.usd == 6.0


def test_alike_jobs_are_one_lot() -> None:
    problem = a_problem([a_demand(), a_demand(), a_demand(0)], [a_kind()], HOUR)
    assert Tables(problem).members == [[0, 1], [2]]
