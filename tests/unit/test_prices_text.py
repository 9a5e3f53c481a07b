"""Price lists as text: what is read, what is refused, and that writing loses nothing."""

import random

import pytest
from price_lists import NOW, a_listing, a_price, a_shape

from cloudwhale.model.gpus import MODELS
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.listings import COLUMNS, Origin, read, written
from cloudwhale.spi.prices import Listing
from cloudwhale.spi.spelling import hourly, instant

HERE = Origin("my.csv", NOW, "mine")
HEADING = "provider,type,region,gpu,gpus,gpu_gib,cpu,memory_gib,on_demand_usd_h,spot_usd_h"
ROW = "lab,box-1,cellar,A10G,1,24,8,32,0.5,0.2"


def read_one(*lines: str) -> Listing:
    found = list(read([f"{line}\n" for line in lines], HERE))
    assert len(found) == 1
    return found[0]


def said(*lines: str) -> str:
    with pytest.raises(SettingsError) as caught:
        list(read([f"{line}\n" for line in lines], HERE))
    return str(caught.value)


def test_a_row_is_a_machine_type_in_a_region_with_its_prices() -> None:
    one = read_one("# my machines", HEADING, "", ROW)
    assert one.shape == a_shape("box-1", "lab", gpu_gib=24.0, cpu=8.0, memory_gib=32.0)
    assert (one.region, one.zones) == ("cellar", ())
    assert one.on_demand == a_price(0.5, at=NOW, source="mine")
    assert one.spot == a_price(0.2, at=NOW, source="mine")


def test_a_price_that_is_absent_is_unknown_and_not_zero() -> None:
    one = read_one(HEADING, "lab,box-1,cellar,A10G,1,24,8,32,,0.2")
    assert one.on_demand is None and one.spot is not None


def test_prices_of_zones_stand_behind_their_names() -> None:
    one = read_one(f"{HEADING},zones", f"{ROW},a=0.3;b=0.25;c")
    assert one.zones == ("a", "b", "c")
    assert one.spot is not None
    a, b, c = ("a", micro_usd("0.3")), ("b", micro_usd("0.25")), ("c", micro_usd("0.2"))
    assert one.spot.zones == (a, b, c), "who has none has that of all"
    assert one.spot.usd_h == micro_usd("0.2")


def test_a_zone_whose_spot_price_nobody_says_has_none() -> None:
    one = read_one(f"{HEADING},zones", f"{ROW.removesuffix('0.2')},a=0.3;b")
    assert one.spot is not None and one.spot.zones == (("a", micro_usd("0.3")),)
    assert list(read(list(written([one])), HERE)) == [one]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("on_demand_usd_h", "-1", "my.csv:3: on_demand_usd_h: '-1' is not between 0"),
        ("on_demand_usd_h", "1e9", "is not between 0"),
        ("on_demand_usd_h", "NaN", "is not between 0"),
        ("spot_usd_h", "cheap", "my.csv:3: spot_usd_h: 'cheap' is not a price"),
        ("gpu", "Voodoo2", "gpu: 'Voodoo2' is no GPU model that is known"),
        ("gpus", "0.5", "gpus: '0.5' is no whole number"),
        ("gpus", "-1", "gpus: '-1' is not a number from 0 on"),
        ("cpu", "0", "cpu: '0' is not above 0"),
        ("cpu", "", "cpu: '' is not above 0"),
        ("memory_gib", "lots", "memory_gib: 'lots' is not a number"),
        ("region", "", "region: '' is no name"),
        ("provider", "a/b", "provider: 'a/b' is no name"),
        ("type", " ", "type: ' ' is no name"),
        ("type", "box\x1b[31m", "is no name"),
        ("type", "x" * 101, "is no name"),
        ("region", "a/b", "region: 'a/b' is no name"),
        ("on_demand_usd_h", "1e999999999", "is not between 0"),
        ("gpus", "", "gpus: '' are none of a model"),
        ("gpus", "100000000", "gpus: '100000000' is above 1,024"),
    ],
)
def test_a_wrong_value_is_named_with_file_line_and_column(
    column: str, value: str, words: str
) -> None:
    names, cells = HEADING.split(","), ROW.split(",")
    cells[names.index(column)] = value
    assert words in said("# mine", HEADING, ",".join(cells))


