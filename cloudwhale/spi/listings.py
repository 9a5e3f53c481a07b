"""Price lists as text: the columns of a CSV file, read into listings and written from them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

from cloudwhale.model.gpus import MODELS, canonical
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.prices import Listing, Price, Shape
from cloudwhale.spi.rows import Row, rows, wrong
from cloudwhale.spi.spelling import NAMES, hourly, instant, is_name

COLUMNS = (
    "provider", "type", "region", "zones", "gpu", "gpus", "gpu_gib", "cpu", "memory_gib",
    "disk_gib", "on_demand_usd_h", "spot_usd_h", "hazard_per_h", "on_demand_at", "spot_at",
    "on_demand_source", "spot_source", "estimated",
)  # fmt: skip
"""All that can be said of a listing, in the order in which it is written."""

NEEDED = frozenset(("provider", "type", "region", "cpu", "memory_gib"))
"""A file without these columns cannot be used; one of the two prices is needed as well."""

FOREIGN = frozenset(("currency",))
"""Columns that are read and not written: all money is in US dollars."""

_PRICES = frozenset(("on_demand_usd_h", "spot_usd_h"))

MOST_GPUS = 1_024
"""Of one machine; the largest racks that are sold as one have 72."""


class Origin(NamedTuple):
    """Where a text comes from, and what holds where it is silent."""

    file: str
    at: Instant
    """The date of prices that have none of their own."""
    source: str


def read(lines: Iterable[str], origin: Origin) -> Iterator[Listing]:
    """Yield the listings of a file; raise SettingsError, naming line and column, for a wrong one.

    Lines that begin with `#` are passed over.
    """
    reading = _Reading(origin)
    for row in rows(lines, origin.file, known=frozenset(COLUMNS) | FOREIGN, needed=NEEDED):
        if not _PRICES & row.cells.keys():
            raise SettingsError(
                f"{origin.file}: it has no column of prices", f"Add {' or '.join(sorted(_PRICES))}."
            )
        yield reading.listing(row)


class _Reading:
    """Reads rows; remembers shapes and dates, of which there are few for many rows."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._shapes: dict[tuple[str, ...], Shape] = {}
        self._instants: dict[str, Instant] = {}
        self._texts: dict[str, str] = {}

    def listing(self, row: Row) -> Listing:
        self._in_dollars(row)
        zones, by_zone = self._zones(row)
        estimated = self._estimated(row)
        spot = self._price(row, "spot", "spot" in estimated)
        if by_zone:
            if spot is not None:
                own, others = dict(by_zone), spot.usd_h
                by_zone = tuple((name, own.get(name, others)) for name in zones)
            at, who = self._at(row, "spot_at"), self._source(row, "spot")
            spot = Price(min(price for _, price in by_zone), at, who, "spot" in estimated, by_zone)
        return Listing(
            self._shape(row), self._one(self._name(row, "region")), zones,
            self._price(row, "on_demand", "on-demand" in estimated), spot,
            self._number(row, "hazard_per_h"),
        )  # fmt: skip

    def _in_dollars(self, row: Row) -> None:
        currency = row.cells.get("currency", "").strip()
        if currency.upper() not in ("", "USD"):
            raise self._wrong(
                row, "currency", "is not USD", "Convert the prices to US dollars; no rate is known."
            )

    def _shape(self, row: Row) -> Shape:
        cells = row.cells
        key = tuple(cells.get(name, "") for name in ("provider", "type", *_OF_SHAPE))
        if key not in self._shapes:
            self._shapes[key] = self._new_shape(row)
        return self._shapes[key]

    def _new_shape(self, row: Row) -> Shape:
        provider, name = self._name(row, "provider"), self._name(row, "type")
        gpus = self._gpus(row)
        gpu_gib = self._number(row, "gpu_gib") or 0.0
        cpu, memory_gib = self._number(row, "cpu"), self._number(row, "memory_gib")
        for column, amount in (("cpu", cpu), ("memory_gib", memory_gib)):
            if not amount:
                raise self._wrong(row, column, "is not above 0", "Say what the machine has.")
        return Shape(
            provider, name,
            self._gpu(row, gpu_gib) if gpus else "", gpus, gpu_gib if gpus else 0.0,
            cpu or 0.0, memory_gib or 0.0, self._number(row, "disk_gib") or 0.0,
        )  # fmt: skip

    def _gpus(self, row: Row) -> int:
        gpus = self._number(row, "gpus") or 0.0
        if gpus != int(gpus):
            raise self._wrong(row, "gpus", "is no whole number", "Leave out parts of GPUs.")
        if gpus > MOST_GPUS:
            raise self._wrong(row, "gpus", f"is above {MOST_GPUS:,}", "Say those of one machine.")
        if not gpus and row.cells.get("gpu", "").strip():
            raise self._wrong(row, "gpus", "are none of a model", "Say how many there are.")
        return int(gpus)

    def _name(self, row: Row, column: str, text: str | None = None) -> str:
        """Return a word that can be part of an offer's id; `text`: one of several in the cell."""
        name = (row.cells[column] if text is None else text).strip()
        if not is_name(name):
            raise self._wrong(row, column, "is no name", f"{NAMES}.")
        return name

    def _gpu(self, row: Row, gpu_gib: float) -> str:
        name = row.cells.get("gpu", "").strip()
        found = canonical(name, gpu_gib) if name else None
        if found is None:
            raise self._wrong(
                row, "gpu", "is no GPU model that is known", f"Known: {', '.join(MODELS)}."
            )
        return found

    def _zones(self, row: Row) -> tuple[tuple[str, ...], tuple[tuple[str, MicroUsd], ...]]:
        """Return the zones, and spot prices where some are said: `a=0.41;b=0.45`."""
        names: list[str] = []
        priced: list[tuple[str, MicroUsd]] = []
        for part in row.cells.get("zones", "").split(";"):
            word, equals, price = part.strip().partition("=")
            if not word and not equals:
                continue
            name = self._one(self._name(row, "zones", word))
            if name in names:
                raise self._wrong(row, "zones", f"has {name} twice", "Remove one of them.")
            names.append(name)
            if equals:
                priced.append((name, self._money(row, "zones", price)))
        return tuple(names), tuple(priced)

    def _estimated(self, row: Row) -> Sequence[str]:
        said = row.cells.get("estimated", "").split()
        if any(word not in ("on-demand", "spot") for word in said):
            raise self._wrong(
                row, "estimated", "names no market", "Write on-demand, spot, both, or nothing."
            )
        return said

    def _price(self, row: Row, market: str, estimated: bool) -> Price | None:
        column = f"{market}_usd_h"
        text = row.cells.get(column, "").strip()
        if not text:
            return None
        at = self._at(row, f"{market}_at")
        return Price(self._money(row, column, text), at, self._source(row, market), estimated)

    def _money(self, row: Row, column: str, text: str) -> MicroUsd:
        try:
            return hourly(text)
        except ValueError as error:
            raise self._wrong(
                row, column, str(error),
                "Write US dollars an hour, like 0.53; leave it empty where it is unknown.",
            ) from error  # fmt: skip

    def _at(self, row: Row, column: str) -> Instant:
        text = row.cells.get(column, "").strip()
        if not text:
            return self._origin.at
        if text not in self._instants:
            try:
                self._instants[text] = instant(text)
            except ValueError as error:
                raise self._wrong(row, column, str(error), "Write it like 2026-07-30.") from error
        return self._instants[text]

    def _source(self, row: Row, market: str) -> str:
        return self._one(row.cells.get(f"{market}_source", "").strip() or self._origin.source)

    def _number(self, row: Row, column: str) -> float | None:
        text = row.cells.get(column, "").strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1e9:
            raise self._wrong(row, column, "is not a number from 0 on", "Write one, or nothing.")
        return value

    def _one(self, text: str) -> str:
        """Return the same text as one object, however often it is read."""
        return self._texts.setdefault(text, text)

    def _wrong(self, row: Row, column: str, says: str, remedy: str) -> SettingsError:
        return wrong(self._origin.file, row, column, says, remedy)


