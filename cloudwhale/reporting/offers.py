"""Offers as rows: own free devices first, then what can be rented, cheapest useful hour first."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cloudwhale.clock import iso
from cloudwhale.model.gpus import MODELS
from cloudwhale.model.node import Device, Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds, usd
from cloudwhale.planning.inventory import DUST, Free
from cloudwhale.planning.searching import Hit
from cloudwhale.reporting.figures import DAY_S, NOTHING, counted, plain, span
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone, cells

OWN = "local"
"""The market of what is owned, as a job file calls it."""

ESTIMATE = "~"
"""What stands before a price that was worked out from others, as before a guessed duration."""

LIKELY = 0.01
"""Hazards per hour from here on are pointed at: one in four days."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What `offers` shows."""

    own: Sequence[Free]
    """Machines of ours that have it free now."""
    rows: Sequence[Hit]
    now: Instant
    max_age_s: Seconds
    """Older prices are pointed at."""
    notes: Sequence[str] = ()


def offers_sheet(shown: Shown) -> Sheet:
    """Show offers, one a row; zones that are alike share one."""
    columns = (
        Column("offer"),
        Column("GPUs"),
        Column("CPUs", right=True),
        Column("GiB", right=True, optional=True),
        Column("USD/h", right=True, on="pipe"),
        Column("USD/h", right=True, on="terminal"),
        Column("useful", right=True),
        Column("market", on="pipe"),
        Column("hazard", right=True, optional=True),
        Column("price age", right=True, optional=True),
        Column("available", optional=True),
        Column("note", on="pipe"),
    )
    rows = [_own_row(free) for free in shown.own]
    rows += [_rented_row(row, shown) for row in shown.rows]
    guessed = any(row.offer.estimated for row in shown.rows)
    asides = (f"{ESTIMATE}: estimated from other prices.",) if guessed else ()
    return Sheet(columns, tuple(rows), notes=tuple(shown.notes), asides=asides)


def _own_row(free: Free) -> tuple[Cell, ...]:
    open_devices = [each.device for each in free.devices if each.share > DUST]
    shared = len(open_devices) < len(free.devices) or free.cpu + DUST < free.node.facts.cpu
    return cells(
        Cell(free.node.id, "good"), _gpus(open_devices), plain(max(0.0, free.cpu)),
        plain(max(0.0, free.memory_gib)), "0.00", "0.00", "0.00", OWN, NOTHING, NOTHING,
        "free beside others" if shared else "free", "yours",
    )  # fmt: skip


def _rented_row(row: Hit, shown: Shown) -> tuple[Cell, ...]:
    offer = row.offer
    facts = offer.facts
    said = NOTHING if offer.price_usd_h is None else price(usd(offer.price_usd_h))
    return cells(
        offer.id, _gpus(facts.devices), plain(facts.cpu), plain(facts.memory_gib),
        said, f"{ESTIMATE if offer.estimated else ''}{said}",
        price(Decimal(row.useful_usd_h)), offer.market, _hazard(offer),
        _age(offer, shown), _available(row), "estimate" if offer.estimated else "",
    )  # fmt: skip


def price(amount: Decimal) -> str:
    """Return dollars with three digits that count: `0.159`, `3.07`, `26.04`."""
    return f"{amount:.3f}" if amount < 1 else f"{amount:.2f}"


def _gpus(devices: Iterable[Device]) -> str:
    models = Counter(device.model for device in devices)
    return ", ".join(f"{many}x {model}" for model, many in models.items()) or NOTHING


def _hazard(offer: Offer) -> Cell:
    if offer.market != "spot":
        return Cell(NOTHING)
    if offer.hazard_per_h is None:
        return Cell("?", "warn")
    tone: Tone = "warn" if offer.hazard_per_h >= LIKELY else "plain"
    return Cell(f"{offer.hazard_per_h * 100:.1f} %/h", tone)


def _age(offer: Offer, shown: Shown) -> Cell:
    if offer.priced_at is None:
        return Cell("now")
    age_s = shown.now - offer.priced_at
    if age_s < 0:
        return Cell("ahead", "warn")
    text = f"{age_s / DAY_S:.0f} d" if age_s >= 2 * DAY_S else span(age_s)
    return Cell(text, "warn" if age_s > shown.max_age_s else "plain")


def _available(row: Hit) -> str:
    """Say in how many zones it can be had, and how many at once where that is known."""
    offer = row.offer
    at_once = "" if offer.capacity is None else f"{offer.capacity} at once, "
    if row.zones == (offer.region,):
        return f"{at_once}any zone"
    return f"{at_once}{counted(len(row.zones), 'zone')}"


# -- as a document ---------------------------------------------------------------------------


def own_keys(free: Free) -> dict[str, Any]:
    """Return a machine of ours as `--json` shows it: what is free, at no price."""
    devices = [each.device for each in free.devices if each.share > DUST]
    facts = Facts.model_construct(
        cpu=max(0.0, free.cpu), memory_gib=max(0.0, free.memory_gib),
        disk_gib=max(0.0, free.disk_gib), devices=tuple(devices),
    )  # fmt: skip
    return {
        "id": free.node.id, "provider": free.node.provider, "type": "", "region": None,
        "zone": None, "zones": [], "market": OWN, **_machine(facts), "price_usd_h": Decimal(0),
        "extras_usd_h": Decimal(0), "cap_usd_h": Decimal(0), "useful_usd_h": 0.0, "speed": None,
        "hazard_per_h": 0.0, "boot_s": 0.0, "notice_s": None, "capacity": 1, "quota": None,
        "priced_at": None, "price_age_s": None, "source": None, "estimated": False,
    }  # fmt: skip


def offer_keys(row: Hit, now: Instant) -> dict[str, Any]:
    """Return a row of offers as `--json` shows it."""
    offer = row.offer
    return {
        "id": offer.id, "provider": offer.provider, "type": offer.type, "region": offer.region,
        "zone": offer.zone, "zones": list(row.zones), "market": offer.market,
        **_machine(offer.facts),
        "price_usd_h": None if offer.price_usd_h is None else usd(offer.price_usd_h),
        "extras_usd_h": usd(offer.extras_usd_h),
        "cap_usd_h": None if offer.cap_usd_h is None else usd(offer.cap_usd_h),
        "useful_usd_h": round(row.useful_usd_h, 6), "speed": round(row.speed, 4),
        "hazard_per_h": offer.hazard_per_h, "boot_s": offer.boot_s, "notice_s": offer.notice_s,
        "capacity": offer.capacity, "quota": offer.quota or None,
        "priced_at": None if offer.priced_at is None else iso(offer.priced_at),
        "price_age_s": None if offer.priced_at is None else round(now - offer.priced_at),
        "source": offer.source or None, "estimated": offer.estimated,
    }  # fmt: skip


def _machine(facts: Facts) -> Mapping[str, Any]:
    models = list(dict.fromkeys(device.model for device in facts.devices))
    return {
        "gpus": len(facts.devices), "gpu": models[0] if models else None,
        "gpu_memory_gib": MODELS[models[0]].memory_gib if models and models[0] in MODELS else None,
        "cpu": facts.cpu, "memory_gib": facts.memory_gib, "disk_gib": facts.disk_gib,
    }  # fmt: skip
