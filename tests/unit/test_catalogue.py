"""What can be rented by all that is known here: lists that are merged, kept, and your own."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from price_lists import DAY_S, NOW, FakePrices, a_listing, a_price, a_shape

from cloudwhale.control.catalogue import Catalogue, catalogue, files, opening
from cloudwhale.control.catalogue.cached import cached, folder, keep
from cloudwhale.control.catalogue.listed import offers_of
from cloudwhale.control.catalogue.merging import merged
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.listings import written
from cloudwhale.spi.prices import Listing, Market, Shape, Terms


def own(file: str) -> Sequence[Listing]:
    """Return the listings of a file, with the price lists that are installed."""
    return files.own(file, opening.price_lists())


SHIPPED = [a_listing(region=region) for region in ("us-east-1", "eu-west-1")]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, and one cloud with a short list."""
    monkeypatch.setattr(opening, "price_lists", lambda: {"aws": FakePrices(SHIPPED)})
    return tmp_path


def opened(home: Path, *files: Path, now: float = NOW) -> Catalogue:
    return catalogue(Settings(home=home, prices=tuple(map(str, files))), now)


def by_id(offers: Iterable[Offer]) -> dict[str, Offer]:
    return {offer.id: offer for offer in offers}


def a_file(home: Path, listings: Sequence[Listing], name: str = "my.csv") -> Path:
    file = home / name
    file.write_text("".join(written(listings)))
    return file


# -- offers ----------------------------------------------------------------------------------


def test_a_listing_becomes_an_offer_for_each_zone_and_market() -> None:
    listing = a_listing(zones=("us-east-1a", "us-east-1b"), hazard_per_h=0.02)
    found = by_id(offers_of([listing], {"aws": FakePrices([])}))
    assert sorted(found) == [
        "aws/us-east-1a/g5.xlarge/on-demand", "aws/us-east-1a/g5.xlarge/spot",
        "aws/us-east-1b/g5.xlarge/on-demand", "aws/us-east-1b/g5.xlarge/spot",
    ]  # fmt: skip
    spot = found["aws/us-east-1b/g5.xlarge/spot"]
    assert (spot.zone, spot.region, spot.type) == ("us-east-1b", "us-east-1", "g5.xlarge")
    assert (spot.price_usd_h, spot.cap_usd_h) == (400_000, 1_000_000)
    assert (spot.hazard_per_h, spot.boot_s, spot.notice_s) == (0.02, 100.0, 30.0)
    assert (spot.quota, spot.quota_units, spot.extras_usd_h) == ("q", 4.0, 10_000)
    assert (spot.priced_at, spot.source) == (NOW - DAY_S, "list")
    steady = found["aws/us-east-1a/g5.xlarge/on-demand"]
    assert (steady.hazard_per_h, steady.cap_usd_h) == (0.0, 1_000_000)
    assert steady.facts is spot.facts, "facts of one type are one object"


def test_an_offer_is_what_validation_would_make_of_it() -> None:
    for offer in offers_of([a_listing(), *SHIPPED], {"aws": FakePrices([])}):
        assert Offer.model_validate(offer.model_dump()) == offer


def test_where_no_zone_is_known_the_region_stands_for_it() -> None:
    found = by_id(offers_of([a_listing(zones=(), spot=None)], {}))
    assert list(found) == ["aws/us-east-1/g5.xlarge/on-demand"]


def test_zones_may_have_spot_prices_of_their_own() -> None:
    spot = a_price(0.3, zones=(("a", micro_usd("0.3")), ("b", micro_usd("0.45"))))
    found = by_id(offers_of([a_listing(on_demand=None, spot=spot, zones=("a", "b"))], {}))
    assert [offer.price_usd_h for offer in found.values()] == [300_000, 450_000]
    assert {offer.cap_usd_h for offer in found.values()} == {None}, "nobody bounds it"


