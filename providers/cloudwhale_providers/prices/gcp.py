"""GCP Compute Engine: what its machines cost, and on which terms.

Boot times are assumptions until machines were measured.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cloudwhale.model.units import Instant, MicroUsd, Seconds, micro_usd
from cloudwhale.spi.prices import Listing, Market, Reading, Shape, Terms, Told
from cloudwhale_providers.prices.regions import meant
from cloudwhale_providers.prices.snapshot import shipped

if TYPE_CHECKING:
    from cloudwhale_providers.prices.gcp_live import GcpSources

NOTICE_S: Seconds = 30.0  # Compute Engine docs, instances/spot: best effort, 30 seconds
BILLING_STEP_S: Seconds = 1.0
BILLING_LEAST_S: Seconds = 60.0  # Compute Engine price page: per second, at least one minute

BOOT_CPU_S: Seconds = 90.0
BOOT_GPU_S: Seconds = 180.0

BOOT_DISK_GIB = 200.0
BOOT_DISK_KEEPS_GIB = 80.0
"""What image, driver, Docker and its layers take of the boot disk."""
MEMORY_SHARE = 0.925  # Karpenter's default, vm-memory-overhead-percent 0.075
HOURS_A_MONTH = 730
DISK_USD_GIB_MONTH: Mapping[str, float] = {
    "pd-standard": 0.04, "pd-balanced": 0.10, "pd-ssd": 0.17,
}  # fmt: skip
"""Disk price page, US regions, per GiB and month. Others are billed for their speed as well."""
BOOT_DISK_USD_H = micro_usd(
    f"{BOOT_DISK_GIB * DISK_USD_GIB_MONTH['pd-balanced'] / HOURS_A_MONTH:.6f}"
)
ADDRESS_IDLE_USD_H = micro_usd("0.01")
"""Network price page, static external address that nothing uses."""
# Network price page, external IPv4 address in use by a standard and by a spot machine.
ADDRESS_USD_H: Mapping[Market, MicroUsd] = {
    "on-demand": micro_usd("0.005"), "spot": micro_usd("0.0025"),
}  # fmt: skip

EGRESS_USD_GB = 0.12
EGRESS_AUSTRALIA_USD_GB = 0.19
"""Network price page, premium tier, first TiB of a month, to places but China and Australia."""

EGRESS_NEAR_USD_GB: Mapping[str, float] = {"us": 0.02, "northamerica": 0.02, "europe": 0.02}
"""Network price page, between regions of one continent, by the begin of their names. From other
continents, and where none is said, that to the internet is counted, which is more."""

HAZARD_PER_H = 0.0044
"""No rate is published by type; the docs of preemptible machines gave 5 to 15 % a day on average.

Of 10 % a day is -ln(0.9) / 24.
"""

ACCELERATORS: Mapping[str, str] = {
    "K80": "NVIDIA_K80_GPUS", "P4": "NVIDIA_P4_GPUS", "P100": "NVIDIA_P100_GPUS",
    "V100-16GB": "NVIDIA_V100_GPUS", "T4": "NVIDIA_T4_GPUS", "L4": "NVIDIA_L4_GPUS",
    "A100-40GB": "NVIDIA_A100_GPUS", "A100-80GB": "NVIDIA_A100_80GB_GPUS",
    "H100-80GB": "NVIDIA_H100", "H200": "NVIDIA_H200", "B200": "NVIDIA_B200",
    "RTXPRO6000": "NVIDIA_RTX_PRO_6000",
}  # fmt: skip
"""Metrics of `regions.get`; from H100 on, families of the Cloud Quotas API."""


SPOT_ALONE = re.compile(r"a3-highgpu-[124]g|a3-ultragpu|a4")
"""Compute Engine docs, accelerator-optimized machines: A3 with fewer than 8 GPUs, A3 Ultra and A4
are had as spot, by flex-start or by reservation, and not on demand whenever they are wanted."""
REGION = re.compile(r"[a-z]+-[a-z]+[0-9]+")
"""What regions are called."""


class GcpPrices:
    """See PriceList."""

    def __init__(self, sources: "GcpSources | None" = None) -> None:
        self._sources = sources

    def shipped(self) -> Sequence[Listing]:
        """See PriceList."""
        return shipped("gcp")

    def read(self, regions: Sequence[str], now: Instant, told: Told) -> Reading:
        """See PriceList."""
        from cloudwhale_providers.prices.gcp_live import KEY_NAME, GcpSources, read  # and the web

        sources = self._sources or GcpSources(api_key=os.environ.get(KEY_NAME, ""))
        known = {(one.shape.type, one.region): one for one in self.shipped()}
        asked = meant(regions, "gcp", (region for _, region in known), REGION)
        return read(sources, asked, known, now, told)

    def terms(self, shape: Shape, region: str, market: Market) -> Terms:
        """See PriceList."""
        group, units = quota(shape)
        return Terms(
            boot_s=BOOT_GPU_S if shape.gpus else BOOT_CPU_S,
            notice_s=NOTICE_S if market == "spot" else 0.0,
            billing_step_s=BILLING_STEP_S,
            billing_least_s=BILLING_LEAST_S,
            extras_usd_h=MicroUsd(BOOT_DISK_USD_H + ADDRESS_USD_H[market]),
            address_usd_h=ADDRESS_USD_H[market],
            disk_gib=BOOT_DISK_GIB - BOOT_DISK_KEEPS_GIB,
            memory_share=MEMORY_SHARE,
            egress_usd_gb=EGRESS_AUSTRALIA_USD_GB if "australia" in region else EGRESS_USD_GB,
            egress_near_usd_gb=_near(region),
            quota=f"gcp/{region}/{market}/{group}",
            quota_units=units,
            is_sold=market == "spot" or SPOT_ALONE.match(shape.type) is None,
            stop_moves=False,  # maxRunDuration of a machine that runs cannot be changed
        )

    def region_of(self, location: str) -> str:
        """See PriceList: `us-central1-a` is a zone, `us-central1` none."""
        is_zone = location[-2:-1] == "-" and location[-1:].isalpha()
        return location[:-2] if is_zone else location

    def cap(self, listing: Listing, market: Market) -> MicroUsd | None:
        """Return the on-demand price: spot prices move once a day at most and stay below it."""
        return None if listing.on_demand is None else listing.on_demand.usd_h


def _near(region: str) -> float | None:
    return EGRESS_NEAR_USD_GB.get(region.partition("-")[0])


def quota(shape: Shape) -> tuple[str, float]:
    """Return what a machine counts against, and how much it takes of that.

    Machines with GPUs are held back by those first; others by vCPUs, which newer families count
    apart (`N2_CPUS`).
    """
    if shape.gpus:
        return ACCELERATORS.get(shape.gpu, f"NVIDIA_{shape.gpu}"), float(shape.gpus)
    family = shape.type.partition("-")[0].upper()
    return "CPUS" if family in ("E2", "N1", "F1", "G1") else f"{family}_CPUS", shape.cpu
