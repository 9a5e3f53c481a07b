"""A cloud's API over HTTP on this host: the public names."""

from cloudwhale_providers.sandbox.endpoint.endpoint import ACCESS_KEY, SECRET_KEY, Endpoint
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.endpoint.weather_values import (
    Capacity,
    Hang,
    Interruption,
    PriceFactor,
    Reap,
    Refusal,
    Weather,
    Which,
)

__all__ = [
    "ACCESS_KEY",
    "SECRET_KEY",
    "Capacity",
    "Endpoint",
    "Hang",
    "Instance",
    "Interruption",
    "PriceFactor",
    "Reap",
    "Refusal",
    "Weather",
    "Which",
]
