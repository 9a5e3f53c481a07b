"""GCP's billing catalogue: prices of parts, of which the prices of machines are put together."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.errors import Unreachable
from cloudwhale.spi.prices import Market, Shape
from cloudwhale.spi.spelling import MOST_USD_H, hourly

SERVICE = "6F81-5844-456A"
"""Compute Engine, in the catalogue's numbering."""

_OTHERS = ("Custom", "Premium", "Reserved", "Sole Tenancy", "Commitment", "DWS", "Calendar Mode",
           "suspended")  # fmt: skip
"""Words of parts that are not billed for ordinary machines."""

_PART = re.compile(
    r"(?:Spot Preemptible )?(?P<family>[A-Z][0-9][A-Za-z]*)(?: Predefined| AMD| Arm)? "
    r"Instance (?P<part>Core|Ram) running in"
)
_GPU = re.compile(
    r"(?P<name>.+?)(?: GPU)? (?:running in|attached to Spot Preemptible VMs running in)"
)
_SSD = re.compile(r"SSD backed Local Storage(?: attached to Spot Preemptible VMs)?(?: in .*)?")

_GPU_NAMES: Mapping[str, str] = {
    "Nvidia Tesla T4": "T4", "Nvidia Tesla V100": "V100-16GB", "Nvidia Tesla P100": "P100",
    "Nvidia Tesla P4": "P4", "Nvidia L4": "L4", "Nvidia Tesla A100": "A100-40GB",
    "Nvidia Tesla A100 80GB": "A100-80GB", "Nvidia H100 80GB": "H100-80GB",
    "Nvidia H100 80GB Mega": "H100-80GB+", "Nvidia H100 Mega 80GB": "H100-80GB+",
    "Nvidia H100 80GB Plus": "H100-80GB+", "Nvidia H200 141GB": "H200",
    "RTX 6000 96GB": "RTXPRO6000",
}  # fmt: skip
"""`+`: the same GPU, in machines whose network is billed with it."""

_FAMILY_OF_TYPE = (("a3-megagpu", "A3Plus"), ("a3-ultragpu", "A3Ultra"))
HOURS_A_MONTH = 730


class Part(NamedTuple):
    """Something that is billed by itself."""

    what: str
    """`core A2`, `ram A2`, `gpu L4` or `ssd`."""
    region: str
    market: Market


Parts = Mapping[Part, Decimal]
"""Dollars an hour of one of each; of a GiB for `ram` and `ssd`."""


def parts(skus: Iterable[Mapping[str, Any]]) -> dict[Part, Decimal]:
    """Return the prices of what machines are made of; raise Unreachable for another document."""
    found: dict[Part, Decimal] = {}
    for sku in skus:
        try:
            what, market = _what(sku)
            if what is None:
                continue
            price = _price(sku)
            if what == "ssd":
                price /= HOURS_A_MONTH
            for region in sku["serviceRegions"]:
                found[Part(what, region, market)] = price
        except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
            raise Unreachable(f"the billing catalogue has another form now: {error!r}") from error
    return found


def _what(sku: Mapping[str, Any]) -> tuple[str | None, Market]:
    says: str = sku["description"]
    usage: str = sku["category"]["usageType"]
    is_spot = usage == "Preemptible" or "Spot Preemptible" in says
    market: Market = "spot" if is_spot else "on-demand"
    if usage not in ("OnDemand", "Preemptible") or any(word in says for word in _OTHERS):
        return None, market
    part = _PART.match(says)
    if part is not None:
        return f"{part['part'].lower()} {part['family']}", market
    if _SSD.fullmatch(says) is not None:
        return "ssd", market
    gpu = _GPU.match(says)
    name = _GPU_NAMES.get(gpu["name"]) if gpu is not None else None
    return (None if name is None else f"gpu {name}"), market


def _price(sku: Mapping[str, Any]) -> Decimal:
    """Return the last rate: the first may be a free one."""
    unit = sku["pricingInfo"][0]["pricingExpression"]["tieredRates"][-1]["unitPrice"]
    if unit.get("currencyCode", "USD") != "USD":
        raise Unreachable(f"the billing catalogue is in {unit['currencyCode']}, not in USD")
    units, nanos = Decimal(str(unit.get("units", 0) or 0)), Decimal(unit.get("nanos", 0) or 0)
    if not 0 <= units <= MOST_USD_H or not 0 <= nanos < 10**9:
        raise ValueError(f"{sku['description']} costs {units} and {nanos}")
    return units + nanos / 10**9


def machine_usd_h(shape: Shape, region: str, market: Market, known: Parts) -> MicroUsd | None:
    """Return the price of a machine; None when that of a part is not known, or no machine's."""
    family = next(
        (name for start, name in _FAMILY_OF_TYPE if shape.type.startswith(start)),
        shape.type.partition("-")[0].upper(),
    )
    needs = [(f"core {family}", shape.cpu), (f"ram {family}", shape.memory_gib)]
    if shape.gpus:
        plus = "+" if family == "A3Plus" else ""
        needs.append((f"gpu {shape.gpu}{plus}", float(shape.gpus)))
    if shape.disk_gib:
        needs.append(("ssd", shape.disk_gib))
    total = Decimal(0)
    for what, amount in needs:
        price = known.get(Part(what, region, market))
        if price is None:
            return None
        total += price * Decimal(str(amount))
    try:
        return hourly(total)
    except ValueError:
        return None
