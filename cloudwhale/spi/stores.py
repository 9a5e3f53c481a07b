"""What is one kind of object store's own: addresses, words of its refusals, where a bucket lies."""

from collections.abc import Mapping
from typing import Protocol


class StoreKind(Protocol):
    """Found by the scheme of its URLs, `s3`: entry points of `cloudwhale.stores`.

    Whoever meets in such a store needs it, agents too: a module by itself that imports no more than
    the standard library and `spi` when it is loaded.
    """

    variables: str
    """What the names of environment variables about its client begin with."""
    credentials_at: tuple[str, ...]
    """Addresses of the service from which its machines get their credentials: jobs are kept from
    them, since whoever reaches them is the machine to the store."""
    to_read: str
    """What a role needs for reading a bucket of it, in the store's own words."""

    def endpoint(self) -> str:
        """Return the address that the environment gives for it; empty: the store's own."""
        ...

    def options(self) -> Mapping[str, str]:
        """Return what obstore is told of it beyond what it reads from the environment by itself."""
        ...

    def client(self) -> Mapping[str, str]:
        """Return the same for the client below: `allow_http`."""
        ...

    def region_of(self, bucket: str) -> str:
        """Return the region that a bucket lies in; empty: nobody says, or it is in several.

        Asks the network, for seconds at most; the answer is kept.
        """
        ...

    def is_elsewhere(self, says: str) -> bool:
        """Say whether an error means that the bucket lies in another region than was asked."""
        ...

    def lacks_credentials(self, says: str) -> bool:
        """Say whether an error means that neither environment nor machine has credentials."""
        ...

    def refusal(self, says: str) -> str:
        """Return who may not do what, as the store says it in an error; empty: it does not."""
        ...