def test_a_zone_whose_spot_price_nobody_has_said_is_offered_on_demand_alone() -> None:
    spot = a_price(0.3, zones=(("a", micro_usd("0.3")),))
    found = by_id(offers_of([a_listing(spot=spot, zones=("a", "b"))], {}))
    assert sorted(found) == [
        "aws/a/g5.xlarge/on-demand", "aws/a/g5.xlarge/spot", "aws/b/g5.xlarge/on-demand",
    ]  # fmt: skip


def test_a_type_that_is_not_sold_in_a_market_is_not_offered_there() -> None:
    class Sold(FakePrices):
        def terms(self, shape: Shape, region: str, market: Market) -> Terms:
            return super().terms(shape, region, market)._replace(is_sold=market == "spot")

    [offer] = offers_of([a_listing()], {"aws": Sold([])})
    assert (offer.market, offer.cap_usd_h) == ("spot", 1_000_000)


def test_a_driver_shows_less_than_the_nominal_memory() -> None:
    [offer] = offers_of([a_listing(spot=None)], {})
    assert (offer.facts.devices[0].memory_gib, offer.facts.devices[0].packs_gib) == (24.0, 22.4)


# -- merging -----------------------------------------------------------------------------------


def test_the_newest_price_of_each_market_wins_whoever_comes_last() -> None:
    old = a_listing(on_demand=a_price(1.0, at=NOW - 9), spot=a_price(0.5, at=NOW - 1))
    new = a_listing(on_demand=a_price(2.0, at=NOW - 1), spot=a_price(0.6, at=NOW - 9))
    for lists in ([[old], [new]], [[new], [old]]):
        [one] = merged(lists, NOW).listings
        assert one.on_demand == a_price(2.0, at=NOW - 1)
        assert one.spot == a_price(0.5, at=NOW - 1)


def test_of_equally_new_prices_that_of_the_later_list_holds() -> None:
    [one] = merged([[a_listing(on_demand=1.0)], [a_listing(on_demand=1.1)]], NOW).listings
    assert one.on_demand == a_price(1.1)


def test_a_price_from_the_future_wins_over_none() -> None:
    ahead = a_listing(on_demand=a_price(9.0, at=NOW + 99 * DAY_S), spot=None)
    [one] = merged([[a_listing()], [ahead]], NOW).listings
    assert one.on_demand == a_price(1.0)
    assert merged([[ahead]], NOW).listings == (ahead,)


def test_what_only_one_list_knows_is_kept() -> None:
    older = a_listing(zones=("a", "b"), hazard_per_h=0.02)
    newer = a_listing(spot=None, zones=(), hazard_per_h=None)
    [one] = merged([[older], [newer]], NOW).listings
    assert (one.zones, one.hazard_per_h, one.spot) == (("a", "b"), 0.02, older.spot)


def test_two_sources_that_are_far_apart_are_told_and_the_later_is_taken() -> None:
    lists = [
        [a_listing(on_demand=a_price(1.0, at=NOW - 9))],
        [a_listing(on_demand=a_price(1.6, source="mine"))],
    ]
    found = merged(lists, NOW)
    [apart] = found.disagreements
    assert (apart.taken.source, apart.other.source) == ("list", "mine")
    assert apart.times == pytest.approx(1.6)
    close = merged([[a_listing()], [a_listing(on_demand=a_price(1.4, source="mine"))]], NOW)
    assert close.disagreements == ()


# -- what is kept ------------------------------------------------------------------------------


def test_what_is_kept_is_read_again(home: Path) -> None:
    keep(home, "aws", SHIPPED, NOW)
    assert cached(home).listings == tuple(SHIPPED)
    assert [file.name for file in folder(home).iterdir()] == ["aws.csv"]


