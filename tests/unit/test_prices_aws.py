"""AWS's price list: its terms, and what is made of what its sources say."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from price_lists import NOW
from small_web import Web, serving

from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.prices import Listing, Market, Reading, Shape
from cloudwhale_providers.prices.aws import AwsPrices, quota_group
from cloudwhale_providers.prices.aws_list import disk_gib
from cloudwhale_providers.prices.aws_live import AwsSources
from cloudwhale_providers.prices.aws_spot import DescribedHistory, ZonePrices, newest
from cloudwhale_providers.prices.hazards import hazard_per_h

COLUMNS = (
    "SKU", "TermType", "Unit", "PricePerUnit", "Currency", "Instance Type", "vCPU", "Memory",
    "Storage", "GPU", "Tenancy", "Operating System", "CapacityStatus", "Pre Installed S/W",
    "MarketOption", "Region Code",
)  # fmt: skip
US = "us-east-1"


def a_row(name: str, price: str, **fields: str) -> str:
    row = {
        "SKU": "X", "TermType": "OnDemand", "Unit": "Hrs", "PricePerUnit": price, "Currency": "USD",
        "Instance Type": name, "vCPU": "4", "Memory": "16 GiB", "Storage": "1 x 250 NVMe SSD",
        "GPU": "1", "Tenancy": "Shared", "Operating System": "Linux", "CapacityStatus": "Used",
        "Pre Installed S/W": "NA", "MarketOption": "OnDemand", "Region Code": US,
    } | fields  # fmt: skip
    return ",".join(f'"{row[name]}"' for name in COLUMNS)


def a_list(*rows: str) -> str:
    head = ['"FormatVersion","v1.0"', '"Disclaimer","It is public, and so on"',
            '"Publication Date","2026-11-28T00:00:00Z"', '"Version","1"',
            '"OfferCode","AmazonEC2"']  # fmt: skip
    return "\n".join([*head, ",".join(f'"{name}"' for name in COLUMNS), *rows]) + "\n"


ADVISOR = (
    '{"ranges": [], "instance_types": {}, "spot_advisor": {"us-east-1": {"Windows": {}, "Linux": '
    '{"g5.xlarge": {"s": 60, "r": 1}, "p5.48xlarge": {"s": 50, "r": 4}}}}}'
)
LIST = a_list(
    a_row("g5.xlarge", "1.0060000000"),
    a_row("p5.48xlarge", "98.32", **{"GPU": "8", "vCPU": "192", "Memory": "2,048 GiB",
                                     "Storage": "8 x 3800 GB NVMe SSD"}),
    a_row("m7i.large", "0.1008", **{"GPU": "", "vCPU": "2", "Memory": "8 GiB",
                                    "Storage": "EBS only"}),
    a_row("m7i.99xlarge", "7", **{"GPU": ""}),
    a_row("g6f.large", "0.2", **{"GPU": "0.125"}),
    a_row("g5.xlarge", "9.99", **{"Tenancy": "Dedicated"}),
    a_row("g5.xlarge", "9.99", **{"Operating System": "Windows"}),
    a_row("g5.xlarge", "9.99", **{"TermType": "Reserved"}),
    a_row("g5.xlarge", "0.00", **{"CapacityStatus": "UnusedCapacityReservation"}),
    a_row("g5.xlarge", "9.99", **{"Pre Installed S/W": "SQL Ent"}),
)  # fmt: skip


class NoHistory:
    """Nobody who could ask for spot prices."""

    asked = 0

    def prices(self, region: str, types: Sequence[str], now: float) -> ZonePrices:
        self.asked += 1
        raise Denied("boto3 is not installed", "pip install it")


class History:
    """Knows g5.xlarge in two zones."""

    def prices(self, region: str, types: Sequence[str], now: float) -> ZonePrices:
        assert "g5.xlarge" in types
        return {"g5.xlarge": ((f"{region}c", micro_usd("0.5")), (f"{region}d", micro_usd("0.4")))}


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as web:
        web.serve("/spot-advisor-data.json", ADVISOR)
        web.serve(f"/offers/v1.0/aws/AmazonEC2/current/{US}/index.csv", LIST)
        yield web


def read(web: Web, *regions: str, history: Any = None) -> Reading:
    sources = AwsSources(web.url, web.url, history or NoHistory())
    return AwsPrices(sources).read(regions or (US,), NOW, lambda words: None)


def by_type(reading: Reading) -> dict[str, Listing]:
    return {one.shape.type: one for one in reading.listings}


def test_the_list_is_read_of_machines_as_they_are_rented(web: Web) -> None:
    found = by_type(read(web))
    assert sorted(found) == ["g5.xlarge", "m7i.large", "p5.48xlarge"]
    g5 = found["g5.xlarge"]
    assert g5.shape == Shape("aws", "g5.xlarge", "A10G", 1, 22.4, 4.0, 16.0, 232.8)
    assert g5.on_demand is not None
    assert (g5.on_demand.usd_h, g5.on_demand.at) == (1_006_000, NOW)
    assert found["p5.48xlarge"].shape[2:] == ("H100-80GB", 8, 80.0, 192.0, 2048.0, 28312.2)
    assert found["m7i.large"].shape[2:] == ("", 0, 0.0, 2.0, 8.0, 0.0)


def test_without_credentials_spot_is_an_estimate_and_says_why(web: Web) -> None:
    reading = read(web)
    spot = by_type(reading)["g5.xlarge"].spot
    assert spot is not None
    assert (spot.usd_h, spot.estimated) == (402_400, True)
    assert by_type(reading)["g5.xlarge"].hazard_per_h == hazard_per_h(1)
    assert [note for note in reading.notes if "boto3 is not installed (pip install it)" in note]


def test_with_them_each_zone_has_its_own(web: Web) -> None:
    g5 = by_type(read(web, history=History()))["g5.xlarge"]
    assert g5.spot is not None
    assert (g5.spot.usd_h, g5.spot.estimated) == (400_000, False)
    assert dict(g5.spot.zones) == {f"{US}c": 500_000, f"{US}d": 400_000}
    assert g5.zones == (f"{US}c", f"{US}d")


def test_zones_that_the_list_does_not_say_are_those_that_ship(web: Web) -> None:
    assert by_type(read(web))["g5.xlarge"].zones[0] == "us-east-1a"


def test_a_region_that_fails_is_told_and_the_others_are_read(web: Web) -> None:
    history = NoHistory()
    reading = read(web, US, "eu-west-1", history=history)
    assert reading.regions == {US}
    assert any("eu-west-1: " in note and "404" in note for note in reading.notes)
    assert history.asked == 1, "who has refused once is not asked again"


def test_when_no_region_can_be_read_nothing_is(web: Web) -> None:
    with pytest.raises(Unreachable, match="404"):
        read(web, "eu-west-1")


def test_without_spot_advisor_hazards_stay_as_they_were(web: Web) -> None:
    web.serve("/spot-advisor-data.json", "<html>sorry</html>")
    reading = read(web)
    assert any("Spot Advisor: " in note and "not JSON" in note for note in reading.notes)
    g5 = by_type(reading)["g5.xlarge"]
    assert g5.spot is None and g5.hazard_per_h == pytest.approx(hazard_per_h(4), rel=1e-4)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<html>moved</html>", "not the price list"),
        ("", "not the price list"),
        (a_list().replace('"vCPU"', '"Cores"'), "has no column 'vCPU'"),
        (a_list(a_row("g5.xlarge", "1", Currency="CNY")), "is in CNY, not in USD"),
        (a_list(a_row("t2.nano", "1")), "none of the machine types"),
    ],
)
def test_what_is_no_such_list_is_not_taken(web: Web, body: str, words: str) -> None:
    web.serve(f"/offers/v1.0/aws/AmazonEC2/current/{US}/index.csv", body)
    with pytest.raises(Unreachable, match=words):
        read(web)


@pytest.mark.parametrize(
    "fields",
    [
        {"GPU": "nan"}, {"GPU": "inf"}, {"GPU": "1e9"}, {"GPU": "-1"}, {"vCPU": "nan"},
        {"Memory": "inf GiB"}, {"Memory": "-4 GiB"}, {"PricePerUnit": "1e999999999"},
        {"PricePerUnit": "NaN"}, {"PricePerUnit": "-1"}, {"Instance Type": "g5.\x1b[31m"},
    ],
)  # fmt: skip
def test_a_row_that_can_be_no_machine_is_passed_over(web: Web, fields: dict[str, str]) -> None:
    sane = a_row("g6.xlarge", "0.8")
    wrong = a_row("g5.xlarge", "1").replace('"', "").split(",")
    for name, value in fields.items():
        wrong[COLUMNS.index(name)] = value
    body = a_list(sane, ",".join(f'"{cell}"' for cell in wrong))
    web.serve(f"/offers/v1.0/aws/AmazonEC2/current/{US}/index.csv", body)
    assert list(by_type(read(web))) == ["g6.xlarge"]


@pytest.mark.parametrize("savings", ["NaN", "Infinity", "-5", "100"])
def test_advice_that_is_no_part_of_a_price_is_passed_over(web: Web, savings: str) -> None:
    web.serve("/spot-advisor-data.json", ADVISOR.replace('"s": 60', f'"s": {savings}'))
    found = by_type(read(web))
    assert found["g5.xlarge"].spot is None and found["p5.48xlarge"].spot is not None


@pytest.mark.parametrize("band", ["NaN", "Infinity", '"x"'])
def test_advice_of_another_form_is_told(web: Web, band: str) -> None:
    web.serve("/spot-advisor-data.json", ADVISOR.replace('"r": 1', f'"r": {band}'))
    assert any("used not to send" in note for note in read(web).notes)


def test_a_list_that_breaks_off_is_not_taken(web: Web) -> None:
    path = f"/offers/v1.0/aws/AmazonEC2/current/{US}/index.csv"
    for fields in ({"breaks_off": True}, {"breaks_off": True, "packed": True}):
        web.serve(path, LIST, **fields)
        with pytest.raises(Unreachable):
            read(web)


def test_a_packed_list_is_unpacked(web: Web) -> None:
    web.serve(f"/offers/v1.0/aws/AmazonEC2/current/{US}/index.csv", LIST, packed=True)
    assert len(read(web).listings) == 3


def test_a_refusal_is_told_from_silence(web: Web) -> None:
    web.serve(f"/offers/v1.0/aws/AmazonEC2/current/{US}/index.csv", "", status=403)
    with pytest.raises(Denied, match="refuses us: 403"):
        read(web)
    web.url = "http://127.0.0.1:9"
    with pytest.raises(Unreachable, match="does not answer"):
        read(web)


def test_patterns_are_looked_up_among_the_regions_that_ship(web: Web) -> None:
    read(web, "us-east-*", "gcp/us-east4")
    lists = [path for path in web.asked if "index.csv" in path]
    assert [path.split("/")[-2] for path in lists] == ["us-east-1", "us-east-2"]


@pytest.mark.parametrize(
    ("name", "on_demand", "spot"),
    [
        ("g5.xlarge", "G", "G"), ("gr6.4xlarge", "G", "G"), ("vt1.3xlarge", "G", "G"),
        ("p4d.24xlarge", "P", "P"), ("p5.48xlarge", "P", "P5"), ("p5en.48xlarge", "P", "P5"),
        ("p6-b200.48xlarge", "P", "P6"), ("m7i.large", "standard", "standard"),
        ("c7i.large", "standard", "standard"), ("trn1.2xlarge", "trn", "trn"),
        ("x2idn.16xlarge", "x", "x"), ("u-6tb1.metal", "u", "u"), ("inf2.xlarge", "inf", "inf"),
    ],
)  # fmt: skip
def test_types_count_against_the_quotas_of_ec2(name: str, on_demand: str, spot: str) -> None:
    markets: tuple[Market, ...] = ("on-demand", "spot")
    assert [quota_group(name, market) for market in markets] == [on_demand, spot]


def test_terms_are_those_of_ec2() -> None:
    cloud = AwsPrices()
    g5 = Shape("aws", "g5.xlarge", "A10G", 1, 22.4, 4.0, 16.0)
    terms = cloud.terms(g5, US, "spot")
    assert (terms.notice_s, terms.quota, terms.quota_units) == (120.0, f"aws/{US}/spot/G", 4.0)
    assert terms.egress_usd_gb == 0.09
    assert cloud.terms(g5, "xx-nowhere-1", "spot").egress_usd_gb is None
    metal = g5._replace(type="g4dn.metal")
    assert cloud.terms(metal, US, "on-demand").boot_s > terms.boot_s
    assert cloud.terms(metal, US, "on-demand").notice_s == 0.0


def test_a_hazard_rises_with_the_band() -> None:
    hazards = [hazard_per_h(band) for band in range(5)]
    assert hazards == sorted(hazards)
    assert hazards[0] == pytest.approx(0.025 / 0.975 / 24)


@pytest.mark.parametrize(
    ("said", "gib"),
    [("EBS only", 0.0), ("1 x 250 NVMe SSD", 232.8), ("2 x 1,900 NVMe SSD", 3539.0),
     ("125 GB NVMe SSD", 116.4), ("8 x 3800 GB NVMe SSD", 28312.2), ("", 0.0)],
)  # fmt: skip
def test_disks_are_read_in_all_the_ways_they_are_written(said: str, gib: float) -> None:
    assert disk_gib(said) == pytest.approx(gib, abs=0.1)


# -- with boto3 ----------------------------------------------------------------------------------


def an_item(zone: str, price: str, hour: int) -> dict[str, object]:
    return {"InstanceType": "g5.xlarge", "AvailabilityZone": zone, "SpotPrice": price,
            "Timestamp": datetime(2026, 11, 1, hour, tzinfo=UTC)}  # fmt: skip


def test_of_several_prices_of_a_zone_the_newest_counts() -> None:
    items = [an_item("a", "0.5", 3), an_item("b", "0.3", 1), an_item("a", "0.4", 2)]
    assert newest(items) == {"g5.xlarge": (("a", MicroUsd(500_000)), ("b", MicroUsd(300_000)))}


class Sdk:
    """As much of boto3 as is used."""

    def __init__(self, answer: Any, credentials: object = "yes") -> None:
        self.session, self.asked = self, {}
        self._answer, self._credentials = answer, credentials

    def Session(self) -> "Sdk":
        return self

    def get_credentials(self) -> object:
        return self._credentials

    def client(self, name: str, **fields: object) -> "Sdk":
        self.asked |= {"service": name, **fields}
        return self

    def get_paginator(self, name: str) -> "Sdk":
        return self

    def paginate(self, **fields: object) -> Any:
        self.asked |= fields
        if isinstance(self._answer, Exception):
            raise self._answer
        return [{"SpotPriceHistory": self._answer}]

    asked: dict[str, object]


class FakeClientError(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(f"An error occurred ({code})")
        self.response = {"Error": {"Code": code}}


class FakeBotoCoreError(Exception):
    pass


@pytest.fixture
def botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for the modules of botocore that are used."""
    errors, config = ModuleType("botocore.exceptions"), ModuleType("botocore.config")
    errors.__dict__.update(ClientError=FakeClientError, BotoCoreError=FakeBotoCoreError)
    config.__dict__["Config"] = dict
    for module in (ModuleType("botocore"), errors, config):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_spot_history_is_asked_for_linux_now(botocore: None) -> None:
    sdk = Sdk([an_item("a", "0.5", 3)])
    found = DescribedHistory(lambda: sdk).prices(US, ["g5.xlarge"], NOW)
    assert found == {"g5.xlarge": (("a", MicroUsd(500_000)),)}
    assert (sdk.asked["service"], sdk.asked["region_name"]) == ("ec2", US)
    assert sdk.asked["ProductDescriptions"] == ["Linux/UNIX"]
    assert sdk.asked["StartTime"] == datetime.fromtimestamp(NOW, UTC)


@pytest.mark.parametrize(
    ("sdk", "kind", "words"),
    [
        (Sdk([], credentials=None), Denied, "no AWS credentials"),
        (Sdk(FakeClientError("UnauthorizedOperation")), Denied, "UnauthorizedOperation"),
        (Sdk(FakeClientError("RequestLimitExceeded")), Unreachable, "RequestLimitExceeded"),
        (Sdk(FakeBotoCoreError("no route")), Unreachable, "no route"),
    ],
)
def test_what_the_sdk_says_is_told_by_what_is_done_next(
    botocore: None, sdk: Sdk, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        DescribedHistory(lambda: sdk).prices(US, ["g5.xlarge"], NOW)


def test_a_missing_sdk_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(Denied) as caught:
        DescribedHistory().prices(US, ["g5.xlarge"], NOW)
    assert caught.value.remedy == "pip install 'cloudwhale[aws]'"
