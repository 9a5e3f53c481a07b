"""Parts that several keys of a weather file have: which machines are meant, and from when on."""

from collections.abc import Mapping

from cloudwhale.model.units import Seconds
from cloudwhale_providers.sandbox.endpoint.weather_values import Which
from cloudwhale_providers.sandbox.script import Spot

MARKETS = ("spot", "on-demand")
WHICH = ("type", "zone", "market")
SPAN = ("from", "until")


def which(fields: Mapping[str, Spot], market: str = "*") -> Which:
    """Return which offers or machines are meant; all where nothing is said."""
    said = {key: fields[key].text for key in WHICH if key in fields}
    if "market" in said and said["market"] not in MARKETS:
        raise fields["market"].wrong("is no market", f"Write {' or '.join(MARKETS)}.")
    return Which(**{"market": market, **said})


def nth(fields: Mapping[str, Spot]) -> int | None:
    """Return which of them by launch, from 1; None: each."""
    wanted = "which of them by launch, like 1 for the first"
    return fields["machine"].whole(1, 1_000_000, wanted) if "machine" in fields else None


def span(fields: Mapping[str, Spot]) -> tuple[Seconds, Seconds | None]:
    """Return from when until when; None: for good."""
    since_s = seconds(fields, "from", 0.0)
    until = fields.get("until")
    if until is None:
        return since_s, None
    if until.seconds() <= since_s:
        raise until.wrong("is not after its beginning", "Write a later time.")
    return since_s, until.seconds()


def seconds(fields: Mapping[str, Spot], key: str, otherwise: Seconds) -> Seconds:
    """Return a length of time."""
    return fields[key].seconds() if key in fields else otherwise