def test_what_is_kept_goes_before_what_ships(home: Path) -> None:
    keep(home, "aws", [a_listing(on_demand=a_price(3.0, at=NOW))], NOW)
    found = by_id(opened(home).offers)
    assert found["aws/us-east-1a/g5.xlarge/on-demand"].price_usd_h == 3_000_000
    assert found["aws/eu-west-1a/g5.xlarge/on-demand"].price_usd_h == 1_000_000


def test_a_type_that_is_gone_from_a_region_that_was_read_is_offered_no_more(home: Path) -> None:
    keep(home, "aws", [a_listing("g6.xlarge", "us-east-1")], NOW)
    found = {(offer.type, offer.region) for offer in opened(home).offers}
    assert found == {("g6.xlarge", "us-east-1"), ("g5.xlarge", "eu-west-1")}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin"),
        ("rubbish\n", "does not begin"),
        ("# cloudwhale prices, form 99, read at 1.0\nx\n# end\n", "is of form 99"),
        ("# cloudwhale prices, form 1, read at 1.0\nprovider,type\n", "breaks off"),
        ("# cloudwhale prices, form 1, read at 1.0\nprovider,type\n# end\n", "no column"),
        ("# cloudwhale prices, form 1, read at 1.0\n\xff\n# end\n", "not UTF-8"),
        ("# cloudwhale prices, form 1, read at 1.2.3\nx\n# end\n", "does not begin"),
        (
            "# cloudwhale prices, form 1, read at 1.0\n"
            "provider,type,region,cpu,memory_gib,spot_usd_h\ngcp,b,c,1,1,2\n# end\n",
            "has prices of gcp",
        ),
    ],
)
def test_kept_prices_that_cannot_be_read_are_set_aside_and_told(
    home: Path, text: str, why: str
) -> None:
    folder(home).mkdir()
    (folder(home) / "aws.csv").write_text(text, encoding="latin-1")
    found = opened(home)
    assert by_id(found.offers).keys() == by_id(offers_of(SHIPPED, {})).keys()
    assert "cannot be used" in found.notes[0] and why in found.notes[0]
    assert (folder(home) / "aws.csv.unreadable").read_text(encoding="latin-1") == text
    assert "cannot be used" not in " ".join(opened(home).notes), "it is looked at once"


def test_what_is_no_file_is_not_waited_for(home: Path) -> None:
    folder(home).mkdir()
    os.mkfifo(folder(home) / "aws.csv")
    assert "is not a regular file" in opened(home).notes[0]
    assert (folder(home) / "aws.csv").is_fifo(), "it is not ours to move"


def test_kept_prices_that_the_system_does_not_give_stay_where_they_are(home: Path) -> None:
    (folder(home) / "aws.csv").mkdir(parents=True)
    assert "is not a regular file" in opened(home).notes[0]
    assert (folder(home) / "aws.csv").is_dir()


# -- your own ----------------------------------------------------------------------------------


def test_a_file_of_your_own_is_added(home: Path) -> None:
    shape = a_shape("box", "lab", gpu="L4", gpu_gib=24.0)
    file = a_file(home, [a_listing(shape=shape, region="cellar", spot=None, zones=())])
    box = by_id(opened(home, file).offers)["lab/cellar/box/on-demand"]
    assert (box.price_usd_h, box.cap_usd_h, box.quota) == (1_000_000, 1_000_000, "")
    assert box.billing_least_s == 3600.0, "nobody has said how it bills"


def test_a_price_of_your_own_holds_when_it_is_newer(home: Path) -> None:
    file = a_file(home, [a_listing(on_demand=a_price(5.0, at=NOW, source="mine"))])
    found = opened(home, file)
    assert by_id(found.offers)["aws/us-east-1a/g5.xlarge/on-demand"].price_usd_h == 5_000_000
    assert any("Two sources say different things of 1 price;" in n for n in found.notes)


