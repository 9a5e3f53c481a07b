"""A cloud's API over HTTP on this host: the public names."""

from cloudwhale_providers.sandbox.endpoint.callers import Credentials
from cloudwhale_providers.sandbox.endpoint.endpoint import Endpoint
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.endpoint.weather_values import (
    Capacity,
    Hang,
    Interruption,
    MetadataFault,
    PriceFactor,
    Reap,
    Refusal,
    Weather,
    Which,
)

__all__ = [
    "Capacity",
    "Credentials",
    "Endpoint",
    "Hang",
    "Instance",
    "Interruption",
    "MetadataFault",
    "PriceFactor",
    "Reap",
    "Refusal",
    "Weather",
    "Which",
]
