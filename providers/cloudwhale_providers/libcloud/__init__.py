"""Any compute driver of apache-libcloud: machines on demand, as the settings describe them."""

from cloudwhale_providers.libcloud.prices import OwnPrices
from cloudwhale_providers.libcloud.provider import LibcloudProvider

__all__ = ["LibcloudProvider", "OwnPrices"]
