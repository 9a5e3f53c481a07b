"""What all parts of this provider work with: whose account it is, and how it is asked."""

from dataclasses import dataclass

from cloudwhale.spi.clock import Clock
from cloudwhale_providers.aws.asking import Calls
from cloudwhale_providers.aws.settings import AwsSettings

PREFIX = "cloudwhale-"
"""Before the name of an installation, in names of what is its own."""


@dataclass(frozen=True, slots=True)
class Account:
    """An AWS account, and one installation of cloudwhale in it."""

    calls: Calls
    installation: str
    """Its machines carry it as a tag; those of others are never touched."""
    options: AwsSettings
    clock: Clock

    @property
    def ours(self) -> str:
        """Return what our group of schedules and our security group are called."""
        return PREFIX + self.installation

    @property
    def gangs(self) -> str:
        """Return what the security group is called whose members reach each other."""
        return f"{PREFIX}gang-{self.installation}"
