"""AWS EC2: what its machines cost, and on which terms.

Boot times are assumptions until machines were measured: an image with driver and Docker in it is
up in about two minutes with GPUs, and the agent is fetched in another; bare metal takes longer.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cloudwhale.model.units import Instant, MicroUsd, Seconds, micro_usd
from cloudwhale.spi.prices import Listing, Market, Reading, Shape, Terms, Told
from cloudwhale_providers.prices.regions import meant
from cloudwhale_providers.prices.snapshot import shipped

if TYPE_CHECKING:
    from cloudwhale_providers.prices.aws_live import AwsSources

NOTICE_S: Seconds = 120.0  # EC2 User Guide, spot-instance-termination-notices
BILLING_STEP_S: Seconds = 1.0  # Linux but SUSE: re:Post, "EC2 billing for partial hours"
BILLING_LEAST_S: Seconds = 60.0

BOOT_CPU_S: Seconds = 120.0
BOOT_GPU_S: Seconds = 180.0
BOOT_METAL_S: Seconds = 600.0

ROOT_GIB = 200.0
ROOT_KEEPS_GIB = 80.0
"""What image, driver, Docker and its layers take of the root disk."""
MEMORY_SHARE = 0.925  # Karpenter's default, vm-memory-overhead-percent 0.075
HOURS_A_MONTH = 730
DISK_USD_GIB_MONTH = 0.08  # EBS price page, gp3 in US regions
ROOT_USD_H = micro_usd(f"{ROOT_GIB * DISK_USD_GIB_MONTH / HOURS_A_MONTH:.6f}")
ADDRESS_USD_H = micro_usd("0.005")  # EC2 price page, public IPv4 address

EGRESS_USD_GB: Mapping[str, float] = {
    **dict.fromkeys(
        ("us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "eu-central-1",
         "eu-west-1", "eu-west-2", "eu-west-3", "eu-north-1", "eu-south-1", "eu-south-2"), 0.09,
    ),
    "ap-south-1": 0.1093, "ap-northeast-1": 0.114, "ap-northeast-2": 0.126,
    "ap-southeast-1": 0.12, "ap-southeast-2": 0.114, "sa-east-1": 0.15,
}  # fmt: skip
"""EC2 price page, "Data transfer out to the internet", first 10 TB of a month."""

EGRESS_NEAR_USD_GB: Mapping[str, float] = {
    **{region: 0.02 for region, usd_gb in EGRESS_USD_GB.items() if usd_gb == 0.09},
    "ap-south-1": 0.086, "ap-northeast-1": 0.09, "ap-northeast-2": 0.08,
    "ap-southeast-1": 0.09, "ap-southeast-2": 0.098, "sa-east-1": 0.138,
}  # fmt: skip
"""The same page, "Data transfer out from Amazon EC2 to other AWS regions"."""

STANDARD = "acdhimrtz"
"""First letters of the families that count against the quota of standard instances."""
REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")
"""What regions are called."""


class AwsPrices:
    """See PriceList."""

    def __init__(self, sources: "AwsSources | None" = None) -> None:
        self._sources = sources

    def shipped(self) -> Sequence[Listing]:
        """See PriceList."""
        return shipped("aws")

    def read(self, regions: Sequence[str], now: Instant, told: Told) -> Reading:
        """See PriceList."""
        from cloudwhale_providers.prices.aws_live import AwsSources, read  # and with it the web

        known = {(one.shape.type, one.region): one for one in self.shipped()}
        asked = meant(regions, "aws", (region for _, region in known), REGION)
        return read(self._sources or AwsSources(), asked, known, now, told)

    def terms(self, shape: Shape, region: str, market: Market) -> Terms:
        """See PriceList."""
        return Terms(
            boot_s=_boot_s(shape),
            notice_s=NOTICE_S if market == "spot" else 0.0,
            billing_step_s=BILLING_STEP_S,
            billing_least_s=BILLING_LEAST_S,
            extras_usd_h=MicroUsd(ROOT_USD_H + ADDRESS_USD_H),
            address_usd_h=ADDRESS_USD_H,
            disk_gib=ROOT_GIB - ROOT_KEEPS_GIB,
            memory_share=MEMORY_SHARE,
            egress_usd_gb=EGRESS_USD_GB.get(region),
            egress_near_usd_gb=EGRESS_NEAR_USD_GB.get(region),
            quota=f"aws/{region}/{market}/{quota_group(shape.type, market)}",
            quota_units=shape.cpu,
        )

    def region_of(self, location: str) -> str:
        """See PriceList: `us-east-1a` is a zone, `us-east-1` none."""
        is_zone = location[-1:].isalpha() and location[-2:-1].isdigit()
        return location[:-1] if is_zone else location

    def cap(self, listing: Listing, market: Market) -> MicroUsd | None:
        """Return the on-demand price: EC2 charges no more for spot unless it is told to."""
        return None if listing.on_demand is None else listing.on_demand.usd_h


def quota_group(type_name: str, market: Market) -> str:
    """Return which of EC2's vCPU quotas a type counts against; spot has its own for P5 and P6.

    EC2 User Guide, ec2-instance-quotas; codes L-DB2E81BA, L-417A185B, L-1216C47A on-demand,
    L-3819A6DF, L-7212CCBC, L-C4BD4855, L-34B43A08 spot.
    """
    family = type_name.partition(".")[0]
    if family[:1] == "g" or family.startswith("vt"):
        return "G"
    if family[:1] == "p":
        return "P" if market == "on-demand" or family[1:2] in "234" else f"P{family[1:2]}"
    letters = re.match("[a-z]+", family)
    is_standard = family[:1] in STANDARD and not family.startswith(
        ("dl", "hpc", "inf", "mac", "trn")
    )
    return "standard" if is_standard or letters is None else letters[0]


def _boot_s(shape: Shape) -> Seconds:
    if ".metal" in shape.type:
        return BOOT_METAL_S
    return BOOT_GPU_S if shape.gpus else BOOT_CPU_S
