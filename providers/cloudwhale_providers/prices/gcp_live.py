"""GCP's prices as they are now: the billing catalogue with an API key, a public table without."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.prices import Listing, Market, Price, Reading, Shape, Told
from cloudwhale.spi.spelling import hourly
from cloudwhale_providers.prices import web
from cloudwhale_providers.prices.gcp_billing import SERVICE, Parts, machine_usd_h, parts

PAGE_MOST_BYTES = 64 * 2**20
PAGES_MOST = 40  # there are about eight of 5,000 parts
TABLE_MOST_BYTES = 64 * 2**20  # it has three MB

KEY_NAME = "GOOGLE_API_KEY"
NO_KEY = (
    f"No ${KEY_NAME} is set, so GCP's prices were taken from the table of Cyclenerd's "
    f"google-cloud-pricing-cost-calculator, which is days or weeks old."
)

Known = Mapping[tuple[str, str], Listing]
"""Listings by type and region."""


@dataclass(frozen=True, slots=True)
class GcpSources:
    """Who is asked; addresses can be others in a trial."""

    billing: str = "https://cloudbilling.googleapis.com"
    table: str = (
        "https://raw.githubusercontent.com/Cyclenerd/google-cloud-pricing-cost-calculator/master"
    )
    api_key: str = ""
    """Empty: the table is read."""


@dataclass(frozen=True, slots=True)
class Priced:
    """Prices of machine types in regions, from one source."""

    on_demand: Mapping[tuple[str, str], MicroUsd]
    spot: Mapping[tuple[str, str], MicroUsd]
    at: Instant
    source: str
    notes: tuple[str, ...] = ()


def read(
    sources: GcpSources, regions: Sequence[str], known: Known, now: Instant, told: Told
) -> Reading:
    """Return what the sources say of the types that are known; raise Unreachable or Denied."""
    if not regions:
        return Reading(())
    shapes = {shape.type: shape for shape in (one.shape for one in known.values())}
    offered = {(name, region) for name, region in known if region in regions}
    notes: list[str] = []
    if sources.api_key:
        priced = _from_billing(sources, shapes, regions, now, told)
        offered |= {key for key in priced.on_demand if key[1] not in {r for _, r in known}}
    else:
        notes.append(NO_KEY)
        priced = _from_table(sources, regions, now, told)
        offered |= _types_by_region(sources, shapes, regions, told)
    listings = tuple(_listings(sorted(offered), shapes, priced, known))
    if not listings:
        raise Unreachable("none of the machine types that are looked for has a price there")
    return Reading(listings, frozenset(regions), (*notes, *priced.notes))


def _listings(
    offered: Sequence[tuple[str, str]], shapes: Mapping[str, Shape], priced: Priced, known: Known
) -> Iterator[Listing]:
    for name, region in offered:
        on_demand = priced.on_demand.get((name, region))
        spot = priced.spot.get((name, region))
        if name in shapes and (on_demand is not None or spot is not None):
            before = known.get((name, region))
            yield Listing(
                shapes[name], region, before.zones if before else (),
                _price(on_demand, priced), _price(spot, priced), _hazard(known),
            )  # fmt: skip


def _price(amount: MicroUsd | None, priced: Priced) -> Price | None:
    return None if amount is None else Price(amount, priced.at, priced.source)


def _hazard(known: Known) -> float | None:
    """Return what is expected of all of them: nobody publishes it by type."""
    return next((one.hazard_per_h for one in known.values()), None)


# -- with a key --------------------------------------------------------------------------------


def _from_billing(
    sources: GcpSources,
    shapes: Mapping[str, Shape],
    regions: Sequence[str],
    now: Instant,
    told: Told,
) -> Priced:
    prices = parts(_skus(sources, told))
    markets: dict[Market, dict[tuple[str, str], MicroUsd]] = {"on-demand": {}, "spot": {}}
    for market, found in markets.items():
        for shape in shapes.values():
            for region in regions:
                amount = machine_usd_h(shape, region, market, prices)
                if amount is not None:
                    found[shape.type, region] = amount
    return Priced(
        markets["on-demand"], markets["spot"], now, "gcp billing", tuple(_unpriced(shapes, prices))
    )


def _unpriced(shapes: Mapping[str, Shape], prices: Parts) -> Iterator[str]:
    regions = {part.region for part in prices}
    none = [
        name
        for name, shape in shapes.items()
        if not any(machine_usd_h(shape, region, "on-demand", prices) for region in regions)
    ]
    if none:
        yield f"The billing catalogue has no price of {', '.join(sorted(none))} in any region."


def _skus(sources: GcpSources, told: Told) -> Iterator[Mapping[str, Any]]:
    """Yield the parts page by page; the key goes into a header, so that no address shows it."""
    token = ""
    for page in range(1, PAGES_MOST + 1):
        told(f"billing catalogue, page {page}")
        words = {
            "currencyCode": "USD",
            "pageSize": "5000",
            **({"pageToken": token} if token else {}),
        }
        url = f"{sources.billing}/v1/services/{SERVICE}/skus?{urlencode(words)}"
        found = web.document(url, PAGE_MOST_BYTES, told, {"X-Goog-Api-Key": sources.api_key})
        skus, token = found.get("skus"), found.get("nextPageToken") or ""
        if not isinstance(skus, list):
            raise Unreachable("the billing catalogue sent no parts")
        yield from skus
        if not token:
            return
    raise Unreachable(f"the billing catalogue has over {PAGES_MOST} pages")


# -- without -----------------------------------------------------------------------------------


def _from_table(sources: GcpSources, regions: Sequence[str], now: Instant, told: Told) -> Priced:
    told("price table")
    document = _table(web.text(f"{sources.table}/pricing.yml", TABLE_MOST_BYTES, told))
    on_demand: dict[tuple[str, str], MicroUsd] = {}
    spot: dict[tuple[str, str], MicroUsd] = {}
    try:
        at = min(float(document["about"]["timestamp"]), now)
        if not at >= 0:
            raise ValueError(f"its time is {at}")
        for name, machine in document["compute"]["instance"].items():
            for region in regions:
                said = machine["cost"].get(region)
                if said is not None:
                    on_demand[name, region] = hourly(str(said["hour"]))
                    if said.get("hour_spot"):
                        spot[name, region] = hourly(str(said["hour_spot"]))
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise Unreachable(f"the price table has another form now: {error!r}") from error
    return Priced(on_demand, spot, at, "cyclenerd")


def _table(text: str) -> Any:
    import yaml  # costs its time only here

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError) as error:
        raise Unreachable("the price table is not YAML") from error


def _types_by_region(
    sources: GcpSources, shapes: Mapping[str, Shape], regions: Sequence[str], told: Told
) -> set[tuple[str, str]]:
    """Return where types can be had: the table has prices of regions that have no such machine."""
    try:
        text = web.text(f"{sources.table}/tools/machinetyperegion.csv", TABLE_MOST_BYTES, told)
    except (Unreachable, Denied):
        return set()  # what was known is enough
    found: set[tuple[str, str]] = set()
    for line in text.splitlines()[1:]:
        cells = line.split(";")
        if len(cells) == 6 and cells[0] in shapes and cells[5] in regions and not cells[4]:
            found.add((cells[0], cells[5]))
    return found
