"""Google's Compute Engine over HTTP on this host: the public names."""

from cloudwhale_providers.sandbox.compute.calls import Call, Caller
from cloudwhale_providers.sandbox.compute.compute import Compute
from cloudwhale_providers.sandbox.compute.oauth import Token

__all__ = ["Call", "Caller", "Compute", "Token"]
