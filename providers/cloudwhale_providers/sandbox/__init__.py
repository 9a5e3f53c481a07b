"""A cloud in a box: its API, its machines and its bill as one process of this host."""

from cloudwhale_providers.sandbox.box import Sandbox

__all__ = ["Sandbox"]
