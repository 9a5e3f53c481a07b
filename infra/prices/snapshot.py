"""Makes the price lists that the package ships, from two tables of public prices.

    python infra/prices/snapshot.py TABLES [--out providers/cloudwhale_providers/prices] [--all]

TABLES holds `aws_instance_prices.csv` and `gcp_instance_prices.csv`: one line a machine type and
region, with the columns that are read below. `--all` keeps every region and type. Prices that a
rule of `cloudwhale.planning.plausible` drops are left out, and counted.
"""

import argparse
import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cloudwhale.model.gpus import canonical
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.plausible import Judged, plausible, possible
from cloudwhale.spi.listings import written
from cloudwhale.spi.prices import Listing, Price, Shape
from cloudwhale.spi.spelling import instant
from cloudwhale_providers.prices.gcp import HAZARD_PER_H
from cloudwhale_providers.prices.hazards import hazard_per_h

AWS_LIST_AT, AWS_SPOT_AT = instant("2026-07-20"), instant("2025-06-28")
AWS_RATIO_AT = instant("2025-03-02")
GCP_AT = instant("2026-07-30")

AWS_REGIONS = (
    "us-east-1", "us-east-2", "us-west-2", "eu-central-1", "eu-north-1", "ap-northeast-1",
)  # fmt: skip
GCP_REGIONS = (
    "us-central1", "us-east4", "us-west1", "europe-west1", "europe-west4", "asia-southeast1",
)  # fmt: skip
CPU_TYPES = frozenset(
    (
        "m7i.large", "m7i.xlarge", "m7i.2xlarge", "m7i.4xlarge", "m7i.8xlarge", "c7i.2xlarge",
        "c7i.4xlarge", "c7i.8xlarge", "r7i.2xlarge", "r7i.4xlarge", "r7i.8xlarge",
        "e2-standard-4", "e2-standard-8", "e2-standard-16", "e2-standard-32", "n2-standard-8",
        "n2-standard-16", "n2-standard-32", "n2-highmem-8", "n2-highmem-16", "c3-standard-8",
        "c3-standard-22", "c3-standard-44",
    )
)  # fmt: skip

BANDS: Mapping[str, int] = {"<5%": 0, "5-10%": 1, "10-15%": 2, "15-20%": 3, ">20%": 4}
ARM_FAMILIES = frozenset(("g5g",))
"""Images and programs for x86-64 do not run there."""

LICENCE = "All of these sources are under the Apache License 2.0, http://www.apache.org/licenses/."
AWS_COMMENTS = (
    "Prices of AWS EC2, Linux, shared tenancy, US dollars an hour: a starting point, no live list.",
    "Derived by infra/prices/snapshot.py; `cloudwhale catalog update` reads what holds now.",
    "karpenter: us-east-1 on-demand of 2026-07-20, github.com/aws/karpenter-provider-aws",
    "  1d927085, pkg/providers/pricing/zz_generated.pricing_aws.go.",
    "karpenter*libcloud: other regions, estimated: the price in us-east-1 times the ratio of the",
    "  two regions in pricing.json of apache-libcloud 3.9.1, of 2025-03-02.",
    "spotinfo: spot, estimated: on-demand less the savings of AWS Spot Advisor of 2025-06-28,",
    "  github.com/alexei-led/spotinfo 05e93313; hazards from its bands of interruption.",
    "Types, GPUs, memory and zones: instance type data of moto 5.2.1.",
    "Left out: parts of a GPU (g6f, gr6f), ARM (g5g), most regions and most types without GPUs;",
    "  prices that cloudwhale/planning/plausible.py drops: spot of p3dn.24xlarge in us-east-1 and",
    "  of p4de.24xlarge in eu-central-1 came to 13 % of what such GPUs cost on demand.",
    LICENCE,
)
GCP_COMMENTS = (
    "Prices of GCP Compute Engine, US dollars an hour: a starting point, no live list.",
    "Derived by infra/prices/snapshot.py; `cloudwhale catalog update` reads what holds now.",
    "cyclenerd: pricing.yml of 2026-07-30 in Cyclenerd/google-cloud-pricing-cost-calculator,",
    "  GitHub, fd66b26f, copyright Nils Knieling; regions and zones of types from its tools/",
    "  (dac31281).",
    "Hazards are the same for all: none are published by type.",
    "Left out: parts of a GPU (g4-standard-6 to -24), most regions and most types without GPUs.",
    LICENCE,
)


