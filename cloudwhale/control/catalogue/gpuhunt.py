"""gpuhunt's catalogue (github.com/dstackai/gpuhunt): one row an instance, location and market."""

from collections.abc import Iterator, Mapping, Sequence

from cloudwhale.model.gpus import canonical
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.listings import MOST_GPUS, Origin
from cloudwhale.spi.prices import Listing, Price, PriceList, Shape
from cloudwhale.spi.rows import Row, rows, wrong
from cloudwhale.spi.spelling import NAMES, hourly, is_name

NEEDED = frozenset(
    ("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory",
     "spot")
)  # fmt: skip
KNOWN = NEEDED | {
    "disk_size", "provider", "gpu_vendor", "cpu_arch", "flags", "provider_data", "memory_gb",
}  # fmt: skip
"""Its `RawCatalogItem` and `CatalogItem` of all versions."""

_MARKETS = {"true": True, "false": False}
"""Values of `spot`."""

_Priced = dict[tuple[str, bool], MicroUsd]
"""By location, and whether it is spot."""


def is_its(lines: Sequence[str]) -> bool:
    """Say whether a file has gpuhunt's heading."""
    heading = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return {"instance_name", "location", "price"} <= {name.strip() for name in heading.split(",")}


def read(lines: Sequence[str], origin: Origin, lists: Mapping[str, PriceList]) -> Iterator[Listing]:
    """Yield listings, one a type and region; raise SettingsError for a wrong row.

    `lists`: those that are installed, by provider; each knows its zones, and what disks it adds.

    Files of one provider are named after it. Locations are zones where its price list says so.
    GPUs of other makers, models that are not known, parts of GPUs, machines without CPUs or memory,
    and prices of nothing are passed over. Where one name stands for several machines (with GPUs
    attached or without), the smallest is taken: the name alone rents no other. Of two prices of one
    thing the first holds.
    """
    found: dict[tuple[str, str, str], dict[Shape, _Priced]] = {}
    for row in rows(lines, origin.file, known=KNOWN, needed=NEEDED):
        shape = _shape(row, origin, lists)
        price = _price(row, origin.file)
        is_spot = _is_spot(row, origin.file)
        if shape is None or price is None:
            continue
        location = _name(row, "location", origin.file)
        knows = lists.get(shape.provider)
        region = location if knows is None else knows.region_of(location)
        shapes = found.setdefault((shape.provider, shape.type, region), {})
        shapes.setdefault(shape, {}).setdefault((location, is_spot), price)
    for (_, _, region), shapes in found.items():
        smallest = min(shapes, key=_size)
        yield _listing(smallest, region, shapes[smallest], origin)


def _size(shape: Shape) -> tuple[int, float, float, Shape]:
    return shape.gpus, shape.cpu, shape.memory_gib, shape


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


def _shape(row: Row, origin: Origin, lists: Mapping[str, PriceList]) -> Shape | None:
    cells, file = row.cells, origin.file
    provider = cells.get("provider", "").strip() or origin.source.partition(".")[0]
    name = _name(row, "instance_name", file)
    if not is_name(provider):
        raise wrong(file, row, "provider", "is no name", f"{NAMES}.")
    count, gpu_gib = _number(row, "gpu_count", file), _number(row, "gpu_memory", file)
    cpu, memory_gib = _number(row, "cpu", file), _number(row, "memory", file)
    gpu = canonical(cells["gpu_name"], gpu_gib) if count else ""
    is_made_by_others = cells.get("gpu_vendor", "").strip().lower() not in ("", "nvidia")
    if gpu is None or (count and is_made_by_others) or _is_arm(row):
        return None
    if count != int(count) or count > MOST_GPUS or not cpu or not memory_gib:
        return None
    return Shape(
        provider, name, gpu, int(count), gpu_gib if count else 0.0, cpu, memory_gib,
        _number(row, "disk_size", file) if provider not in lists else 0.0,
    )  # fmt: skip


def _name(row: Row, column: str, file: str) -> str:
    """Return a word that can be part of an offer's id; some of theirs have a `/`."""
    name = row.cells[column].strip().replace("/", "-")
    if not is_name(name):
        raise wrong(file, row, column, "is no name", f"{NAMES}.")
    return name


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
    try:
        return hourly(text) if text else None
    except ValueError as error:
        raise wrong(
            file, row, "price", str(error),
            "Write US dollars an hour; leave it empty where it is unknown.",
        ) from error  # fmt: skip


def _is_spot(row: Row, file: str) -> bool:
    said = _MARKETS.get(row.cells["spot"].strip().lower())
    if said is None:
        raise wrong(file, row, "spot", "is neither true nor false", "Write one of the two.")
    return said