def test_prices_without_a_date_are_as_old_as_their_file(home: Path) -> None:
    file = home / "my.csv"
    file.write_text("provider,type,region,cpu,memory_gib,on_demand_usd_h\nlab,b,c,1,1,2\n")
    [one] = own(str(file))
    assert one.on_demand is not None
    assert one.on_demand.at == file.stat().st_mtime
    assert one.on_demand.source == "my.csv"


def test_a_file_that_is_not_there_or_no_file_is_refused(home: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        opened(home, home / "gone.csv")
    with pytest.raises(SettingsError, match="is not a file"):
        opened(home, home)


def test_text_that_is_not_utf8_is_refused_with_its_line(home: Path) -> None:
    (home / "my.csv").write_bytes(b"a,b\n\xff\n")
    with pytest.raises(SettingsError, match="my.csv:2: this is not UTF-8"):
        own(str(home / "my.csv"))


def test_the_same_thing_twice_in_a_file_is_refused(home: Path) -> None:
    file = a_file(home, [a_listing(), a_listing()])
    with pytest.raises(SettingsError, match="g5.xlarge in us-east-1 stands there twice"):
        own(str(file))


# -- gpuhunt -----------------------------------------------------------------------------------

GPUHUNT = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size\n"
    "g5.xlarge,us-east-1,1.006,4,16.0,1,A10G,24.0,False,\n"
    "g5.xlarge,us-east-1,0.41,4,16.0,1,A10G,24.0,True,\n"
    "m7i.large,us-east-1,0.1,2,8.0,0,,,False,\n"
    "trn1,us-east-1,1.3,8,32.0,1,Trainium,32.0,False,\n"
)


def test_gpuhunts_rows_become_listings(tmp_path: Path) -> None:
    (tmp_path / "aws.csv").write_text(GPUHUNT)
    found = own(str(tmp_path / "aws.csv"))
    assert [one.shape.type for one in found] == ["g5.xlarge", "m7i.large"]
    assert found[0].shape == a_shape(gpu_gib=24.0)
    assert found[0].on_demand is not None and found[0].spot is not None
    assert (found[0].on_demand.usd_h, found[0].spot.usd_h) == (1_006_000, 410_000)


def test_its_locations_of_gcp_are_zones(tmp_path: Path) -> None:
    rows = ["instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot"]
    rows += [f"g2-standard-4,us-central1-{z},0.{n},4,16,1,L4,24,True" for z, n in ("a3", "b4")]
    (tmp_path / "gcp.csv").write_text("\n".join(rows))
    [one] = own(str(tmp_path / "gcp.csv"))
    assert (one.region, one.zones) == ("us-central1", ("us-central1-a", "us-central1-b"))
    assert one.spot is not None
    assert one.spot.zones == (
        ("us-central1-a", MicroUsd(300_000)), ("us-central1-b", MicroUsd(400_000)),
    )  # fmt: skip


def hunted(folder: Path, *rows: str) -> list[Listing]:
    (folder / "aws.csv").write_text("\n".join((GPUHUNT.splitlines()[0], *rows, "")))
    return list(own(str(folder / "aws.csv")))


@pytest.mark.parametrize(
    "row",
    [
        "g6f.large,us-east-1,0.2,2,8,0.125,L4,3,False,",
        "rack,us-east-1,90,8,64,100000000,A100,80,False,",
        "nothing,us-east-1,0.2,,8,0,,,False,",
        "nothing,us-east-1,0.2,2,,0,,,False,",
        "m7i.large,us-east-1,,2,8,0,,,False,",
    ],
)
def test_machines_of_it_that_no_job_can_ask_for_are_passed_over(tmp_path: Path, row: str) -> None:
    assert hunted(tmp_path, row) == []


def test_of_machines_of_one_name_the_smallest_is_taken_with_its_own_prices(tmp_path: Path) -> None:
    [one] = hunted(
        tmp_path,
        "n1-standard-8,us-east-1,2.6,8,30,1,V100,16,False,",
        "n1-standard-8,us-east-1,0.4,8,30,0,,,False,",
        "n1-standard-8,us-east-1,1.1,8,30,1,V100,16,True,",
    )
    assert (one.shape.gpus, one.spot) == (0, None)
    assert one.on_demand is not None and one.on_demand.usd_h == 400_000


