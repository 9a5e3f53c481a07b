"""A machine with two models of GPU: which are counted on, and the time of the slowest."""

from typing import Any

import pytest
from clouding import an_offer
from makers import a_device, a_job, wants

from cloudwhale.model.job import GpuRequest, Job, Span
from cloudwhale.model.node import Facts
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.kinds import as_kind
from cloudwhale.planning.stock import Stock

L4, T4, A100 = ("L4", 24.0), ("T4", 16.0), ("A100-80GB", 80.0)


def stock(*devices: tuple[str, float]) -> Stock:
    made = tuple(a_device(f"gpu-{n}", *one) for n, one in enumerate(devices))
    facts = Facts(cpu=16.0, memory_gib=64.0, disk_gib=200.0, devices=made)
    return Stock((an_offer("mixed", facts=facts),), Durations({}))


def job(count: int = 1, **gpu: Any) -> Job:
    asked = GpuRequest(count=count, **gpu)
    return a_job(
        resources=wants(cpu=1.0, gpu=asked), duration_s=3600.0, reference="A100-80GB",
        speeds={"L4": 0.5, "T4": 0.25},
    )  # fmt: skip


def test_a_job_may_get_the_slower_of_two_that_suit() -> None:
    assert stock(L4, L4, T4).runs_s(job())[0] == pytest.approx(4 * 3600.0)
    assert stock(L4, L4).runs_s(job())[0] == pytest.approx(2 * 3600.0)


def test_one_that_is_too_small_slows_nobody() -> None:
    large = job(memory_gib=Span(least=20.0))
    assert stock(L4, L4, T4).runs_s(large)[0] == pytest.approx(2 * 3600.0)


def test_nobody_is_rented_a_mixture_or_what_a_machine_has_least_of() -> None:
    found = stock(L4, L4, T4)
    assert as_kind(found.offers[0]).devices == 2
    assert list(found.options(job(count=3))) == []
    assert list(found.options(job(models=("T4",)))) == []
    assert len(list(found.options(job(count=2)))) == 1


def test_of_as_many_the_larger_are_counted_on() -> None:
    assert as_kind(stock(T4, A100).offers[0]).model == "A100-80GB"
