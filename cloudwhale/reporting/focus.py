"""Lines of cost as FOCUS 1.2, for programs of finance.

A ledger of years has hundreds of thousands of rows, most of whose texts are those of other rows:
what does not change from line to line is put into text once (`_frame`).
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from cloudwhale.model.cost import CostLine
from cloudwhale.model.units import MICRO_PER_USD, MicroUsd
from cloudwhale.planning.cost_sums import PURPOSES, milliseconds
from cloudwhale.reporting.cost_sheet import csv_of, field
from cloudwhale.reporting.figures import HOUR_S
from cloudwhale.reporting.focus_columns import WRITTEN
from cloudwhale.reporting.sheet import clean

AT_ONCE = 1000
"""So many lines are put into text at a time: a ledger may be larger than memory."""

UNKNOWN = "unknown"
"""What a column says that may not be empty, where an older program has not kept it."""

PREFIX = "cloudwhale/"
"""Before the keys of tags: nobody at the cloud has set them."""

DAY_S = 86_400


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
    "egress": _Service("Data transfer", "Networking", "Other (Networking)", "Charges"),
}


class _Fixed(NamedTuple):
    """What many lines have in common."""

    provider: str
    region: str
    zone: str
    market: str
    type: str
    gpu: str
    project: str
    user: str
    family: str
    has_gpu: bool


def focus_csv(lines: Iterable[CostLine]) -> Iterator[str]:
    """Yield a CSV of charges in some pieces: a row for each part of each line that cost something.

    `BilledCost` of the rows of a line adds up to what it spent, `ListCost` to what it would have
    cost on demand, where that is known. What the whole line was for stands in its first row, so
    that sums of these columns are right.
    """
    yield csv_of(WRITTEN, ())
    all_of = iter(lines)
    while piece := list(islice(all_of, AT_ONCE)):
        yield "".join([f"{row}\n" for line in piece for row in _rows(line)])


def _rows(line: CostLine) -> Iterator[str]:
    frames, begin, end = _frames(_fixed(line)), *_seconds(line)
    first, after = _month(begin // DAY_S)
    begins, ends, hours = _moment(begin), _moment(end), _millionths(end - begin, HOUR_S)
    rental, run, job = _quoted(line.rental), _quoted(line.run), _quoted(line.job or "")
    tags, words = _in_quotes(_tags(line)), _words(line)
    purposes = [money(amount) for amount in _PURPOSES(line.purposes)]
    for item, frame in frames.items():
        billed: MicroUsd = getattr(line.items, item)
        if not billed:
            continue
        row = frame.copy()
        row[_MONTH_BEGINS], row[_MONTH_ENDS], row[_BEGINS], row[_ENDS] = first, after, begins, ends
        row[_RENTAL], row[_RUN], row[_JOB], row[_TAGS] = rental, run, job, tags
        row[_SAID] = _in_quotes(f"{SERVICES[item].name}{words}")
        row[_PRICED] = row[_CONSUMED] = "1" if item == "egress" else hours
        row[_BILLED] = row[_CONTRACTED] = row[_EFFECTIVE] = row[_LIST] = money(billed)
        if item == "machine":
            row[_LIST] = money(_listed(line, billed))
            if line.gpu_s > 0:
                row[_CONSUMED] = _millionths(milliseconds(line.gpu_s), 1000 * HOUR_S)
        row[-len(PURPOSES) :] = purposes
        purposes = [""] * len(PURPOSES)
        yield ",".join(row)


_AT = {name: place for place, name in enumerate(WRITTEN)}
_MONTH_BEGINS, _MONTH_ENDS = _AT["BillingPeriodStart"], _AT["BillingPeriodEnd"]
_BEGINS, _ENDS = _AT["ChargePeriodStart"], _AT["ChargePeriodEnd"]
_RENTAL, _RUN, _JOB, _TAGS = _AT["ResourceId"], _AT["x_Run"], _AT["x_Job"], _AT["Tags"]
_SAID, _PRICED, _CONSUMED = (
    _AT["ChargeDescription"], _AT["PricingQuantity"], _AT["ConsumedQuantity"],
)  # fmt: skip
_BILLED, _CONTRACTED, _EFFECTIVE, _LIST = (
    _AT["BilledCost"], _AT["ContractedCost"], _AT["EffectiveCost"], _AT["ListCost"],
)  # fmt: skip
_PURPOSES = attrgetter(*PURPOSES)


def _fixed(line: CostLine) -> _Fixed:
    return _Fixed(
        line.provider, line.region, line.zone, line.market, line.type, line.gpu, line.project,
        line.user, line.family, line.gpu_s > 0,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _frames(fixed: _Fixed) -> Mapping[str, list[str]]:
    """Return the rows of all items without what changes from line to line, as fields of CSV."""
    return {item: _frame(fixed, item) for item in SERVICES}


def _frame(fixed: _Fixed, item: str) -> list[str]:
    service, provider = SERVICES[item], fixed.provider or UNKNOWN
    is_gpu = item == "machine" and fixed.has_gpu
    said = {
        "AvailabilityZone": fixed.zone,
        "BillingAccountId": provider,
        "BillingAccountName": fixed.provider,
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ConsumedUnit": "GPU-Hours" if is_gpu else service.unit,
        "InvoiceIssuerName": provider,
        "PricingCategory": "Dynamic" if fixed.market == "spot" else "Standard",
        "PricingUnit": service.unit,
        "ProviderName": provider,
        "PublisherName": provider,
        "RegionId": fixed.region,
        "RegionName": fixed.region,
        "ResourceType": service.name,
        "ServiceCategory": service.category,
        "ServiceName": service.name,
        "ServiceSubcategory": service.subcategory,
        "SubAccountId": fixed.project,
        "SubAccountName": fixed.project,
        "x_User": fixed.user,
        "x_Family": fixed.family,
        "x_Market": fixed.market,
        "x_MachineType": fixed.type,
        "x_GpuModel": fixed.gpu,
    }
    return [_quoted(said.get(name, "")) for name in WRITTEN]


def _words(line: CostLine) -> str:
    """Return of which machine and for whom a line is."""
    machine = " ".join(filter(None, (line.type, line.market)))
    of = f" of {machine}" if machine else ""
    return f"{of} for {f'job {line.job}' if line.job else f'run {line.run}'}"


def _listed(line: CostLine, machine: MicroUsd) -> MicroUsd:
    """Return what the machine's part would have been on demand: the other parts are no dearer."""
    if line.on_demand is None:
        return machine
    return MicroUsd(line.on_demand - (line.spent - machine))


