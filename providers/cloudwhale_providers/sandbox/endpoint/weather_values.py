"""The weather of a sandbox: what its cloud has, what it costs, and what befalls its machines.

All times are seconds of the sandbox's clock since the cloud was started.
"""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from cloudwhale.model.units import Seconds

NOTICE_S: Seconds = 120.0
"""EC2 gives two minutes: EC2 User Guide, spot-instance-termination-notices."""
LISTED_S: Seconds = 3600.0
"""EC2 lists terminated instances for about an hour: EC2 User Guide, terminating-instances."""


@dataclass(frozen=True, slots=True)
class Which:
    """Some offers, or some instances, by patterns as of file names."""

    type: str = "*"
    zone: str = "*"
    market: str = "*"
    """`spot`, `on-demand`, or a pattern that matches both."""

    def fits(self, type_name: str, zone: str, market: str) -> bool:
        """Say whether one is meant."""
        return (
            fnmatchcase(type_name, self.type)
            and fnmatchcase(zone, self.zone)
            and fnmatchcase(market, self.market)
        )


ANY = Which()


@dataclass(frozen=True, slots=True)
class Capacity:
    """So many machines, together, are all that there is of some offers at a time."""

    which: Which
    machines: int
    since_s: Seconds = 0.0
    until_s: Seconds | None = None
    """None: for good."""
    again: bool = True
    """Whether what is given back or taken can be had again; else somebody else has it then."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Launches of some offers are refused with an error code of their cloud, for a time.

    A code that is not one of its cloud's is passed over there: EC2's are written `LikeThis`,
    Compute Engine's `LIKE_THIS` or `likeThis`.
    """

    which: Which
    code: str
    """`Unsupported`, `InsufficientFreeAddressesInSubnet`, `RESOURCE_NOT_READY`, ..."""
    since_s: Seconds = 0.0
    until_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class PriceFactor:
    """From a moment on, spot prices are a multiple of the listed ones; the newest holds."""

    at_s: Seconds
    factor: float
    which: Which = ANY


@dataclass(frozen=True, slots=True)
class Interruption:
    """The cloud takes a spot machine back: a notice, and its end."""

    at_s: Seconds | None = None
    """When the notice is given, since the cloud's start. None: `age_s` says it."""
    age_s: Seconds | None = None
    """When the notice is given, since the machine's launch."""
    which: Which = Which(market="spot")
    nth: int | None = None
    """Only the n-th of them by launch, from 1; None: each that is there then."""
    notice_s: Seconds = NOTICE_S
    rebalance_s: Seconds = 0.0
    """How long before the notice a rebalance is recommended; 0: never."""
    once: bool = False
    """The first of them that comes to its age, and that no other rule has met, and then none."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The cloud announces that it will stop or retire a machine, and does so."""

    at_s: Seconds | None = None
    """When it is announced, as of an interruption."""
    age_s: Seconds | None = None
    which: Which = ANY
    nth: int | None = None
    ahead_s: Seconds = 3600.0
    """From the announcement to its end."""
    code: str = "instance-retirement"
    once: bool = False
    """As of an interruption."""


@dataclass(frozen=True, slots=True)
class Reap:
    """The cloud ends a machine without a word: its hardware failed, or its launch did."""

    age_s: Seconds = 0.0
    """Since its launch; 0: it never runs."""
    which: Which = ANY
    nth: int | None = None
    code: str = "Server.InternalError"
    """`Server.InsufficientInstanceCapacity`, `Client.VolumeLimitExceeded`, ..."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Machines that run, as their cloud sees it, and whose system never comes up."""

    which: Which = ANY
    nth: int | None = None


@dataclass(frozen=True, slots=True)
class MetadataFault:
    """Metadata services answer late, or with an error."""

    delay_s: Seconds = 0.0
    code: int | None = None
    """HTTP status of every answer; None: as ever."""
    since_s: Seconds = 0.0
    """Since the machine's launch."""
    until_s: Seconds | None = None
    """None: for good."""


