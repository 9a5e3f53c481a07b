"""What an account lacks, made: the public names."""

from cloudwhale_providers.aws.mending.mends import Mends

__all__ = ["Mends"]
