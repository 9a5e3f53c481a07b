"""Data weigh: machines are rented where they lie, when the price of bringing them says so."""

from decimal import Decimal
from pathlib import Path

import pytest
from previewing import HOUR, NOW, a_desk, a_gpu_job, gpu_offer

from cloudwhale.cli.plan_keys import plan_keys
from cloudwhale.cli.plan_machines import machine_lines
from cloudwhale.control.preview import preview
from cloudwhale.control.previewed import PreviewMachine
from cloudwhale.control.supply import Supply
from cloudwhale.control.trying import Part
from cloudwhale.model.job import Data, JobSpec
from cloudwhale.model.units import micro_usd, usd
from cloudwhale.planning.gravity import moved_usd, moves, regions_of
from cloudwhale.planning.shortlist import shortlist

EAST = gpu_offer(
    "east", "1", region="us-east-1", zone="us-east-1a", egress_usd_gb=0.09, egress_near_usd_gb=0.02
)
WEST = gpu_offer(
    "west", "1.5", region="us-west-2", zone="us-west-2a", egress_usd_gb=0.09,
    egress_near_usd_gb=0.02,
)  # fmt: skip
OTHER = gpu_offer("other", "1", provider="gcp", region="us-west1", egress_usd_gb=0.12)
GB = 10**9


def reading(size_bytes: int, region: str = "us-west-2") -> JobSpec:
    data = Data(url="s3://team-data/corpus/", region=region, size_bytes=size_bytes)
    return a_gpu_job(duration_s=2 * HOUR, inputs=("s3://team-data/corpus/",), data=(data,))


def planned(home: Path, spec: JobSpec) -> tuple[PreviewMachine, list[str], Decimal]:
    """Return the machine that is planned for a job, how a person and a script are told of it."""
    offers = (EAST, WEST)
    desk = a_desk(home, rent="whale-rent")
    open_offers = shortlist(offers, moves(offers, regions_of([spec])))
    made = preview(desk, [Part([spec], micro_usd("100"))], NOW, Supply(offers=open_offers))
    (machine,) = made.machines
    lines = ["".join(str(cell.text) for cell in line) for line in machine_lines(made, 120)]
    egress: Decimal = plan_keys(made)["machines"][0]["egress_usd"]
    return machine, lines, egress


def test_500_gb_draw_a_job_to_where_they_lie(tmp_path: Path) -> None:
    machine, lines, egress = planned(tmp_path, reading(500 * GB))
    assert (machine.region, machine.moved, egress) == ("us-west-2", 0, Decimal("0.00"))
    assert not any("egress" in line for line in lines)


def test_10_gb_are_brought_to_the_cheaper_machine_and_the_plan_says_for_how_much(
    tmp_path: Path,
) -> None:
    machine, lines, egress = planned(tmp_path, reading(10 * GB))
    assert (machine.region, machine.moved_from) == ("us-east-1", ("us-west-2",))
    assert usd(machine.moved) == egress == Decimal("0.20")
    assert machine.cost >= machine.moved + micro_usd("2")
    assert any("0.20 USD of egress: its data come from us-west-2" in line for line in lines)


@pytest.mark.parametrize(
    ("source", "target", "usd_gb"),
    [
        ("us-east-1", "us-east-1", 0.0),
        ("us-east-1", "us-west-2", 0.02),
        ("us-east-1", "us-west1", 0.09),
        ("us-west1", "us-east-1", 0.12),
        ("eu-north-1", "us-east-1", 0.09),
    ],
)
def test_a_gb_costs_what_the_region_that_it_leaves_asks(
    source: str, target: str, usd_gb: float
) -> None:
    """Of a region in which nothing is offered, what leaving for the internet usually costs."""
    prices = moves((EAST, WEST, OTHER), (source,))
    assert moved_usd(reading(100 * GB, source), target, prices) == pytest.approx(100 * usd_gb)


def test_an_offer_where_data_lie_is_not_beaten_by_a_cheaper_one_elsewhere() -> None:
    offers = (EAST, WEST)
    assert shortlist(offers) == (EAST,)
    assert shortlist(offers, moves(offers, ("us-west-2",))) == (EAST, WEST)
