"""The IAM policies that ship: the public names."""

from cloudwhale_providers.aws.policies.shipped import NAMES, Name, Places, document, filled

__all__ = ["NAMES", "Name", "Places", "document", "filled"]