def _tags(line: CostLine) -> str:
    tags = {"family": line.family, "project": line.project, "run": line.run, "user": line.user}
    each = (f'"{PREFIX}{key}": {_json(value)}' for key, value in tags.items() if value)
    return f"{{{', '.join(each)}}}"


@lru_cache(maxsize=4096)
def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _quoted(text: str) -> str:
    """Return a text as a field of CSV, in quotes where it needs them."""
    if _IS_PLAIN(text):
        return text
    made = field(text)
    return _in_quotes(made) if _IS_SPECIAL(made) else made


_IS_PLAIN = re.compile(r"[A-Za-z0-9][\w ./:-]*", re.ASCII).fullmatch
_IS_SPECIAL = re.compile(r'[",\r\n]').search


def _in_quotes(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula as a field of CSV, in quotes."""
    if not text.isprintable():
        text = " ".join(clean(text).splitlines())
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


# -- amounts and times -----------------------------------------------------------------------


def money(amount: MicroUsd) -> str:
    """Return micro-dollars as dollars, to the micro-dollar."""
    if not amount:
        return "0.000000"
    whole, rest = divmod(abs(amount), MICRO_PER_USD)
    return f"{'-' if amount < 0 else ''}{whole}.{rest:06d}"


def _millionths(some: int, of: int) -> str:
    """Return a quantity of usage with six digits; above 0, however little it is."""
    whole, rest = divmod(max(1, (2 * some * MICRO_PER_USD + of) // (2 * of)), MICRO_PER_USD)
    return f"{whole}.{rest:06d}"


def _seconds(line: CostLine) -> tuple[int, int]:
    """Return the whole seconds that hold the charge; one at least, as an end is exclusive."""
    begin = math.floor(line.began_at)
    return begin, max(begin + 1, math.ceil(line.ended_at))


@lru_cache(maxsize=4096)
def _month(day: int) -> tuple[str, str]:
    """Return the month (UTC) in which a charge begins: its first moment, and the next one's."""
    at = datetime.fromtimestamp(day * DAY_S, UTC)
    begin = datetime(at.year, at.month, 1, tzinfo=UTC)
    after = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
    return _moment(int(begin.timestamp())), _moment(int(after.timestamp()))


def _moment(at: int) -> str:
    """Return a whole second in UTC as `2026-11-30T23:59:59Z`."""
    day, second = divmod(at, DAY_S)
    return f"{_date(day)}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


@lru_cache(maxsize=4096)
def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()
