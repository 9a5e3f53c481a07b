"""How a cloud speaks to its machines: what their metadata service says, and who listens there."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.metadata import Talk, ec2_talk
from cloudwhale_providers.sandbox.told import documents

if TYPE_CHECKING:
    from cloudwhale_providers.sandbox.hypervisor import Guest

Now = Callable[[], Instant]


class Dialect(Protocol):
    """One cloud's."""

    @property
    def notices(self) -> str:
        """Return who hears on the machine that it goes, by entry point."""
        ...

    @property
    def files(self) -> Mapping[str, str]:
        """Return what lies on the disk of a machine that boots, by path, beside the image."""
        ...

    @property
    def names(self) -> Mapping[str, str]:
        """Return names of hosts that a machine that boots knows, with their addresses."""
        ...

    def environment(self, url: str) -> Mapping[str, str]:
        """Return how a machine's processes find the metadata service that listens at a URL."""
        ...

    def talk(self, guest: "Guest", address: str, now: Now) -> Talk:
        """Return who answers a machine that has an address."""
        ...


class Ec2:
    """EC2's."""

    notices = "aws"
    files: Mapping[str, str] = {}
    names: Mapping[str, str] = {}

    def environment(self, url: str) -> Mapping[str, str]:
        """See Dialect."""
        return {"AWS_EC2_METADATA_SERVICE_ENDPOINT": url}

    def talk(self, guest: "Guest", address: str, now: Now) -> Talk:
        """See Dialect."""

        def told() -> Mapping[str, str]:
            return documents(guest.who, guest.notices(), address, guest.keys())

        return ec2_talk(told, now)


EC2 = Ec2()
