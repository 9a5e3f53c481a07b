"""A validator of our own for FOCUS 1.2: what a file breaks, row by row, as sentences.

The rules are those of the specification's text for the columns that are written, with their
attributes: numbers without signs of plus or separators, times in UTC with a Z, nulls as nothing,
allowed values, own columns behind the others with the prefix `x_`, periods half open.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal

from cloudwhale.reporting.focus_columns import COLUMNS, FocusColumn

_NUMBER = re.compile(r"-?\d+(\.\d+)?(E-?\d+)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_OWN = re.compile(r"x_[A-Z][A-Za-z0-9]*")
_UNIT = re.compile(r"[A-Z][A-Za-z]*(-[A-Z][a-z]*)?s")
_SUBCATEGORIES = {
    "Compute": {"Virtual Machines", "Containers", "Serverless Compute", "Other (Compute)"},
    "Storage": {"Block Storage", "Object Storage", "File Storage", "Other (Storage)"},
    "Networking": {"Data Transfer", "Network Security", "Load Balancing", "Content Delivery",
                   "Network Management", "Other (Networking)"},
}  # fmt: skip


def faults(text: str) -> list[str]:
    """Return what is wrong with a file; nothing for one that conforms."""
    rows = list(csv.reader(io.StringIO(text)))
    if not rows:
        return ["there is no head"]
    head, *body = rows
    found = list(_head_faults(head))
    for number, row in enumerate(body, 2):
        if len(row) != len(head):
            found.append(f"row {number} has {len(row)} fields of {len(head)}")
            continue
        found += [
            f"row {number}: {says}" for says in _row_faults(dict(zip(head, row, strict=True)))
        ]
    return found


def _head_faults(head: list[str]) -> Iterator[str]:
    known = [column.name for column in COLUMNS]
    yield from (f"{name} is there twice" for name in set(head) if head.count(name) > 1)
    for column in COLUMNS:
        if column.level == "mandatory" and column.name not in head:
            yield f"{column.name} is mandatory"
    own = [name for name in head if name not in known]
    yield from (f"{name} is no column of 1.2" for name in own if not _OWN.fullmatch(name))
    if own and head[-len(own) :] != own:
        yield "own columns stand among the others"


def _row_faults(row: Mapping[str, str]) -> Iterator[str]:
    for column in COLUMNS:
        if column.name in row:
            yield from _value_faults(column, row[column.name])
    yield from _bounds_faults(row)
    yield from _usage_faults(row)
    allowed = _SUBCATEGORIES.get(row.get("ServiceCategory", ""), set())
    if row.get("ServiceSubcategory") not in allowed:
        yield f"ServiceSubcategory {row.get('ServiceSubcategory')!r} is not of its category"


def _value_faults(column: FocusColumn, value: str) -> Iterator[str]:
    if not value:
        if not column.may_be_null:
            yield f"{column.name} is null"
        return
    if column.allowed and value not in column.allowed:
        yield f"{column.name} {value!r} is not allowed"
    if column.kind == "decimal" and not _NUMBER.fullmatch(value):
        yield f"{column.name} {value!r} is no number"
    if column.kind == "date-time" and not _TIME.fullmatch(value):
        yield f"{column.name} {value!r} is no time in UTC"
    if column.kind == "json" and not _is_tags(value):
        yield f"{column.name} {value!r} is no object of keys and values"


def _is_tags(value: str) -> bool:
    try:
        found = json.loads(value)
    except ValueError:
        return False
    return isinstance(found, dict) and all(isinstance(one, str) for one in found.values())


def _bounds_faults(row: Mapping[str, str]) -> Iterator[str]:
    names = ("BillingPeriodStart", "ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodEnd")
    times = [row.get(name, "") for name in names]
    if not all(_TIME.fullmatch(time) for time in times):
        return
    first, begin, end, last = (datetime.fromisoformat(time) for time in times)
    if not first <= begin < last:
        yield "the charge does not begin in its billing period"
    if not begin < end:
        yield "the charge ends before it begins"
    if first != first.replace(day=1, hour=0, minute=0, second=0) or first.tzinfo != UTC:
        yield "the billing period is no month"


def _usage_faults(row: Mapping[str, str]) -> Iterator[str]:
    if row.get("ChargeCategory") != "Usage":
        return
    needed = ("PricingQuantity", "PricingUnit", "ConsumedQuantity", "ConsumedUnit")
    yield from (f"{name} is null for usage" for name in needed if not row.get(name))
    for name in ("PricingUnit", "ConsumedUnit"):
        if row.get(name) and not _UNIT.fullmatch(row[name]):
            yield f"{name} {row[name]!r} is no unit"
    for name in ("BilledCost", "EffectiveCost", "ContractedCost"):
        if _NUMBER.fullmatch(row.get(name, "")) and Decimal(row[name]) < 0:
            yield f"{name} of usage is below 0"
