"""A world in which much is to be rented, and the plan that some rent policy makes of it."""

from pathlib import Path

import numpy as np
from clouding import an_offer
from makers import a_device, a_job, a_world, wants

from cloudwhale.control.desk import policies
from cloudwhale.model.job import GpuRequest, Job, Span
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.plan import Plan
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning.planner import plan
from cloudwhale.settings import Settings

MODELS = {"T4": 16.0, "L4": 24.0, "A10G": 24.0, "A100-80GB": 80.0, "H100-80GB": 80.0}
PRICES_USD_H = {"T4": 0.35, "L4": 0.7, "A10G": 1.0, "A100-80GB": 3.4, "H100-80GB": 6.9}
NOW = 1_000_000.0


def a_renting_world(seed: int, jobs: int = 14) -> World:
    """Make jobs of all sizes, some with deadlines, that fit nowhere here; offers of five models."""
    drawn = np.random.default_rng(seed)
    made = [_job(drawn, number) for number in range(jobs)]
    offers = tuple(
        _offer(drawn, model, count, market)
        for model in MODELS
        for count in (1, 2, 4, 8)
        for market in ("on-demand", "spot")
    )
    account = Account(payer="run-1", limit=micro_usd(10_000))
    return a_world(made, offers=offers, accounts={"run-1": account}, now=NOW, seed=seed)


def _job(drawn: np.random.Generator, number: int) -> Job:
    model = str(drawn.choice(list(MODELS)))
    count = int(drawn.choice([0, 1, 1, 1, 2, 4]))
    share = float(drawn.choice([0.25, 0.5, 1.0])) if count == 1 else 1.0
    duration_s = float(drawn.uniform(0.5, 12.0)) * 3600.0
    least = Span(least=round(0.8 * share * MODELS[model], 1))
    return a_job(
        f"job-{number:02}",
        resources=wants(
            gpu=GpuRequest(count=count, share=share, memory_gib=least) if count else GpuRequest(),
            cpu=max(1.0, 2.0 * count), memory_gib=4.0 * max(1, count), disk_gib=10.0,
        ),
        reference=model if count else None, duration_s=duration_s,
        deadline=NOW + 3.0 * duration_s + 900.0 if drawn.random() < 0.4 else None,
    ).but(submitted_at=NOW - number)  # fmt: skip


def _offer(drawn: np.random.Generator, model: str, count: int, market: str) -> Offer:
    price = count * PRICES_USD_H[model] * float(drawn.uniform(0.9, 1.1))
    spot = market == "spot"
    facts = Facts(
        cpu=8.0 * count, memory_gib=32.0 * count, disk_gib=200.0,
        devices=tuple(a_device(f"gpu-{n}", model, MODELS[model]) for n in range(count)),
    )  # fmt: skip
    return an_offer(
        f"{model.lower()}-{count}-{market}", market=market, facts=facts,
        price_usd_h=micro_usd(f"{price * (0.4 if spot else 1.0):.4f}"),
        cap_usd_h=micro_usd(f"{price:.4f}"), boot_s=120.0, hazard_per_h=0.02 if spot else 0.0,
    )  # fmt: skip


def planned(rent: str, seed: int) -> Plan:
    """Return the plan as the product makes it, with some rent policy."""
    return plan(a_renting_world(seed), policies(Settings(home=Path("/nowhere"), rent=rent)))