def test_of_two_prices_of_one_thing_the_first_holds(tmp_path: Path) -> None:
    [one] = hunted(
        tmp_path, "m7i.large,us-east-1,0.1,2,8,0,,,False,", "m7i.large,us-east-1,0.3,2,8,0,,,False,"
    )
    assert one.on_demand is not None and one.on_demand.usd_h == 100_000


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("g5,r,-1,4,16,1,A10G,24,False,", "aws.csv:2: price: '-1' is not between 0"),
        ("g5,r,1,x,16,1,A10G,24,False,", "aws.csv:2: cpu: 'x' is not a number"),
        (",r,1,4,16,1,A10G,24,False,", "aws.csv:2: instance_name: '' is no name"),
        ("g5,,1,4,16,1,A10G,24,False,", "aws.csv:2: location: '' is no name"),
        ("g5,r,NaN,4,16,1,A10G,24,False,", "aws.csv:2: price: 'NaN' is not between 0"),
        ("g5,r,1e999999999,4,16,1,A10G,24,False,", "price: '1e999999999' is not between 0"),
        ("g5,r,1,4,16,nan,A10G,24,False,", "aws.csv:2: gpu_count: 'nan' is not a number"),
        ("g5,r,1,4,16,1,A10G,24,maybe,", "aws.csv:2: spot: 'maybe' is neither true nor false"),
    ],
)
def test_a_wrong_row_of_it_is_refused(tmp_path: Path, row: str, words: str) -> None:
    (tmp_path / "aws.csv").write_text(GPUHUNT.splitlines()[0] + f"\n{row}\n")
    with pytest.raises(SettingsError, match=words):
        own(str(tmp_path / "aws.csv"))


# -- what it says of itself ----------------------------------------------------------------------


def test_a_fresh_catalogue_has_nothing_to_say(home: Path) -> None:
    assert opened(home).notes == ()
    assert opened(home).counts == {}


def test_an_old_one_says_how_old_and_what_to_do(home: Path) -> None:
    [note] = opened(home, now=NOW + 99 * DAY_S).notes
    assert note.startswith("4 of 4 prices are 100 days old, over the 30 of")
    assert "catalog update" in note
    assert len(opened(home, now=NOW + 99 * DAY_S).offers) == 4, "they are used all the same"


def test_how_old_is_old_can_be_set(home: Path) -> None:
    settings = Settings(home=home, catalogue_max_age_days=365.0)
    assert catalogue(settings, NOW + 99 * DAY_S).notes == ()


def test_one_from_the_future_says_so(home: Path) -> None:
    [note] = opened(home, now=NOW - 50 * DAY_S).notes
    assert note.startswith("4 prices dated after now (list)")


def test_what_was_dropped_is_counted_by_rule(home: Path) -> None:
    bad = [a_listing("t1", on_demand=0.0), a_listing("t2", spot=2.0), a_listing("t3", spot=2.0)]
    found = opened(home, a_file(home, bad))
    assert found.counts == {"zero": 1, "spot-dearer": 2}
    assert "1 that cost nothing; 2 that are spot and not cheaper than" in found.notes[0]


def test_an_absurd_price_does_not_hide_a_sane_one(home: Path) -> None:
    file = a_file(home, [a_listing(on_demand=a_price(0.0, at=NOW), spot=None)])
    found = by_id(opened(home, file).offers)
    assert found["aws/us-east-1a/g5.xlarge/on-demand"].price_usd_h == 1_000_000


def test_no_list_at_all_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "price_lists", dict)
    found = opened(tmp_path)
    assert found.offers == ()
    assert found.notes[0].startswith("No price is known of anything")
