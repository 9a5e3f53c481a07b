"""AWS EC2: machines, their stops, their prices."""

from cloudwhale_providers.aws.provider import AwsProvider

__all__ = ["AwsProvider"]
