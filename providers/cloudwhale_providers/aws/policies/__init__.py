"""The IAM policies that ship: the public names."""

from cloudwhale_providers.aws.policies.shipped import NAMES, Places, document, filled

__all__ = ["NAMES", "Places", "document", "filled"]
