"""Where in the clouds something is."""

from cloudwhale.model.value import Value


class Where(Value):
    """A region of a provider: what leaves there for another provider's costs money."""

    provider: str
    region: str
    egress_usd_gb: float | None = None
    """What a GB costs that leaves for the internet, as it was offered; None: nobody has said."""