_OF_SHAPE = ("gpu", "gpus", "gpu_gib", "cpu", "memory_gib", "disk_gib")


# -- writing ---------------------------------------------------------------------------------


def written(listings: Iterable[Listing], comments: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of a file that `read` gives the same listings for."""
    yield from (f"# {comment}".rstrip() + "\n" for comment in comments)
    yield ",".join(COLUMNS) + "\n"
    for listing in listings:
        yield ",".join(map(_quoted, _cells(listing))) + "\n"


def _cells(listing: Listing) -> Sequence[str]:
    shape, on_demand, spot = listing.shape, listing.on_demand, listing.spot
    estimated = [
        market
        for market, price in (("on-demand", on_demand), ("spot", spot))
        if price is not None and price.estimated
    ]
    return (
        shape.provider, shape.type, listing.region, _zones_text(listing), shape.gpu,
        _plain(shape.gpus), _plain(shape.gpu_gib), _plain(shape.cpu), _plain(shape.memory_gib),
        _plain(shape.disk_gib), _of(on_demand, _usd), _of(spot, _usd),
        "" if listing.hazard_per_h is None else f"{listing.hazard_per_h:.6g}",
        _of(on_demand, _date), _of(spot, _date), _of(on_demand, _who), _of(spot, _who),
        " ".join(estimated),
    )  # fmt: skip


def _zones_text(listing: Listing) -> str:
    prices = dict(listing.spot.zones) if listing.spot is not None else {}
    names = dict.fromkeys((*listing.zones, *prices))
    return ";".join(
        f"{name}={_dollars(prices[name])}" if name in prices else name for name in names
    )


def _of(price: Price | None, word: Callable[[Price], str]) -> str:
    return "" if price is None else word(price)


def _usd(price: Price) -> str:
    """Return what holds in all zones; nothing where they have prices of their own."""
    return "" if price.zones else _dollars(price.usd_h)


def _dollars(amount: MicroUsd) -> str:
    return f"{Decimal(amount) / 1_000_000:f}"


def _date(price: Price) -> str:
    when = datetime.fromtimestamp(price.at, UTC)
    is_midnight = when.timestamp() % 86400 == 0
    return when.date().isoformat() if is_midnight else when.isoformat(timespec="seconds")


def _who(price: Price) -> str:
    return price.source


def _plain(amount: float) -> str:
    return f"{amount:.10g}" if amount else ""


def _quoted(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if any(c in text for c in ',"\n\r') else text