def aws(rows: Iterable[Mapping[str, str]]) -> Iterator[Listing]:
    """Yield the listings of the table of AWS; what jobs cannot use is left out."""
    for row in rows:
        shape = _shape("aws", row["instance_type"], row)
        if shape is None or shape.type.partition(".")[0] in ARM_FAMILIES:
            continue
        listed = row["ondemand_basis"].startswith("listed")
        at = AWS_LIST_AT if listed else AWS_RATIO_AT
        source = "karpenter" if listed else "karpenter*libcloud"
        band = row["interruption_band"]
        yield Listing(
            shape, row["region"], _zones(row["zones"]),
            _price(row["ondemand_usd_h"], at, source, estimated=not listed),
            _price(row["spot_usd_h_est"], AWS_SPOT_AT, "spotinfo", estimated=True),
            hazard_per_h(BANDS[band]) if band else None,
        )  # fmt: skip


def gcp(rows: Iterable[Mapping[str, str]]) -> Iterator[Listing]:
    """Yield the listings of the table of GCP; what jobs cannot use is left out."""
    for row in rows:
        shape = _shape("gcp", row["machine_type"], row)
        if shape is not None:
            yield Listing(
                shape, row["region"], _zones(row["zones_2023"]),
                _price(row["ondemand_usd_h"], GCP_AT, "cyclenerd"),
                _price(row["spot_usd_h"], GCP_AT, "cyclenerd"), HAZARD_PER_H,
            )  # fmt: skip


def whole(tables: Path) -> Iterator[Listing]:
    """Yield all listings of both tables."""
    yield from aws(_rows(tables / "aws_instance_prices.csv"))
    yield from gcp(_rows(tables / "gcp_instance_prices.csv"))


def chosen(listings: Iterable[Listing], regions: Sequence[str]) -> list[Listing]:
    """Return what ships: types with GPUs and a few without, in some regions."""
    return [
        one
        for one in listings
        if one.region in regions and (one.shape.gpus or one.shape.type in CPU_TYPES)
    ]


def sane(listings: Sequence[Listing]) -> Judged:
    """Return what the rules leave of a whole table, whatever its age, and what they have met."""
    one_by_one = possible(listings)
    beside_others = plausible(one_by_one.listings, GCP_AT, float("inf"))
    counts = Counter(one_by_one.counts) + Counter(beside_others.counts)
    return Judged(beside_others.listings, counts)


def _rows(file: Path) -> Iterator[Mapping[str, str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def _shape(provider: str, name: str, row: Mapping[str, str]) -> Shape | None:
    """Return a machine type; None for one with a part of a GPU, which no job can ask for."""
    count, gib = float(row["gpu_count"]), float(row["gpu_mem_mib_each"] or 0) / 1024
    model = row["gpu_name"]
    if model and (count < 1 or count != int(count)):
        return None
    gpu = canonical(model.replace("-MEGA", ""), gib) if model else ""
    if gpu is None:
        raise SystemExit(f"{name}: no GPU model is called {model!r}")
    return Shape(
        provider, name, gpu, int(count) if model else 0, gib if model else 0.0,
        float(row["vcpus"]), float(row["mem_gib"]),
        _disk_gib(float(row["local_ssd_gb"] or 0), provider),
    )  # fmt: skip


def _disk_gib(said: float, provider: str) -> float:
    """Return local disks in GiB: AWS counts them in 10^9 bytes, GCP in GiB whatever it says."""
    return said if provider == "gcp" else round(said * 1e9 / 2**30, 1)


def _zones(text: str) -> tuple[str, ...]:
    return tuple(zone for zone in text.split(";") if zone)


def _price(text: str, at: float, source: str, *, estimated: bool = False) -> Price | None:
    return Price(micro_usd(text), at, source, estimated) if text else None


def main() -> None:
    """Write the two files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("tables", type=Path, help="the folder of the two tables")
    default = Path(__file__).parents[2] / "providers" / "cloudwhale_providers" / "prices"
    parser.add_argument("--out", type=Path, default=default)
    parser.add_argument("--all", action="store_true", help="every region and every type")
    options = parser.parse_args()
    for name, made, regions, comments in (
        ("aws", aws, AWS_REGIONS, AWS_COMMENTS), ("gcp", gcp, GCP_REGIONS, GCP_COMMENTS),
    ):  # fmt: skip
        listings = list(made(_rows(options.tables / f"{name}_instance_prices.csv")))
        judged = sane(listings)
        kept = judged.listings if options.all else chosen(judged.listings, regions)
        text = "".join(written(kept, comments))
        (options.out / f"{name}.csv").write_text(text, encoding="utf-8")
        met = "".join(f", {many} {rule}" for rule, many in sorted(judged.counts.items()))
        print(f"{name}.csv: {len(kept)} of {len(listings)} listings{met}")


if __name__ == "__main__":
    main()
