"""What receipts, `ps` and `explain` tell of machines that were rented, and that have gone back."""

from decimal import Decimal

import pytest
from clouding import a_cloudy_stage, settles
from staging import jobs_of

from cloudwhale.cli.books import books_of
from cloudwhale.model import event as e
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import MicroUsd, usd
from cloudwhale.reporting.receipt import job_keys, job_receipt, run_receipt
from cloudwhale.reporting.sheet import plain_lines
from cloudwhale.reporting.tables import jobs_sheet, receipt_sheet
from cloudwhale.simulation.stage import Stage


@pytest.fixture(scope="module")
def stage() -> Stage:
    """Play a job on a rented machine to its end, the machine's return included."""
    made = a_cloudy_stage()
    made.raise_controller()
    assert settles(made)
    return made


def test_a_job_whose_machine_went_back_still_says_where_it_ran_and_for_how_much(
    stage: Stage,
) -> None:
    (job,) = jobs_of(stage).values()
    store = stage.scenery.store
    books = books_of(store, [job], "run-1")
    (rental,) = books.rentals.values()
    assert rental.state is RentalState.RETURNED
    keys = job_keys(job_receipt(job, 1e6, books))
    said = {key: keys[key] for key in ("provider", "market", "region", "zone", "price_usd_h")}
    assert said == {
        "provider": "cloud", "market": "on-demand", "region": "r", "zone": "r-a",
        "price_usd_h": Decimal("3.60"),
    }  # fmt: skip
    assert keys["spent_usd"] > 0


def test_ps_and_explain_say_what_a_job_has_cost_as_its_receipt_does(stage: Stage) -> None:
    jobs, store = list(jobs_of(stage).values()), stage.scenery.store
    assert books_of(store, jobs).spent == books_of(store, jobs, "run-1").spent


def test_the_receipt_of_a_run_names_each_machine_with_what_was_paid_there(stage: Stage) -> None:
    store = stage.scenery.store
    jobs = list(jobs_of(stage).values())
    run = store.run("run-1")
    assert run is not None
    receipt = run_receipt(run, jobs, 1e6, books_of(store, jobs, run.id))
    lines = plain_lines(receipt_sheet(receipt))
    (line,) = [line for line in lines if "3.60 USD an hour" in line]
    assert "cloud big on-demand in r-a" in line
    assert line.endswith(f"for {receipt.spent_usd:.2f} USD")
    assert "of what was reserved were not needed" in lines[-1]


def test_the_machines_of_a_receipt_add_up_to_what_the_run_has_spent(stage: Stage) -> None:
    store = stage.scenery.store
    jobs = list(jobs_of(stage).values())
    run = store.run("run-1")
    assert run is not None
    receipt = run_receipt(run, jobs, 1e6, books_of(store, jobs, run.id))
    (machine,) = receipt.machines
    assert machine.state == "returned" and machine.started_at is not None
    assert machine.spent_usd == receipt.spent_usd == sum(machine.jobs.values())
    assert receipt.reserved_usd == 0
    set_aside = [
        told.event.amount
        for told in store.events(machine.id)
        if isinstance(told.event, e.Reserved)
    ]  # fmt: skip
    assert receipt.spent_usd + receipt.released_usd == usd(MicroUsd(sum(set_aside)))
    assert receipt.saved_usd == 0  # it was on demand
    # It was rented by the policy that gives each job a machine of its own.
    assert receipt.one_each_usd is None or receipt.one_each_usd >= receipt.spent_usd


def test_a_list_of_jobs_says_what_kind_of_machine_each_is_on(stage: Stage) -> None:
    jobs = list(jobs_of(stage).values())
    rentals = books_of(stage.scenery.store, jobs).rentals
    assert "cloud big on-demand, r-a" in plain_lines(jobs_sheet(jobs, 1e6, (), rentals))[1]
    assert "cloud" not in plain_lines(jobs_sheet(jobs, 1e6))[1]
