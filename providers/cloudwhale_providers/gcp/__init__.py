"""GCP Compute Engine: machines, their stops, their prices."""

from cloudwhale_providers.gcp.provider import GcpProvider

__all__ = ["GcpProvider"]
