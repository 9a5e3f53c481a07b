"""An instance as its cloud sees it."""

from dataclasses import dataclass, field
from typing import Literal

from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.spi.prices import Market

State = Literal["pending", "running", "shutting-down", "terminated"]


@dataclass(frozen=True, slots=True)
class Instance:
    """One rented machine, running or not."""

    id: str
    type: str
    region: str
    zone: str
    market: Market
    tags: dict[str, str]
    user_data: str
    """As its launch gave it, decoded."""
    launched_at: Instant
    state: State = "pending"
    price_usd_h: MicroUsd | None = None
    """What an hour cost in its zone and market when it was launched; None: not listed."""
    vcpus: int = 0
    disk_gib: int = 0
    """All its volumes."""
    rebalance_at: Instant | None = None
    """When a rebalance was recommended."""
    noticed_at: Instant | None = None
    """When its interruption was announced."""
    goes_at: Instant | None = None
    """When it is taken back; the metadata service says so from `noticed_at` on."""
    maintained_at: Instant | None = None
    """When the cloud ends it for maintenance, once that is announced."""
    maintenance: str = ""
    """What is announced, `instance-retirement`."""
    ended_at: Instant | None = None
    """When `shutting-down` began, and its bill ended."""
    reason: str = ""
    """Code of the end, `Client.UserInitiatedShutdown`."""
    deleted_at: Instant | None = None
    """When it was deleted with its disk, where a machine that has ended stays until then."""
    hangs: bool = False
    """Its system never comes up, though it is `running`."""
    metadata_tags: bool = False
    """Whether the machine may read its tags from the metadata service."""
    profile: str = ""
    """ARN of its instance profile; empty: it has none."""
    image: str = ""
    provider: str = "aws"
    """Whose it is: `aws`, or `gcp`."""
    name: str = ""
    """What its cloud lists it by where that is not its id; empty: its id."""
    soft_off_at: Instant | None = None
    """When its system is told to shut down, before `goes_at`; None: there is no such word."""
    volumes: tuple[str, ...] = field(default=())
