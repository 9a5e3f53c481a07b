"""Where in the clouds something is."""

from cloudwhale.model.value import Value


class Where(Value):
    """A region of a provider: what leaves there for another provider's costs money."""

    provider: str
    region: str
