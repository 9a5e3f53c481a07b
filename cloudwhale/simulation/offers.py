"""What can be rented in a simulation: offers of a settings file, and a cloud by the GPU-hour."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cloudwhale.model.gpus import MODELS
from cloudwhale.model.node import Device, Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import micro_usd
from cloudwhale.settings import Amount
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.playing import Offered
from cloudwhale.simulation.tables import NAME, Machine, Tables
from cloudwhale.spi.errors import SettingsError

CLOUD = "cloud"
"""What the provider of a simulation is called."""

EXAMPLE = 'Write [[offer]], name = "l4", devices = ["1x L4 24GB"], cpu = 8, usd_h = 0.7.'


class OfferTable(Machine):
    """One `[[offer]]` of the file."""

    name: Annotated[str, Field(pattern=NAME)]
    usd_h: Amount
    cpu: Amount = 8.0
    memory_gib: Amount = 32.0
    disk_gib: Amount = 1000.0
    boot_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 120.0
    market: Literal["spot", "on-demand"] = "on-demand"
    preempted_per_h: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    notice_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    count: Annotated[int, Field(ge=1)] | None = None


_WANTED = {
    "name": 'up to 63 letters, digits, `-`, `_` and `.`, like "l4"',
    "usd_h": "a price in dollars an hour above 0, like 0.7",
    "devices": 'a list of texts like "1x L4 24GB"',
    "cpu": "a number above 0, like 8",
    "memory_gib": "a number of GiB above 0, like 32",
    "disk_gib": "a number of GiB above 0, like 1000",
    "boot_s": "a number of seconds, 0 or more, like 120",
    "market": '"on-demand" or "spot"',
    "preempted_per_h": "a number, 0 or more, like 0.05",
    "notice_s": "a number of seconds, 0 or more, like 120",
    "count": "how many there are at most, a whole number above 0; left out: any number",
}
OFFERS = Tables("offer", OfferTable, _WANTED, EXAMPLE)


def clouds_from(file: Path, tables: Sequence[object], seed: int = 0) -> tuple[Offered, ...]:
    """Return a cloud with the offers of a file; raise SettingsError for a wrong one."""
    shelves = [_shelf(file, number, table) for number, table in enumerate(tables, 1)]
    names = [shelf.offer.id for shelf in shelves]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"{file}: two offers are called {twice}", "Rename one of them.")
    return (Offered(CLOUD, shelves, seed),) if shelves else ()


def _shelf(file: Path, number: int, table: object) -> Shelf:
    one, devices = OFFERS.read(file, number, table)
    facts = Facts(
        cpu=one.cpu, memory_gib=one.memory_gib, disk_gib=one.disk_gib,
        devices=tuple(device.but(id=f"{one.name}-{n}") for n, device in enumerate(devices)),
    )  # fmt: skip
    offer = _offer(one.name, facts, one.usd_h).but(
        market=one.market, boot_s=one.boot_s, notice_s=one.notice_s,
        hazard_per_h=one.preempted_per_h,
    )  # fmt: skip
    return Shelf(offer, one.count)


def _offer(name: str, facts: Facts, usd_h: float) -> Offer:
    price = micro_usd(repr(usd_h))
    return Offer(
        id=name, provider=CLOUD, region="here", zone="here-a", market="on-demand", facts=facts,
        price_usd_h=price, cap_usd_h=price, boot_s=0.0, billing_step_s=1.0, billing_least_s=0.0,
        hazard_per_h=0.0,
    )  # fmt: skip


SIZES = (1, 2, 4, 8)


def by_the_gpu_hour(model: str, usd_per_gpu_h: float, cpu: float, memory_gib: float) -> Offered:
    """Return a cloud without end whose machines of 1, 2, 4 and 8 GPUs are there at once.

    As papers on cloud bursting take it (Luo et al., Starburst, USENIX ATC 2024). CPUs and memory
    are those of each GPU.
    """
    return Offered(CLOUD, list(_sizes(model, usd_per_gpu_h, cpu, memory_gib)))


def _sizes(model: str, usd_per_gpu_h: float, cpu: float, memory_gib: float) -> Iterator[Shelf]:
    for count in SIZES:
        devices = tuple(
            Device(id=f"gpu-{n}", model=model, memory_gib=MODELS[model].memory_gib)
            for n in range(count)
        )
        facts = Facts(
            cpu=cpu * count, memory_gib=memory_gib * count, disk_gib=1000.0, devices=devices
        )
        yield Shelf(_offer(f"{count}-gpu", facts, usd_per_gpu_h * count))
