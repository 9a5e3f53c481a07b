"""Makers for tests of the GCP provider: offer and request, as a house would ask."""

from typing import Any

from cloudwhale.model.gpus import MODELS
from cloudwhale.model.node import Device, Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Lease
from cloudwhale.model.units import micro_usd
from cloudwhale.spi.provider import LaunchRequest

BUNDLE = f"bundles/{'a1' * 32}.tar.gz"


def facts(gpu: str = "L4", gpus: int = 1, disk_gib: float = 120.0) -> Facts:
    """Make what a machine has."""
    devices = tuple(
        Device(id=f"gpu-{number}", model=gpu, memory_gib=MODELS[gpu].memory_gib)
        for number in range(gpus)
    )
    return Facts(cpu=4.0, memory_gib=14.8, disk_gib=disk_gib, devices=devices)


def an_offer(zone: str = "us-central1-a", market: Any = "spot", **fields: Any) -> Offer:
    """Make an offer of a g2-standard-4 at 0.3 dollars, the cap being 1."""
    kind, region = fields.pop("type", "g2-standard-4"), zone.rpartition("-")[0]
    said: dict[str, Any] = {
        "id": f"gcp/{zone}/{kind}/{market}", "provider": "gcp", "region": region, "zone": zone,
        "market": market, "type": kind, "boot_s": 60.0, "facts": facts(), "quota_units": 1.0,
        "price_usd_h": micro_usd("0.3"), "cap_usd_h": micro_usd(1), "stop_moves": False,
        "quota": f"gcp/{region}/{market}/NVIDIA_L4_GPUS",
    }  # fmt: skip
    return Offer(**{**said, **fields})


def a_request(name: str, offer: Offer, stop_at: float, **fields: Any) -> LaunchRequest:
    """Make a request whose cloud's stop is at a time."""
    lease = Lease(number=1, watched_until=stop_at, away_until=stop_at - 120.0, stop_at=stop_at)
    said: dict[str, Any] = {
        "request_id": name, "node": name, "offer": offer, "home": "/", "lease": lease,
        "mailbox": "gs://bucket/lab", "stop_at": stop_at, "project": "nlp", "bundle": BUNDLE,
    }  # fmt: skip
    return LaunchRequest(**{**said, **fields})
