"""What AWS and GCP rent, from two price files: every type, zone and market as an offer.

`$CLOUDWHALE_TRACES` (or ../shared/data beside the repository) has `aws_instance_prices.csv`,
`gcp_instance_prices.csv` and `aws_egress_usd_per_gb.csv`. Sources: Cyclenerd/google-cloud-pricing-
cost-calculator (Apache-2.0); moto, karpenter-provider-aws, apache-libcloud and spotinfo
(Apache-2.0); skynomad-artifact (Apache-2.0, egress).
"""

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cloudwhale.model.gpus import canonical
from cloudwhale.model.node import Device, Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.planning.shortlist import Moves

AWS, GCP = "aws_instance_prices.csv", "gcp_instance_prices.csv"
EGRESS = "aws_egress_usd_per_gb.csv"
FILES = (AWS, GCP, EGRESS)

MEAN_LIFE_H = 24.0
"""The time over which an interruption band is read as a share; assumed, no cloud says it."""
BANDS = {"<5%": 0.025, "5-10%": 0.075, "10-15%": 0.125, "15-20%": 0.175, ">20%": 0.25}
"""Share of machines interrupted, by AWS's band: its middle; for the open one, assumed."""
GCP_SHARE = 0.10
"""GCP publishes none for a type: assumed."""
BOOT_S = {True: 240.0, False: 120.0}
"""With GPUs and without, agent included: assumed for all types."""
NOTICE_S = {"aws": 120.0, "gcp": 30.0}
"""Spot notice as the clouds' documents give it."""
DISK_GIB = 500.0
DISK_USD_GIB_MONTH, ADDRESS_USD_H, HOURS_A_MONTH = 0.08, 0.005, 730.0
"""List price of a gp3 volume and of a public address in us-east-1; taken for all regions."""
GCP_NEAR, GCP_FAR, BETWEEN_CLOUDS = 0.02, 0.08, 0.10
"""USD per GB: between regions of one continent, of two, and over the internet; rounded lists."""


def folder() -> Path:
    """Return where the files lie."""
    named = os.environ.get("CLOUDWHALE_TRACES")
    return Path(named) if named else Path(__file__).parents[3] / "shared" / "data"


def missing() -> str:
    """Return a sentence when a file is not there, else nothing."""
    absent = [name for name in FILES if not (folder() / name).exists()]
    return f"{folder()} has no {absent[0]}: set CLOUDWHALE_TRACES" if absent else ""


def hazard_per_h(share: float) -> float:
    """Return the interruptions per hour of which this share is seen within a mean life."""
    return share / ((1 - share) * MEAN_LIFE_H)


def offers() -> list[Offer]:
    """Return all offers in the order of the files; slices of a GPU and absurd prices left out.

    Nobody has said how fast a slice is; a spot price at or above on-demand is a mistake.
    """
    found: list[Offer] = []
    for row in _rows(AWS):
        found.extend(_of(row, "aws", row["instance_type"], row["zones"]))
    for row in _rows(GCP):
        found.extend(_of(row, "gcp", row["machine_type"], row["zones_2023"]))
    return found


def moves(found: Sequence[Offer], sources: Sequence[str]) -> Moves:
    """Return what a GB costs from where data lie to where machines are.

    Of a pair of AWS regions that is not listed: the dearest that is.
    """
    listed = {
        (row["from_region"], row["to_region"]): float(row["price_usd_per_gb"])
        for row in _rows(EGRESS)
    }
    dear = max(listed.values())
    cloud = {offer.region: offer.provider for offer in found}
    prices: dict[tuple[str, str], float] = {}
    for source in sources:
        for target in cloud:
            if cloud[source] != cloud[target]:
                prices[source, target] = BETWEEN_CLOUDS
            elif cloud[source] == "aws":
                prices[source, target] = listed.get((source, target), dear)
            else:
                near = source.partition("-")[0] == target.partition("-")[0]
                prices[source, target] = GCP_NEAR if near else GCP_FAR
    return Moves(usd_gb=prices, regions=tuple(sources))


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (folder() / name).open(newline="") as lines:
        yield from csv.DictReader(lines)


def _of(row: Mapping[str, str], cloud: str, kind: str, zones: str) -> Iterator[Offer]:
    count = float(row["gpu_count"])
    if count != int(count) or (row["gpu_name"] and not count):
        return
    facts = _facts(row, int(count))
    on_demand = micro_usd(row["ondemand_usd_h"])
    spot_text = row["spot_usd_h_est"] if cloud == "aws" else row["spot_usd_h"]
    spot = micro_usd(spot_text) if spot_text else None
    share = BANDS[row["interruption_band"]] if row.get("interruption_band") else GCP_SHARE
    base = Offer(
        id="", provider=cloud, region=row["region"], zone="", market="on-demand", facts=facts,
        price_usd_h=on_demand, cap_usd_h=on_demand, boot_s=BOOT_S[bool(count)], hazard_per_h=0.0,
        type=kind, extras_usd_h=_extras(), source=AWS if cloud == "aws" else GCP,
        estimated=row.get("ondemand_basis") == "estimated",
    )  # fmt: skip
    markets = [base]
    if spot is not None and spot < on_demand:
        fields = {"market": "spot", "price_usd_h": spot, "hazard_per_h": hazard_per_h(share)}
        markets.append(base.but(**fields, notice_s=NOTICE_S[cloud], estimated=cloud == "aws"))
    for zone in [name for name in zones.split(";") if name] or [f"{row['region']}-?"]:
        for one in markets:
            yield one.but(id=f"{cloud}/{kind}/{zone}/{one.market}", zone=zone)


def _facts(row: Mapping[str, str], count: int) -> Facts:
    memory_gib = float(row["gpu_mem_mib_each"] or 0) / 1024
    model = canonical(row["gpu_name"], memory_gib) if count else None
    devices = tuple(
        Device(id=f"gpu-{number}", model=model or row["gpu_name"], memory_gib=memory_gib)
        for number in range(count)
    )
    return Facts(
        cpu=float(row["vcpus"]), memory_gib=float(row["mem_gib"]), disk_gib=DISK_GIB,
        devices=devices, mounts=(), runtimes=("process", "container"),
    )  # fmt: skip


def _extras() -> MicroUsd:
    return micro_usd(f"{DISK_GIB * DISK_USD_GIB_MONTH / HOURS_A_MONTH + ADDRESS_USD_H:.6f}")