@pytest.mark.parametrize(
    ("extra", "value", "words"),
    [
        ("currency", "EUR", "currency: 'EUR' is not USD"),
        ("estimated", "perhaps", "estimated: 'perhaps' names no market"),
        ("on_demand_at", "yesterday", "on_demand_at: 'yesterday' is not a date"),
        ("on_demand_at", "0001-01-01", "is not between 1970 and 2200"),
        ("on_demand_at", "9999-12-31T23:59-14:00", "is not between 1970 and 2200"),
        ("zones", "a=-3", "zones: 'a=-3' is not between 0"),
        ("zones", "a;b;a", "zones: 'a;b;a' has a twice"),
        ("zones", "a=0.3;a=0.4", "has a twice"),
        ("zones", "a/b", "zones: 'a/b' is no name"),
        ("zones", "=0.3", "is no name"),
    ],
)
def test_what_else_is_said_is_checked_too(extra: str, value: str, words: str) -> None:
    assert words in said(f"{HEADING},{extra}", f"{ROW},{value}")


def test_dollars_may_be_named() -> None:
    assert read_one(f"{HEADING},currency", f"{ROW},usd").on_demand is not None


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((), "it has no heading"),
        (("provider,type",), "there is no column 'cpu'"),
        ((f"{HEADING},colour",), "there is no column 'colour'"),
        ((f"{HEADING},cpu",), "two columns are called 'cpu'"),
        ((HEADING, f"{ROW},more"), "my.csv:2: 11 values for 10 columns"),
        ((HEADING, '"lab'), "my.csv:2:"),
        (("provider,type,region,cpu,memory_gib", "a,b,c,1,1"), "it has no column of prices"),
        ((HEADING.replace(",", ";"),), "its columns are parted by ';'"),
    ],
)
def test_a_file_that_is_no_such_list_is_refused(lines: tuple[str, ...], words: str) -> None:
    assert words in said(*lines)


def test_what_is_written_is_read_again_as_it_was() -> None:
    rng = random.Random(5)
    listings = [
        a_listing(
            f"type-{number}", rng.choice(("us-east-1", "eu,1")),
            a_price(rng.uniform(0.01, 90), source='a "b", c', estimated=rng.random() < 0.5)
            if rng.random() < 0.8 else None,
            a_price(0.25, at=NOW - rng.randrange(10**7)) if number % 3 else
            a_price(0.1, zones=(("z1", MicroUsd(100_000)), ("z2", MicroUsd(120_000)))),
            zones=("z1", "z2") if number % 3 != 1 else (), hazard_per_h=rng.choice((None, 0.25)),
            shape=a_shape(f"type-{number}", gpu=(gpu := rng.choice(sorted(MODELS))),
                          gpus=rng.randrange(1, 9), gpu_gib=MODELS[gpu].memory_gib),
        )
        for number in range(60)
    ]  # fmt: skip
    assert list(read(list(written(listings, ("first", "second"))), HERE)) == listings


def test_the_heading_that_is_written_has_every_column() -> None:
    assert list(written([]))[-1].strip().split(",") == list(COLUMNS)


def test_a_day_is_its_midnight_in_utc() -> None:
    assert instant("1970-01-02") == 86400.0
    assert instant("1970-01-01T02:00:00+02:00") == 0.0


@pytest.mark.parametrize("text", ["-0.01", "100001", "1e999999999", "Infinity", "sNaN", "", "1,5"])
def test_what_no_machine_can_cost_is_no_price(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        hourly(text)
