"""Dry runs for tests: a desk of one small host, a few offers, and jobs that ask for money."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clouding import an_offer
from makers import a_device, a_spec, wants

from cloudwhale.clock import SystemClock
from cloudwhale.control.desk import Desk
from cloudwhale.control.preview import preview
from cloudwhale.control.previewed import Preview, PreviewJob
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.control.supply import Supply
from cloudwhale.control.trying import Part
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model.job import GpuRequest, JobSpec, Resources, Span
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.shortlist import shortlist
from cloudwhale.settings import Settings

NOW = 1_790_000_000.0  # 2026-09-21
HOUR = 3600.0


def a_desk(home: Path, **settings: Any) -> Desk:
    """Open a desk of a host with two CPUs, 8 GiB and no GPU; it rents in the plain way."""
    of_host = {
        "home": home, "node": "desk", "cpu": 2.0, "memory_gib": 8.0, "devices": (),
        "rent": "one-each",
    }  # fmt: skip
    made = Settings.model_validate({**of_host, **settings})
    return Desk(made, SystemClock(), MemoryStore(), open_objects("memory://"))


def gpu_offer(name: str, usd_h: str, model: str = "L4", count: int = 1, **fields: Any) -> Offer:
    """Make an offer with GPUs, booted in 100 s, its cap twice its price when it is spot."""
    memory_gib = {"L4": 24.0, "T4": 16.0, "A100-80GB": 80.0, "H100-80GB": 80.0}[model]
    devices = tuple(a_device(f"gpu-{n}", model, memory_gib) for n in range(count))
    facts = Facts(cpu=8.0 * count, memory_gib=32.0 * count, disk_gib=200.0, devices=devices)
    price = micro_usd(usd_h)
    base: dict[str, Any] = {
        "facts": facts, "price_usd_h": price, "cap_usd_h": price, "boot_s": 100.0,
        "type": name, "provider": "aws", "region": "east", "zone": "east-a",
    }  # fmt: skip
    return an_offer(name, **{**base, **fields})


T4 = gpu_offer("t4", "0.5", "T4")
L4 = gpu_offer("l4", "1")
L4_SPOT = gpu_offer("l4s", "0.4", market="spot", cap_usd_h=micro_usd("1"), hazard_per_h=0.02)
FOUR = gpu_offer("four", "4", count=4)
BIG = gpu_offer("big", "20", "A100-80GB", count=8)
OFFERS = (T4, L4, L4_SPOT, FOUR, BIG)


def a_gpu_job(name: str = "train", count: int = 1, **fields: Any) -> JobSpec:
    """Make a job of an hour on some L4s."""
    gpu = GpuRequest(count=count, **fields.pop("gpu", {}))
    base: dict[str, Any] = {"resources": wants(gpu=gpu), "duration_s": HOUR, "reference": "L4"}
    return a_spec(name, **{**base, **fields})


def needing(gib: float, **more: Any) -> Resources:
    """Ask for one GPU with so much memory."""
    return wants(gpu=GpuRequest(count=1, memory_gib=Span(least=gib)), **more)


def looked(
    desk: Desk,
    *specs: JobSpec,
    budget: str | None = "50",
    offers: Sequence[Offer] = OFFERS,
    **supplied: Any,
) -> Preview:
    """Plan some jobs of one file."""
    limit = None if budget is None else micro_usd(budget)
    supply = Supply(offers=shortlist(offers), **supplied)
    return preview(desk, [Part(specs, limit)], NOW, supply)


def only(made: Preview) -> PreviewJob:
    """Return the one job of a preview."""
    (job,) = made.jobs
    return job
