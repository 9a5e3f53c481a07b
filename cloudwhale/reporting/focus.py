"""Lines of cost as FOCUS 1.2, for programs of finance."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

from cloudwhale.model.cost import CostLine
from cloudwhale.model.units import Instant, MicroUsd, usd
from cloudwhale.planning.cost_sums import PURPOSES
from cloudwhale.reporting.cost_sheet import csv_of
from cloudwhale.reporting.costs import gpu_h
from cloudwhale.reporting.figures import HOUR_S
from cloudwhale.reporting.focus_columns import OWN, WRITTEN

AT_ONCE = 1000
"""So many rows are put into text at a time: a ledger may be larger than memory."""

UNKNOWN = "unknown"
"""What a column says that may not be empty, where an older program has not kept it."""


@dataclass(frozen=True, slots=True)
class _Service:
    """What a part of a bill is, in the words of the specification."""

    name: str
    category: str
    subcategory: str
    unit: str


SERVICES = {
    "machine": _Service("Virtual machines", "Compute", "Virtual Machines", "Hours"),
    "disk": _Service("Disks of virtual machines", "Storage", "Block Storage", "Hours"),
    "address": _Service("Public addresses", "Networking", "Other (Networking)", "Hours"),
    "egress": _Service("Data transfer", "Networking", "Data Transfer", "Transfers"),
}


def focus_csv(lines: Iterable[CostLine]) -> Iterator[str]:
    """Yield a CSV of charges in some pieces: a row for each part of each line that cost something.

    `BilledCost` of the rows of a line adds up to what it spent, `ListCost` to what it would have
    cost on demand, where that is known.
    """
    yield csv_of(WRITTEN, ())
    rows = (list(row.values()) for line in lines for row in focus_rows(line))
    while piece := list(islice(rows, AT_ONCE)):
        yield csv_of((), piece)


def focus_rows(line: CostLine) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a line by their columns, in their order; None is null.

    What the whole line was for stands in its first row, so that sums of these columns are right.
    """
    purposes: Mapping[str, Decimal | None] = _purposes(line)
    for name in SERVICES:
        billed: MicroUsd = getattr(line.items, name)
        if billed:
            row = _row(line, name, billed) | dict(purposes)
            yield {column: row[column] for column in WRITTEN}
            purposes = dict.fromkeys(purposes)


def _row(line: CostLine, item: str, billed: MicroUsd) -> dict[str, Any]:
    service, cost = SERVICES[item], usd(billed)
    begin, end = _seconds(line)
    provider = line.provider or UNKNOWN
    hours = (Decimal(end - begin) / HOUR_S).quantize(Decimal("0.000001"))
    quantity = Decimal(1) if item == "egress" else hours
    is_gpu = item == "machine" and line.gpu_s > 0
    return {
        "AvailabilityZone": line.zone or None,
        "BilledCost": cost,
        "BillingAccountId": provider,
        "BillingAccountName": provider,
        "BillingCurrency": "USD",
        **_billing_period(begin),
        "ChargeCategory": "Usage",
        "ChargeClass": None,
        "ChargeDescription": _described(line, service),
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": _moment(end),
        "ChargePeriodStart": _moment(begin),
        "ConsumedQuantity": round(gpu_h(line.gpu_s), 6) if is_gpu else quantity,
        "ConsumedUnit": "GPU-Hours" if is_gpu else service.unit,
        "ContractedCost": cost,
        "EffectiveCost": cost,
        "InvoiceIssuerName": provider,
        "ListCost": usd(_listed(line, billed)) if item == "machine" else cost,
        "PricingCategory": "Dynamic" if line.market == "spot" else "Standard",
        "PricingQuantity": quantity,
        "PricingUnit": service.unit,
        "ProviderName": provider,
        "PublisherName": provider,
        "RegionId": line.region or None,
        "RegionName": line.region or None,
        "ResourceId": line.rental,
        "ResourceName": line.rental,
        "ResourceType": service.name,
        "ServiceCategory": service.category,
        "ServiceName": service.name,
        "ServiceSubcategory": service.subcategory,
        "SubAccountId": line.project,
        "SubAccountName": line.project,
        "Tags": _tags(line),
        "x_Run": line.run,
        "x_User": line.user or None,
        "x_Job": line.job,
        "x_Family": line.family or None,
        "x_Market": line.market or None,
        "x_MachineType": line.type or None,
        "x_GpuModel": line.gpu or None,
    }


def _described(line: CostLine, service: _Service) -> str:
    machine = " ".join(filter(None, (line.type, line.market)))
    of = f" of {machine}" if machine else ""
    return f"{service.name}{of} for {f'job {line.job}' if line.job else f'run {line.run}'}"


def _listed(line: CostLine, machine: MicroUsd) -> MicroUsd:
    """Return what the machine's part would have been on demand: the other parts are no dearer."""
    if line.on_demand is None:
        return machine
    return MicroUsd(line.on_demand - (line.spent - machine))


def _tags(line: CostLine) -> str:
    tags = {"project": line.project, "run": line.run, "user": line.user, "family": line.family}
    return json.dumps(
        {key: value for key, value in tags.items() if value}, ensure_ascii=False, sort_keys=True
    )


def _purposes(line: CostLine) -> Mapping[str, Decimal]:
    names = OWN[-len(PURPOSES) :]
    return {
        own: usd(getattr(line.purposes, name)) for own, name in zip(names, PURPOSES, strict=True)
    }


def _seconds(line: CostLine) -> tuple[int, int]:
    """Return the whole seconds that hold the charge; one at least, as an end is exclusive."""
    begin = math.floor(line.began_at)
    return begin, max(begin + 1, math.ceil(line.ended_at))


def _billing_period(at: Instant) -> Mapping[str, str]:
    """Return the month (UTC) in which a charge begins."""
    day = datetime.fromtimestamp(at, UTC)
    begin = datetime(day.year, day.month, 1, tzinfo=UTC)
    after = datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=UTC)
    return {
        "BillingPeriodEnd": _moment(after.timestamp()),
        "BillingPeriodStart": _moment(begin.timestamp()),
    }


def _moment(at: Instant) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
