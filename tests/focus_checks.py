"""A validator of our own for FOCUS 1.2: what a file breaks, row by row, as sentences.

The rules are those of the specification's text for the columns that are written, with their
attributes: numbers without signs of plus, separators or exponents, times in UTC with a Z, nulls as
nothing, allowed values, own columns behind the others with the prefix `x_`, periods half open. What
a column may be beside others stands in `RULES`, each with the file of the specification
(github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec, below specification/) that says so; read on
2026-12-01.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from cloudwhale.reporting.focus_columns import COLUMNS, FocusColumn

_NUMBER = re.compile(r"-?\d+(\.\d+)?")  # attributes/numeric_format.md: no exponents
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_OWN = re.compile(r"x_[A-Z][A-Za-z0-9]*")
_UNIT = re.compile(r"([A-Z][A-Za-z]*-)?[A-Z][a-z]*s")
_BLANK = re.compile(r"\s*")
_STANDS_FOR_NOTHING = frozenset({"", "n/a", "none", "null", "not applicable", "unknown", "-"})
_SUBCATEGORIES = {
    "Compute": {"Containers", "End User Computing", "Quantum Computing", "Serverless Compute",
                "Virtual Machines", "Other (Compute)"},
    "Storage": {"Backup Storage", "Block Storage", "File Storage", "Object Storage",
                "Storage Platforms", "Other (Storage)"},
    "Networking": {"Application Networking", "Content Delivery", "Network Connectivity",
                   "Network Infrastructure", "Network Routing", "Network Security",
                   "Other (Networking)"},
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
    yield from (rule.says for rule in RULES if rule.breaks(row))
    yield from _bounds_faults(row)
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


# -- what columns are beside others ------------------------------------------------------------

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """What the specification asks of a row."""

    source: str
    says: str
    """Said of a row that breaks it."""
    breaks: Callable[[Row], bool]


def _number(row: Row, name: str) -> Decimal | None:
    value = row.get(name, "")
    return Decimal(value) if _NUMBER.fullmatch(value) else None


def _is_usage(row: Row) -> bool:
    """Say whether a row is of usage, and corrects nothing: all of ours are."""
    return row.get("ChargeCategory") == "Usage" and row.get("ChargeClass") != "Correction"


def _needed_for_usage(name: str) -> Rule:
    return Rule(
        f"columns/{name.lower()}.md", f"{name} is null for usage",
        lambda row: _is_usage(row) and not row.get(name),
    )  # fmt: skip


def _of_unit_format(name: str) -> Rule:
    return Rule(
        "attributes/unit_format.md", f"{name} is no unit",
        lambda row: bool(row.get(name)) and not _UNIT.fullmatch(row[name]),
    )  # fmt: skip


def _not_below_0(name: str) -> Rule:
    return Rule(
        f"columns/{name.lower()}.md", f"{name} of usage is below 0",
        lambda row: _is_usage(row) and (_number(row, name) or 0) < 0,
    )  # fmt: skip


def _both_or_none(name: str, other: str) -> Rule:
    return Rule(
        f"columns/{name.lower()}.md", f"{name} is null where {other} is not, or the other way",
        lambda row: bool(row.get(name)) != bool(row.get(other)),
    )  # fmt: skip


def _says_nothing(column: FocusColumn) -> Rule:
    """A value that stands for none: where null is allowed, null says so; else it is no blank."""

    def breaks(row: Row) -> bool:
        value = row.get(column.name, "")
        if column.may_be_null:
            return bool(value) and value.strip().lower() in _STANDS_FOR_NOTHING
        return bool(value) and _BLANK.fullmatch(value) is not None

    return Rule("attributes/null_handling.md", f"{column.name} stands for nothing", breaks)


RULES: tuple[Rule, ...] = (
    *(
        _needed_for_usage(name)
        for name in (
            "PricingQuantity", "PricingUnit", "ConsumedQuantity", "ConsumedUnit", "PricingCategory"
        )
    ),
    *(_of_unit_format(name) for name in ("PricingUnit", "ConsumedUnit")),
    *(_not_below_0(name) for name in ("BilledCost", "EffectiveCost", "ContractedCost")),
    Rule(
        "columns/consumedquantity.md", "ConsumedQuantity of usage is not above 0",
        lambda row: _is_usage(row) and (_number(row, "ConsumedQuantity") or 0) <= 0,
    ),
    Rule(
        "columns/chargefrequency.md", "a purchase is never Usage-Based",
        lambda row: row.get("ChargeCategory") == "Purchase"
        and row.get("ChargeFrequency") == "Usage-Based",
    ),
    Rule(
        "columns/resourcename.md", "ResourceName says ResourceId again, which nobody has chosen",
        lambda row: bool(row.get("ResourceName")) and row["ResourceName"] == row.get("ResourceId"),
    ),
    _both_or_none("ResourceType", "ResourceId"),
    _both_or_none("RegionName", "RegionId"),
    _both_or_none("SubAccountName", "SubAccountId"),
    Rule(
        "columns/availabilityzone.md", "AvailabilityZone is of no region",
        lambda row: bool(row.get("AvailabilityZone")) and not row.get("RegionId"),
    ),
    Rule(
        "columns/tags.md", "Tags that no user has set have a prefix",
        lambda row: not all("/" in key for key in _tags_of(row)),
    ),
    Rule(
        "columns/billingcurrency.md", "BillingCurrency is no code of ISO 4217",
        lambda row: not re.fullmatch("[A-Z]{3}", row.get("BillingCurrency", "")),
    ),
    *(_says_nothing(column) for column in COLUMNS if column.kind == "string"),
)  # fmt: skip


def _tags_of(row: Row) -> Iterable[str]:
    value = row.get("Tags", "")
    return json.loads(value) if value and _is_tags(value) else ()