@dataclass(frozen=True, slots=True)
class Outage:
    """An object store answers every request with an error, for a time."""

    store: str
    """`s3` or `gs`."""
    since_s: Seconds = 0.0
    until_s: Seconds | None = None
    """None: for good."""


@dataclass(frozen=True, slots=True)
class Weather:
    """Fine weather, where nothing else is said."""

    boot_s: Seconds = 0.0
    """From the launch to `running`."""
    stopping_s: Seconds = 1.0
    """From `shutting-down` to `terminated`; the bill ends when it begins."""
    listed_s: Seconds = LISTED_S
    unseen_s: Seconds = 0.0
    """So long after its launch an instance is not found: EC2 is eventually consistent."""
    schedule_late_s: Seconds = 0.0
    """How late schedules fire; EventBridge Scheduler promises a minute."""
    capacity: tuple[Capacity, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    price_factors: tuple[PriceFactor, ...] = ()
    interruptions: tuple[Interruption, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()
    reaps: tuple[Reap, ...] = ()
    hangs: tuple[Hang, ...] = ()
    metadata_faults: tuple[MetadataFault, ...] = ()
    clock_ahead_s: Seconds = 0.0
    """How far the clocks of machines that boot are ahead of everybody's; below 0: behind."""
    quotas: dict[str, float] = field(default_factory=dict[str, float])
    """vCPUs by quota code, `L-3819A6DF`; others have enough for tests.

    Of Compute Engine by metric, `NVIDIA_L4_GPUS` or `us-central1/NVIDIA_L4_GPUS`; a preemptible
    metric that is not named is not granted, so spot draws from the other one.
    """
    spot_role: bool = True
    """Whether the account has the service-linked role that spot needs."""
    image: bool = True
    """Whether the parameters that name the images are there."""
    default_network: bool = True
    """Whether there is a default VPC with its subnets."""
    closed_regions: frozenset[str] = frozenset()
    """Regions that the account has not enabled."""
    foreign_buckets: frozenset[str] = frozenset()
    """Buckets of other accounts."""
    strict_policies: bool = False
    """Whether the account's user and its schedules are held to the policies that ship."""
    access_key: str = ""
    """The account's own, in place of the one that is given out; empty: that one."""
    operation_s: Seconds = 0.0
    """How long an operation of Compute Engine takes."""
    closed_apis: frozenset[str] = frozenset()
    """APIs that the project has not enabled: `compute.googleapis.com`."""
    foreign_projects: frozenset[str] = frozenset()
    """Projects of others, which exist and refuse."""
    silent_zones: frozenset[str] = frozenset()
    """Zones of Compute Engine that answer nothing; what runs there runs on."""
    external_addresses: bool = True
    """Whether the organisation lets machines have external addresses."""
    preemption_notices: bool = True
    """Whether a machine may ask for two minutes before it is taken back."""
    leaves_disks: bool = False
    """Whether a launch that fails leaves its disk behind."""
    throttle_share: float = 0.0
    """Part of the calls, S3 apart, that are refused as too many."""
    fault_share: float = 0.0
    """Part of the calls, S3 apart, that fail before, after, or without an answer."""
    s3_slow_s: Seconds = 0.0
    """How much longer each call of S3 takes."""
    s3_mib_s: float | None = None
    """How fast S3 gives and takes; None: as fast as this host."""
    gs_slow_s: Seconds = 0.0
    gs_mib_s: float | None = None
    """The same of Cloud Storage."""
    outages: tuple[Outage, ...] = ()
    seed: int = 0
    """Of what is drawn by chance."""

    def is_out(self, store: str, since_s: Seconds) -> bool:
        """Say whether a store is out, so long after the cloud was started."""
        return any(
            one.store == store
            and one.since_s <= since_s
            and (one.until_s is None or since_s < one.until_s)
            for one in self.outages
        )
