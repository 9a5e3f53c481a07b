"""Machines that are not back are in a report as of now, unless they are not asked for."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cost_lines import a_line
from sqlalchemy import create_engine, insert

from cloudwhale.cli.cost_asked import Wanted
from cloudwhale.cli.costing import cost
from cloudwhale.clock import SystemClock
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.control.store import tables as t
from cloudwhale.control.store.costs import row_of
from cloudwhale.model.units import usd

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
HOUR_S = 3600.0


@pytest.fixture
def rented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which two machines with two jobs run since an hour."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import machines

    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    store = open_store(sqlite_url(tmp_path), may_migrate=True)
    machines.world(store, SystemClock().now() - HOUR_S, 2, 2)
    store.close()
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *, running: bool, by: str = "project") -> Any:
    cost(Wanted(by, "all", "UTC", running, None, False, ("json",), None))
    return json.loads(capsys.readouterr().out, parse_float=Decimal)


def test_a_machine_that_is_not_back_counts_with_what_it_costs_by_now(
    rented: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(capsys, running=True, by="job")
    assert found["running_machines"] == 2
    assert [row["job"] for row in found["costs"]] == ["train-0", "train-1"]
    assert found["total"]["spent_usd"] > 0
    assert sum(row["spent_usd"] for row in found["costs"]) == found["total"]["spent_usd"]


def test_a_job_with_a_machine_that_is_back_and_one_that_is_not_counts_once(
    rented: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shown(capsys, running=True, by="provider,market")
    store = open_store(sqlite_url(rented), may_migrate=False)
    rental = next(one for one in store.rentals() if "train-0" in one.jobs)
    store.close()
    offer = rental.taken
    assert offer is not None
    back = a_line(
        1, "default", run=rental.payer, job="train-0", provider=offer.provider, market=offer.market
    )
    engine = create_engine(sqlite_url(rented))
    with engine.begin() as connection:
        connection.execute(insert(t.charges), [row_of(10_000, back)])
    engine.dispose()
    found = shown(capsys, running=True, by="provider,market")
    (row,), (was,) = found["costs"], before["costs"]
    assert (row["jobs"], found["total"]["jobs"]) == (was["jobs"], was["jobs"]) == (2, 2)
    assert row["spent_usd"] >= was["spent_usd"] + usd(back.spent)


def test_without_machines_that_are_not_back_nothing_was_spent_yet(
    rented: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(capsys, running=False)
    assert found["running_machines"] == 0 and found["costs"] == []
    assert found["total"]["spent_usd"] == 0


def test_a_page_names_machines_that_are_not_back_and_their_jobs(
    rented: Path, tmp_path: Path
) -> None:
    cost(Wanted("project", "all", "UTC", True, None, False, ("html",), tmp_path / "costs.html"))
    page = (tmp_path / "costs.html").read_text()
    assert "2 machines not back yet" in page and "train-1" in page
