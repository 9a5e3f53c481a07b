"""gpuhunt's catalogue (github.com/dstackai/gpuhunt): one row an instance, location and market."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from cloudwhale.model.gpus import canonical
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.spi.listings import MOST_USD_H, Origin
from cloudwhale.spi.prices import Listing, Price, Shape
from cloudwhale.spi.rows import Row, rows, wrong

NEEDED = frozenset(
    ("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory",
     "spot")
)  # fmt: skip
KNOWN = NEEDED | {
    "disk_size", "provider", "gpu_vendor", "cpu_arch", "flags", "provider_data", "memory_gb",
}  # fmt: skip
"""Its `RawCatalogItem` and `CatalogItem` of all versions."""

_Key = tuple[Shape, str]


def is_its(lines: Sequence[str]) -> bool:
    """Say whether a file has gpuhunt's heading."""
    heading = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return {"instance_name", "location", "price"} <= {name.strip() for name in heading.split(",")}


def read(lines: Sequence[str], origin: Origin) -> Iterator[Listing]:
    """Yield listings, one a type and region; raise SettingsError for a wrong row.

    Files of one provider are named after it: `aws.csv`. Locations are zones where they look so.
    GPUs of other makers and of models that are not known are passed over, prices of nothing too.
    """
    found: dict[_Key, dict[tuple[str, bool], MicroUsd]] = {}
    for row in rows(lines, origin.file, known=KNOWN, needed=NEEDED):
        shape = _shape(row, origin)
        price = _price(row, origin.file)
        if shape is None or price is None:
            continue
        location = row.cells["location"].strip()
        region = region_of(location, shape.provider)
        is_spot = row.cells["spot"].strip().lower() == "true"
        found.setdefault((shape, region), {})[location, is_spot] = price
    for (shape, region), priced in found.items():
        yield _listing(shape, region, priced, origin)


def region_of(location: str, provider: str) -> str:
    """Return the region of a zone: `us-east-1a` and `us-central1-a` are zones, `us-east-1` none."""
    if provider == "aws" and location[-1:].isalpha() and location[-2:-1].isdigit():
        return location[:-1]
    if provider == "gcp" and location[-2:-1] == "-" and location[-1:].isalpha():
        return location[:-2]
    return location


def _listing(
    shape: Shape, region: str, priced: Mapping[tuple[str, bool], MicroUsd], origin: Origin
) -> Listing:
    zones = tuple(dict.fromkeys(place for place, _ in priced if place != region))
    on_demand = [price for (_, is_spot), price in priced.items() if not is_spot]
    spot = {place: price for (place, is_spot), price in priced.items() if is_spot}
    by_zone = tuple((place, price) for place, price in spot.items() if place != region)
    return Listing(
        shape, region, zones,
        Price(min(on_demand), origin.at, origin.source) if on_demand else None,
        Price(min(spot.values()), origin.at, origin.source, False, by_zone) if spot else None,
    )  # fmt: skip


def _shape(row: Row, origin: Origin) -> Shape | None:
    cells = row.cells
    provider = cells.get("provider", "").strip() or origin.source.partition(".")[0]
    name = cells["instance_name"].strip()
    if not name:
        raise wrong(origin.file, row, "instance_name", "is empty", "Name the machine type.")
    count = int(_number(row, "gpu_count", origin.file))
    gpu_gib = _number(row, "gpu_memory", origin.file)
    gpu = canonical(cells["gpu_name"], gpu_gib) if count else ""
    is_made_by_others = cells.get("gpu_vendor", "").strip().lower() not in ("", "nvidia")
    if gpu is None or (count and is_made_by_others) or _is_arm(row):
        return None
    return Shape(
        provider, name.replace("/", "-"), gpu, count, gpu_gib if count else 0.0,
        _number(row, "cpu", origin.file), _number(row, "memory", origin.file),
        _number(row, "disk_size", origin.file) if provider not in ("aws", "gcp") else 0.0,
    )  # fmt: skip


def _is_arm(row: Row) -> bool:
    return row.cells.get("cpu_arch", "").strip().lower() == "arm"


def _number(row: Row, column: str, file: str) -> float:
    text = row.cells.get(column, "").strip()
    try:
        value = float(text or 0)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise wrong(file, row, column, "is not a number from 0 on", "Write one, or nothing.")
    return value


def _price(row: Row, file: str) -> MicroUsd | None:
    text = row.cells["price"].strip()
    if not text:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not 0 <= amount <= MOST_USD_H:
        raise wrong(
            file, row, "price", f"is not between 0 and {MOST_USD_H:,}",
            "Write US dollars an hour; leave it empty where it is unknown.",
        )  # fmt: skip
    return micro_usd(amount)
