"""What becomes of objects elsewhere, while somebody looks at them or fetches them."""

from cloudwhale.spi.errors import StoreUnusable


class Gone(Exception):
    """The server says that there is no such document."""


class Replaced(StoreUnusable):
    """It is not the object any more that was looked at."""
