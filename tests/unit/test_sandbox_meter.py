"""The meter counts the same money as the ledger, in code that knows nothing of it."""

import ast
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudwhale.model.units import MicroUsd
from cloudwhale.planning.ledger import accrued
from cloudwhale_providers.prices.gcp import BOOT_DISK_USD_H
from cloudwhale_providers.sandbox import meter as module
from cloudwhale_providers.sandbox.endpoint import Instance
from cloudwhale_providers.sandbox.meter import Meter, cost, line_of, metered


def an_instance(name: str = "i-1", **fields: object) -> Instance:
    given = {
        "launched_at": 1000.0, "tags": {"cloudwhale:node": f"rent-{name}"}, "user_data": "",
        "price_usd_h": MicroUsd(500_000), **fields,
    }  # fmt: skip
    return Instance(name, "g5.xlarge", "us-east-1", "us-east-1a", "spot", **given)  # type: ignore[arg-type]


@given(usd_h=st.integers(0, 100_000_000), used_s=st.floats(0, 1e7, allow_nan=False))
def test_the_meter_and_the_ledger_count_the_same(usd_h: int, used_s: float) -> None:
    assert cost(usd_h, used_s) == accrued(MicroUsd(usd_h), used_s)


def test_a_minute_is_billed_at_least_and_then_each_second() -> None:
    assert cost(3_600_000, 0.0) == cost(3_600_000, 60.0) == 60_000
    assert cost(3_600_000, 60.5) == 61_000
    assert cost(1, 1.0) == 1, "rounded up"


def test_a_machine_is_billed_with_disk_and_address_until_its_end_began() -> None:
    line = line_of(an_instance(ended_at=1100.9), now=5000.0)
    assert (line.since, line.until) == (1000, 1100)
    assert line.extras_usd_h > 0
    assert line.cost == ceil(Fraction(100 * (500_000 + line.extras_usd_h), 3600))


def test_a_machine_that_runs_is_billed_until_now() -> None:
    assert line_of(an_instance(), now=1200.0).cost < line_of(an_instance(), now=1201.0).cost


def test_a_bill_that_is_closed_stays_when_the_machine_is_not_listed_any_more(
    tmp_path: Path,
) -> None:
    meter = Meter(tmp_path)
    assert meter.read([an_instance()], 1100.0), "one has begun"
    assert not meter.read([an_instance()], 1150.0)
    assert meter.read([an_instance(ended_at=1200.0)], 1300.0), "one has ended"
    assert not meter.read([], 9000.0)
    before = meter.total
    meter.keep(9000.0)
    assert Meter(tmp_path).total == before == sum(one.cost for one in metered(tmp_path))


def test_machines_of_a_box_that_was_killed_run_no_more_in_the_next_ones_bill(
    tmp_path: Path,
) -> None:
    killed = Meter(tmp_path)
    killed.read([an_instance()], 1150.0)
    killed.keep(1150.0)
    Meter(tmp_path).keep(9000.0)
    (line,) = metered(tmp_path)
    assert (line.until, line.cost) == (1150, killed.total)


def test_bills_of_earlier_boxes_are_kept(tmp_path: Path) -> None:
    first = Meter(tmp_path)
    first.read([an_instance(ended_at=1100.0)], 1100.0)
    first.keep(1100.0)
    second = Meter(tmp_path)
    second.read([an_instance("i-2", launched_at=2000.0)], 2100.0)
    second.keep(2100.0)
    assert [one.id for one in metered(tmp_path)] == ["i-1", "i-2"]


def a_gcp_instance(**fields: object) -> Instance:
    given = {
        "launched_at": 1000.0, "tags": {"cloudwhale:node": "rent-9"}, "user_data": "",
        "price_usd_h": MicroUsd(500_000), "provider": "gcp", "state": "terminated", **fields,
    }  # fmt: skip
    return Instance("9", "g2-standard-4", "us-central1", "us-central1-a", "spot", **given)  # type: ignore[arg-type]


def test_a_disk_costs_on_until_a_machine_that_has_stopped_is_deleted(tmp_path: Path) -> None:
    ended = line_of(a_gcp_instance(ended_at=1100.0, deleted_at=1100.0), now=9000.0)
    stopped = line_of(a_gcp_instance(ended_at=1100.0), now=1100.0 + 3600)
    assert ended.disk_s == 0.0 and ended.extras_usd_h > BOOT_DISK_USD_H
    assert stopped.cost == ended.cost + BOOT_DISK_USD_H
    meter = Meter(tmp_path)
    meter.read([a_gcp_instance(ended_at=1100.0)], 2000.0)
    assert not meter.read([a_gcp_instance(ended_at=1100.0, deleted_at=4700.0)], 8000.0)
    meter.read([], 9000.0)
    assert meter.total == stopped.cost


def test_a_bill_says_whose_machine_it_is(tmp_path: Path) -> None:
    meter = Meter(tmp_path)
    meter.read([an_instance(), a_gcp_instance(launched_at=1001.0)], 1100.0)
    meter.keep(1100.0)
    assert [one.provider for one in metered(tmp_path)] == ["aws", "gcp"]


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"machines": [{"id": 1}]}'])
def test_a_bill_that_cannot_be_read_is_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "meter.json").write_text(text)
    assert list(metered(tmp_path)) == []


def test_the_meter_imports_nothing_of_the_ledger() -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text())
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in names if name and name.startswith("cloudwhale.")}
    assert ours == {"cloudwhale.model.units", "cloudwhale.spi.sandbox"}
