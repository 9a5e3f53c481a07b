"""What is found over arrays of offers is what `fit` finds, one by one; a shortlist is enough."""

import math
from typing import Any

import pytest
from clouding import an_offer
from hypothesis import given, settings
from hypothesis import strategies as st
from makers import a_device, a_job, wants

from cloudwhale.model.job import CheckpointRule, GpuRequest, Job, Placement, Span
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import fit
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.shortlist import shortlist
from cloudwhale.planning.speeds import run_s
from cloudwhale.planning.stock import Stock

NO_TIMES = Durations({})
MODELS = {"L4": 24.0, "A100-40GB": 40.0, "A100-80GB": 80.0}


@st.composite
def offers(draw: st.DrawFn) -> list[Offer]:
    return [draw(one_offer(number)) for number in range(draw(st.integers(1, 8)))]


@st.composite
def one_offer(draw: st.DrawFn, number: int) -> Offer:
    model = draw(st.sampled_from(sorted(MODELS)))
    count = draw(st.integers(0, 4))
    price = draw(st.integers(1, 4)) * 1_000_000
    market = draw(st.sampled_from(["spot", "on-demand"]))
    facts = Facts(
        cpu=float(draw(st.integers(1, 8))), memory_gib=draw(st.sampled_from([8.0, 32.0])),
        disk_gib=100.0,
        devices=tuple(a_device(f"d-{n}", model, MODELS[model]) for n in range(count)),
        labels=draw(st.sampled_from([{}, {"rack": "a"}])),
        runtimes=draw(st.sampled_from([("process",), ("process", "container")])),
    )  # fmt: skip
    return an_offer(
        f"o-{number}", facts=facts, price_usd_h=MicroUsd(price), cap_usd_h=MicroUsd(price * 2),
        market=market, hazard_per_h=draw(st.sampled_from([None, 0.01, 0.2])),
        boot_s=draw(st.sampled_from([20.0, 60.0])), zone=draw(st.sampled_from(["a", "b"])),
    )  # fmt: skip


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    gpu = GpuRequest(
        count=draw(st.integers(0, 3)),
        models=draw(st.sampled_from([(), ("A100",), ("L4",), ("A100-80GB", "L4")])),
        memory_gib=draw(st.sampled_from([Span(), Span(least=30.0), Span(least=16.0, most=40.0)])),
        share=draw(st.sampled_from([0.5, 1.0])),
    )
    more: dict[str, Any] = {
        "resources": wants(cpu=draw(st.integers(1, 4)), memory_gib=9.0, gpu=gpu),
        "duration_s": draw(st.sampled_from([60.0, 7200.0])),
        "market": draw(st.sampled_from(["auto", "spot", "on-demand", "local"])),
        "image": draw(st.sampled_from([None, "python:3"])),
        "reference": draw(st.sampled_from([None, "L4"])),
    }
    return a_job("j", **more)


@given(offers(), jobs())
@settings(max_examples=200, deadline=None)
def test_a_row_says_of_each_offer_what_the_one_by_one_way_says(some: list[Offer], job: Job) -> None:
    stock = Stock(some, NO_TIMES)
    row = stock.runs_s(job)
    spec = spec_of(job)
    for at, offer in enumerate(some):
        fits = isinstance(fit(spec, stock.empty(offer.id)), Placement)
        suits = fits and spec.market in ("auto", offer.market)
        assert math.isfinite(row[at]) == suits
        if suits:
            devices = offer.facts.devices if job.wants.gpu.count else ()
            plain_s = run_s(job, devices[0].model if devices else None, 0, NO_TIMES)
            assert row[at] >= plain_s * 0.999999
            if offer.market == "on-demand":
                assert row[at] == pytest.approx(plain_s)


@given(offers(), jobs())
@settings(max_examples=200, deadline=None)
def test_no_job_is_dearer_for_what_a_shortlist_leaves_out(some: list[Offer], job: Job) -> None:
    def least(of: list[Offer]) -> float:
        stock = Stock(of, NO_TIMES)
        return float(stock.costs_usd(stock.runs_s(job)).min())

    short = shortlist(some)
    assert {offer.id for offer in short} <= {offer.id for offer in some}
    assert least(list(short)) == pytest.approx(least(some))


def test_zones_that_differ_in_nothing_else_are_one_offer() -> None:
    twins = [an_offer(name, zone=name) for name in ("r-b", "r-a", "r-c")]
    assert [offer.id for offer in shortlist(twins)] == ["r-a"]
    assert [offer.id for offer in shortlist(twins[::2])] == ["r-b"]


def test_an_offer_without_a_bounded_price_is_on_no_shortlist() -> None:
    wrong = [
        an_offer("a", price_usd_h=None),
        an_offer("b", cap_usd_h=None),
        an_offer("c", cap_usd_h=MicroUsd(1)),
    ]
    assert shortlist(wrong) == ()


def test_spot_takes_longer_the_likelier_it_is_to_go_and_saves_help() -> None:
    def run(hazard: float, **fields: Any) -> float:
        spot = an_offer("s", market="spot", hazard_per_h=hazard)
        row = Stock([spot], NO_TIMES).runs_s(a_job("j", duration_s=36000.0, **fields))
        return float(row[0])

    saves = CheckpointRule(every_s=600.0)
    assert 36000.0 == run(0.0) < run(0.02) < run(0.1)
    assert run(0.1, checkpoint=saves) < run(0.1)


def test_a_deadline_counts_with_more_than_the_mean_on_spot() -> None:
    spot, sure = an_offer("s", market="spot", hazard_per_h=0.1), an_offer("t")
    job = a_job("j", duration_s=36000.0, deadline=1e6, checkpoint=CheckpointRule(every_s=600.0))
    stock = Stock([spot, sure], NO_TIMES)
    assert stock.late_s(job)[0] > stock.runs_s(job)[0]
    assert stock.late_s(job)[1] == stock.runs_s(job)[1] == 36000.0
