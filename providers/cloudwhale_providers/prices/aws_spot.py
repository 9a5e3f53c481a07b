"""What spot machines of AWS cost: by zone with credentials, by Spot Advisor's averages without."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.spelling import hourly

ZonePrices = Mapping[str, tuple[tuple[str, MicroUsd], ...]]
"""By machine type: prices by zone."""


class Advice(NamedTuple):
    """What Spot Advisor says of a type in a region."""

    savings: float
    """Average of a month, as a part of the on-demand price."""
    band: int
    """Index of its band of interruptions, 0 to 4."""


def advice(document: Mapping[str, Any]) -> Mapping[tuple[str, str], Advice]:
    """Return Spot Advisor's document by region and type; raise Unreachable for another one."""
    try:
        return {
            (region, name): Advice(float(said["s"]) / 100.0, int(said["r"]))
            for region, systems in document["spot_advisor"].items()
            for name, said in systems.get("Linux", {}).items()
            if 0 <= int(said["r"]) <= 4 and 0 <= float(said["s"]) < 100
        }
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise Unreachable(f"Spot Advisor sent what it used not to send: {error!r}") from error


class SpotHistory(Protocol):
    """Knows what spot machines cost now, zone by zone."""

    def prices(self, region: str, types: Sequence[str], now: Instant) -> ZonePrices:
        """Return prices of types in a region; raise Denied or Unreachable, with a remedy."""
        ...


def sdk() -> Any:
    """Return boto3; raise Denied when it is not installed."""
    try:
        return import_module("boto3")
    except ImportError as error:
        raise Denied("boto3 is not installed", "pip install 'cloudwhale[aws]'") from error


class DescribedHistory:
    """EC2's DescribeSpotPriceHistory, by boto3, which is imported when it is asked."""

    def __init__(self, boto3: Callable[[], Any] = sdk) -> None:
        self._boto3 = boto3

    def prices(self, region: str, types: Sequence[str], now: Instant) -> ZonePrices:
        """See SpotHistory."""
        boto3 = self._boto3()
        errors = import_module("botocore.exceptions")
        session = boto3.session.Session()
        try:
            if session.get_credentials() is None:
                raise Denied("there are no AWS credentials here", "`aws configure` makes some.")
            client = session.client("ec2", region_name=region, config=_patience())
            pages = client.get_paginator("describe_spot_price_history").paginate(
                StartTime=datetime.fromtimestamp(now, UTC),
                ProductDescriptions=["Linux/UNIX"],
                InstanceTypes=list(types),
            )
            return newest(item for page in pages for item in page["SpotPriceHistory"])
        except errors.ClientError as error:
            says = str(error)
            raise (Denied(says) if _is_denial(error) else Unreachable(says)) from error
        except (errors.BotoCoreError, ValueError) as error:
            raise Unreachable(f"EC2's spot prices cannot be read: {error}") from error


def newest(items: Iterable[Mapping[str, Any]]) -> ZonePrices:
    """Return the newest price of each type in each zone; raise ValueError for what is none."""
    last: dict[tuple[str, str], tuple[Any, MicroUsd]] = {}
    for item in items:
        key = (str(item["InstanceType"]), str(item["AvailabilityZone"]))
        if key not in last or item["Timestamp"] > last[key][0]:
            last[key] = (item["Timestamp"], hourly(str(item["SpotPrice"])))
    found: dict[str, list[tuple[str, MicroUsd]]] = {}
    for (name, zone), (_, price) in sorted(last.items(), key=lambda entry: entry[0]):
        found.setdefault(name, []).append((zone, price))
    return {name: tuple(prices) for name, prices in found.items()}


def _patience() -> Any:
    config = import_module("botocore.config")
    return config.Config(connect_timeout=10, read_timeout=30, retries={"max_attempts": 3})


def _is_denial(error: Any) -> bool:
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code in ("UnauthorizedOperation", "AuthFailure", "OptInRequired", "AccessDenied")
