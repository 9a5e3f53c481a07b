"""GCP's price list: its terms, and what is made of what its sources say."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from price_lists import NOW
from small_web import Web, serving

from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.prices import Listing, Reading, Shape
from cloudwhale_providers.prices import gcp_live
from cloudwhale_providers.prices.gcp import HAZARD_PER_H, GcpPrices, quota
from cloudwhale_providers.prices.gcp_billing import Part, machine_usd_h, parts
from cloudwhale_providers.prices.gcp_live import GcpSources

US, EU = "us-central1", "europe-west4"
SKUS = "/v1/services/6F81-5844-456A/skus"
TABLE = """
about: {timestamp: 1795000000}
compute:
  instance:
    g2-standard-4:
      l4: 1
      cost:
        us-central1: {hour: 0.7068, hour_spot: 0.3973, month: 500}
        africa-south1: {hour: 0.9, hour_spot: 0.4}
      cpu: 4
    a2-highgpu-1g:
      cost: {us-central1: {hour: 3.67}}
    n9-standard-1:
      cost: {us-central1: {hour: 0.1, hour_spot: 0.05}}
"""
PLACES = (
    "NAME;CPUS;SHARED_CPU;MEMORY_GB;DEPRECATED;ZONE\n"
    "g2-standard-4;4;False;16.00;;africa-south1\n"
    "a2-highgpu-1g;12;False;85.00;DEPRECATED;africa-south1\n"
)


def a_sku(says: str, usd: float, usage: str = "OnDemand", **fields: Any) -> dict[str, Any]:
    units, nanos = divmod(round(usd * 1e9), 10**9)
    rate = {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": str(units),
                                                 "nanos": nanos}}  # fmt: skip
    return {
        "description": says, "category": {"resourceFamily": "Compute", "usageType": usage},
        "serviceRegions": [US], "pricingInfo": [{"pricingExpression": {"tieredRates": [rate]}}],
        **fields,
    }  # fmt: skip


CORE = "G2 Instance Core running in Americas"
CATALOGUE = [
    a_sku("G2 Instance Core running in Americas", 0.025),
    a_sku("G2 Instance Ram running in Americas", 0.003),
    a_sku("Nvidia L4 GPU running in Americas", 0.56),
    a_sku("Spot Preemptible G2 Instance Core running in Americas", 0.01, "Preemptible"),
    a_sku("Spot Preemptible G2 Instance Ram running in Americas", 0.001, "Preemptible"),
    a_sku(
        "Nvidia L4 GPU attached to Spot Preemptible VMs running in Americas", 0.25, "Preemptible"
    ),
    a_sku("A2 Instance Core running in Americas", 0.03),
    a_sku("A2 Instance Ram running in Americas", 0.004),
    a_sku("Nvidia Tesla A100 80GB GPU running in Americas", 3.9),
    a_sku("SSD backed Local Storage", 0.08),
    a_sku("G2 Custom Instance Core running in Americas", 99.0),
    a_sku("Commitment v1: Nvidia L4 GPU running in Americas for 1 Year", 9.0, "Commit1Yr"),
    a_sku("Reserved Nvidia L4 GPU running in Americas", 9.0),
    a_sku("Network Vpn Internet Egress from Americas to Africa", 0.12),
]


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as web:
        web.serve("/pricing.yml", TABLE)
        web.serve("/tools/machinetyperegion.csv", PLACES)
        web.serve(SKUS, json.dumps({"skus": CATALOGUE[:6], "nextPageToken": "two"}))
        web.serve(f"{SKUS}?pageToken=two", json.dumps({"skus": CATALOGUE[6:]}))
        yield web


def read(web: Web, *regions: str, key: str = "") -> Reading:
    prices = GcpPrices(GcpSources(web.url, web.url, key))
    return prices.read(regions or (US,), NOW, lambda words: None)


def by_type(reading: Reading, region: str = US) -> dict[str, Listing]:
    return {one.shape.type: one for one in reading.listings if one.region == region}


# -- the table -----------------------------------------------------------------------------------


def test_without_a_key_the_table_is_read_and_said_to_be_older(web: Web) -> None:
    reading = read(web)
    g2 = by_type(reading)["g2-standard-4"]
    assert g2.on_demand is not None and g2.spot is not None
    assert (g2.on_demand.usd_h, g2.spot.usd_h) == (706_800, 397_300)
    assert g2.on_demand.at == 1_795_000_000, "the day that the table says of itself"
    assert (g2.hazard_per_h, g2.zones[0]) == (HAZARD_PER_H, "us-central1-a")
    assert by_type(reading)["a2-highgpu-1g"].spot is None
    assert "No $GOOGLE_API_KEY is set" in reading.notes[0]


def test_machines_that_are_not_known_are_passed_over(web: Web) -> None:
    assert "n9-standard-1" not in by_type(read(web))


def test_a_price_where_no_such_machine_stands_is_no_offer(web: Web) -> None:
    reading = read(web, US, "africa-south1")
    assert list(by_type(reading, "africa-south1")) == ["g2-standard-4"]
    web.pages.pop("/tools/machinetyperegion.csv")
    assert by_type(read(web, US, "africa-south1"), "africa-south1") == {}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("a: [", "is not YAML"),
        ("[]", "has another form"),
        ("about: {}", "has another form"),
        (TABLE.replace("0.7068", "much"), "has another form"),
        (TABLE.replace("0.7068", ".nan"), "has another form"),
        (TABLE.replace("0.7068", "-1"), "has another form"),
        (TABLE.replace("0.7068", '"1e999999999"'), "has another form"),
        (TABLE.replace("1795000000", ".nan"), "has another form"),
        (TABLE.replace("1795000000", "-.inf"), "has another form"),
        ("about: {timestamp: 1}\ncompute: {instance: {}}", "none of the machine types"),
    ],
)
def test_what_is_no_such_table_is_not_taken(web: Web, body: str, words: str) -> None:
    web.serve("/pricing.yml", body)
    with pytest.raises(Unreachable, match=words):
        read(web)


# -- the billing catalogue -----------------------------------------------------------------------


def test_with_a_key_machines_are_put_together_from_their_parts(web: Web) -> None:
    reading = read(web, key="secret")
    g2 = by_type(reading)["g2-standard-4"]
    assert g2.on_demand is not None and g2.spot is not None
    assert g2.on_demand.usd_h == round((4 * 0.025 + 16 * 0.003 + 0.56) * 1e6)
    assert g2.spot.usd_h == round((4 * 0.01 + 16 * 0.001 + 0.25) * 1e6)
    assert (g2.on_demand.at, g2.on_demand.source) == (NOW, "gcp billing")


def test_local_disks_are_billed_by_the_month(web: Web) -> None:
    ultra = by_type(read(web, key="secret"))["a2-ultragpu-1g"]
    assert ultra.on_demand is not None and ultra.spot is None
    whole = 12 * 0.03 + 170 * 0.004 + 3.9 + 375 * 0.08 / 730
    assert ultra.on_demand.usd_h == pytest.approx(whole * 1e6, abs=2)


def test_the_key_is_in_no_address(web: Web) -> None:
    read(web, key="secret")
    assert len(web.asked) == 2
    assert not [path for path in web.asked if "secret" in path]
    assert {headers["X-Goog-Api-Key"] for headers in web.headers} == {"secret"}


def test_a_refused_key_is_told_without_it(web: Web) -> None:
    web.serve(SKUS, "{}", status=403)
    with pytest.raises(Denied) as caught:
        read(web, key="secret")
    assert "refuses us: 403" in str(caught.value) and "secret" not in str(caught.value)


def test_types_without_a_price_are_told(web: Web) -> None:
    [note] = read(web, key="secret").notes
    assert note.startswith("The billing catalogue has no price of a2-highgpu-1g, ")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("[]", "JSON that is no object"),
        ("{}", "sent no parts"),
        (json.dumps({"skus": [{"description": "x"}]}), "has another form"),
        (json.dumps({"skus": [a_sku(CORE, -0.5)]}), "has another form"),
        (json.dumps({"skus": [a_sku(CORE, 1e9)]}), "has another form"),
        (json.dumps({"skus": [a_sku(CORE, 1)]}).replace('"1"', '"1e999999999"'), "another form"),
        (json.dumps({"skus": [], "nextPageToken": ""}), "none of the machine types"),
    ],
)
def test_what_is_no_such_catalogue_is_not_taken(web: Web, body: str, words: str) -> None:
    web.serve(SKUS, body)
    with pytest.raises(Unreachable, match=words):
        read(web, key="secret")


def test_a_catalogue_without_end_is_left(web: Web) -> None:
    web.serve(f"{SKUS}?pageToken=two", json.dumps({"skus": [], "nextPageToken": "two"}))
    with pytest.raises(Unreachable, match="over 40 pages"):
        read(web, key="secret")


def test_another_currency_is_not_taken(web: Web) -> None:
    sku = a_sku("Nvidia L4 GPU running in Americas", 0.5)
    sku["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["currencyCode"] = (
        "EUR"
    )
    with pytest.raises(Unreachable, match="is in EUR, not in USD"):
        parts([sku])


@pytest.mark.parametrize(
    ("says", "usage", "what"),
    [
        ("Nvidia H100 80GB Mega GPU running in Iowa", "OnDemand", "gpu H100-80GB+"),
        ("Nvidia H100 Mega 80GB GPU running in Iowa", "OnDemand", "gpu H100-80GB+"),
        ("RTX 6000 96GB running in Iowa", "OnDemand", "gpu RTXPRO6000"),
        ("N1 Predefined Instance Core running in Americas", "OnDemand", "core N1"),
        ("N2D AMD Instance Ram running in Americas", "OnDemand", "ram N2D"),
        ("A3Plus Instance Core running in Americas", "OnDemand", "core A3Plus"),
        ("A2 Instance Core running in Iowa DWS Defined Duration", "OnDemand", None),
        ("Sole Tenancy Instance Ram running in Iowa", "OnDemand", None),
        ("Nvidia L4 GPU running in Iowa", "Commit1Yr", None),
        ("Nvidia Voodoo2 GPU running in Iowa", "OnDemand", None),
    ],
)
def test_parts_are_told_by_what_they_are_called(says: str, usage: str, what: str | None) -> None:
    found = parts([a_sku(says, 1.0, usage)])
    assert [part.what for part in found] == ([] if what is None else [what])


def test_spot_is_told_by_its_name_too() -> None:
    says = "Nvidia L4 GPU attached to Spot Preemptible VMs running in Iowa"
    assert Part("gpu L4", US, "spot") in parts([a_sku(says, 1.0, "OnDemand")])


def test_a_machine_with_a_part_of_unknown_price_has_none() -> None:
    shape = Shape("gcp", "g2-standard-4", "L4", 1, 24.0, 4.0, 16.0)
    known = parts(CATALOGUE)
    assert machine_usd_h(shape, US, "on-demand", known) is not None
    assert machine_usd_h(shape, EU, "on-demand", known) is None
    assert machine_usd_h(shape._replace(gpu="B200"), US, "on-demand", known) is None


# -- terms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "group", "units"),
    [
        (Shape("gcp", "g2-standard-24", "L4", 2, 24.0, 24.0, 96.0), "NVIDIA_L4_GPUS", 2.0),
        (Shape("gcp", "a3-highgpu-8g", "H100-80GB", 8, 80.0, 208.0, 1872.0), "NVIDIA_H100", 8.0),
        (Shape("gcp", "e2-standard-4", cpu=4.0, memory_gib=16.0), "CPUS", 4.0),
        (Shape("gcp", "n2-standard-8", cpu=8.0, memory_gib=32.0), "N2_CPUS", 8.0),
    ],
)
def test_machines_count_against_gpus_or_else_cpus(shape: Shape, group: str, units: float) -> None:
    assert quota(shape) == (group, units)
    terms = GcpPrices(GcpSources()).terms(shape, US, "spot")
    assert (terms.quota, terms.notice_s) == (f"gcp/{US}/spot/{group}", 30.0)


@pytest.mark.parametrize(
    ("name", "sold"),
    [("a3-highgpu-1g", False), ("a3-highgpu-8g", True), ("a3-ultragpu-8g", False),
     ("a4-highgpu-8g", False), ("a2-highgpu-1g", True), ("g2-standard-4", True)],
)  # fmt: skip
def test_some_types_are_had_as_spot_alone(name: str, sold: bool) -> None:
    shape = Shape("gcp", name, "H100-80GB", 1, 80.0, 26.0, 234.0)
    cloud = GcpPrices(GcpSources())
    assert cloud.terms(shape, US, "on-demand").is_sold == sold
    assert cloud.terms(shape, US, "spot").is_sold


def test_a_key_of_the_environment_is_used(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "from-there")
    monkeypatch.setattr(gcp_live.GcpSources.__init__, "__defaults__", (web.url, web.url, ""))
    GcpPrices().read((US,), NOW, lambda words: None)
    assert {headers["X-Goog-Api-Key"] for headers in web.headers} == {"from-there"}
