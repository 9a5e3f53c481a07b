"""What a project lacks, made: the public names."""

from cloudwhale_providers.gcp.mending.mends import Mends

__all__ = ["Mends"]
