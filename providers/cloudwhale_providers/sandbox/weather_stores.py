"""What a weather file says of the object stores: how slow they are, and when they are out."""

from cloudwhale.model.units import Seconds
from cloudwhale_providers.sandbox.endpoint.weather_values import Outage
from cloudwhale_providers.sandbox.script import Spot
from cloudwhale_providers.sandbox.weather_parts import SPAN, seconds, span

SLOW_S: Seconds = 0.2
SLOW_MIB_S = 5.0
"""What `s3: slow` means."""
STORES = ("s3", "gs")


def pace(spot: Spot) -> tuple[Seconds, float | None]:
    """Return how much longer a store takes, and how many MiB a second it gives."""
    if spot.is_plain:
        return (SLOW_S, SLOW_MIB_S) if spot.truth({"slow": True, "fast": False}) else (0.0, None)
    fields = spot.fields(("delay", "mib_s"))
    rate = fields.get("mib_s")
    return (
        seconds(fields, "delay", 0.0),
        None if rate is None else rate.number(0.001, 1e6, "MiB a second, like 5"),
    )


def outage(spot: Spot) -> Outage:
    """Return which store is out, and when."""
    fields = spot.fields(("store", *SPAN))
    store = fields.get("store")
    if store is None or store.text not in STORES:
        raise (store or spot).wrong("is no store", f"Write `store: {' or '.join(STORES)}`.")
    return Outage(store.text, *span(fields))
