"""What can be rented and what it costs: shipped, read by `catalog update`, your own."""

from cloudwhale.control.catalogue.opening import Catalogue, catalogue, price_lists

__all__ = ["Catalogue", "catalogue", "price_lists"]
