"""AWS's own price list of a region, as it is published without credentials, read as it comes."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cloudwhale.model.gpus import MODELS
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.errors import Unreachable
from cloudwhale.spi.listings import MOST_GPUS
from cloudwhale.spi.prices import Shape
from cloudwhale.spi.spelling import hourly, is_name

GPU_OF_FAMILY: Mapping[str, tuple[str, float]] = {
    "p3": ("V100-16GB", 16.0), "p3dn": ("V100-32GB", 32.0), "p4d": ("A100-40GB", 40.0),
    "p4de": ("A100-80GB", 80.0), "p5": ("H100-80GB", 80.0), "p5e": ("H200", 141.0),
    "p5en": ("H200", 141.0), "p6-b200": ("B200", 179.1), "p6-b300": ("B300", 268.6),
    "g4dn": ("T4", 16.0), "g5": ("A10G", 22.4), "g6": ("L4", 22.4), "gr6": ("L4", 22.4),
    "g6e": ("L40S", 44.7), "g7": ("RTXPRO4500", 32.0), "g7e": ("RTXPRO6000", 96.0),
}  # fmt: skip
"""Model, and GiB that a driver shows, of each family: the list itself only counts GPUs.

EC2's instance type pages and what DescribeInstanceTypes says of them.
"""

_MUST_BE: Mapping[str, tuple[str, ...]] = {
    "TermType": ("OnDemand",), "Tenancy": ("Shared",), "Operating System": ("Linux",),
    "CapacityStatus": ("Used",), "Pre Installed S/W": ("NA", ""), "Unit": ("Hrs",),
    "MarketOption": ("OnDemand", ""),
}  # fmt: skip
_NEEDED = ("Instance Type", "vCPU", "Memory", "Storage", "GPU", "PricePerUnit", "Currency",
           "TermType", "Tenancy", "Operating System")  # fmt: skip
# Lines are looked at as text first: taking apart a hundred columns of each would take minutes.
_MARKS = ('"OnDemand"', '"Shared"', '"Linux"')
_DISKS = re.compile(r"([0-9]+)\s*x\s*([0-9,]+)\s*(?:GB)?")
_ONE_DISK = re.compile(r"([0-9,]+)\s*GB")


class Listed(NamedTuple):
    """A machine type with its on-demand price."""

    shape: Shape
    usd_h: MicroUsd


def listed(lines: Iterable[str], types: frozenset[str]) -> Iterator[Listed]:
    """Yield what the list of a region has of these types and of all families with GPUs.

    Raises Unreachable when it is no such list, or not in US dollars.
    """
    heading: list[str] | None = None
    for line in lines:
        if heading is None:
            if line.startswith('"SKU"'):
                heading = next(csv.reader([line]))
                _must_have(heading)
        elif all(mark in line for mark in _MARKS):
            cells = next(csv.reader([line]))
            row = dict(zip(heading, cells, strict=False))
            if _is_wanted(row, types):
                found = _listed(row)
                if found is not None:
                    yield found
    if heading is None:
        raise Unreachable("what AWS sent is not the price list that it used to send")


def _must_have(heading: list[str]) -> None:
    missing = [name for name in _NEEDED if name not in heading]
    if missing:
        raise Unreachable(f"AWS's price list has no column {missing[0]!r} any more")


def _is_wanted(row: Mapping[str, str], types: frozenset[str]) -> bool:
    if any(row.get(name, values[0]) not in values for name, values in _MUST_BE.items()):
        return False
    name = row["Instance Type"]
    if not is_name(name):
        return False
    return name in types or name.partition(".")[0] in GPU_OF_FAMILY


def _listed(row: Mapping[str, str]) -> Listed | None:
    if row["Currency"] != "USD":
        raise Unreachable(f"AWS's price list is in {row['Currency']}, not in USD")
    name = row["Instance Type"]
    family = name.partition(".")[0]
    count = _number(row["GPU"])
    gpu, gib = GPU_OF_FAMILY.get(family, ("", 0.0))
    if gpu and (not 1 <= count <= MOST_GPUS or count != int(count)):
        return None  # a part of a GPU, which no job can ask for
    try:
        price = hourly(row["PricePerUnit"])
    except ValueError:
        return None
    cpu, memory_gib = _number(row["vCPU"]), _number(row["Memory"].partition(" ")[0])
    if not cpu or not memory_gib:
        return None
    nominal = MODELS[gpu].memory_gib if gpu else 0.0
    shape = Shape(
        "aws", name, gpu, int(count) if gpu else 0, min(gib, nominal), cpu, memory_gib,
        disk_gib(row["Storage"]),
    )  # fmt: skip
    return Listed(shape, price)


def disk_gib(said: str) -> float:
    """Return the local disks of `2 x 900 NVMe SSD` or `125 GB NVMe SSD`; of `EBS only` 0."""
    several, one = _DISKS.search(said), _ONE_DISK.search(said)
    if several is not None:
        gb = float(several[1]) * _number(several[2])
    else:
        gb = _number(one[1]) if one is not None else 0.0
    return round(gb * 1e9 / 2**30, 1)


def _number(text: str) -> float:
    """Return a number of what it has; 0 for what is none that a machine could have."""
    try:
        value = float(text.replace(",", "") or 0)
    except ValueError:
        return 0.0
    return value if 0 <= value < 1e9 else 0.0
