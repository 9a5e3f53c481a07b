"""Reading prices anew: what is kept, what is told, and what a source that fails leaves alone."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from price_lists import DAY_S, NOW, FakePrices, a_listing, a_price

from cloudwhale.control.catalogue.cached import cached, folder, keep
from cloudwhale.control.catalogue.changes import Thing, changes, words_of
from cloudwhale.control.catalogue.updating import Updated, update
from cloudwhale.spi.errors import Denied, SettingsError, Unreachable
from cloudwhale.spi.prices import Listing, Reading, Told

OLD = [a_listing("g5.xlarge"), a_listing("g6.xlarge"), a_listing("p5", "eu-west-1", 98.0, 40.0)]
NEW = [
    a_listing("g5.xlarge", on_demand=a_price(1.1, at=NOW), spot=a_price(0.3, at=NOW)),
    a_listing("g7.xlarge", on_demand=a_price(2.0, at=NOW), spot=None),
]


def updated(home: Path, now: float = NOW, /, **clouds: FakePrices) -> dict[str, Updated]:
    return {one.cloud: one for one in update(home, clouds, (), now, lambda words: None)}


def kept(home: Path) -> set[tuple[str, str]]:
    return {(one.shape.type, one.region) for one in cached(home).listings}


def test_what_was_read_is_kept_and_what_has_changed_is_told(tmp_path: Path) -> None:
    one = updated(tmp_path, aws=FakePrices(OLD, NEW))["aws"]
    assert kept(tmp_path) == {("g5.xlarge", "us-east-1"), ("g7.xlarge", "us-east-1")}
    assert one.regions == ("us-east-1",)
    assert one.changes is not None
    assert one.changes.new == (Thing("g7.xlarge", "us-east-1", "on-demand"),)
    assert [thing.type for thing in one.changes.gone] == ["g6.xlarge", "g6.xlarge"]
    assert [move.thing.market for move in one.changes.dearer] == ["on-demand"]
    assert [move.share for move in one.changes.cheaper] == [pytest.approx(-0.25)]


def test_the_second_reading_is_compared_with_the_first(tmp_path: Path) -> None:
    updated(tmp_path, aws=FakePrices(OLD, NEW))
    again = updated(tmp_path, NOW + DAY_S, aws=FakePrices(OLD, NEW))["aws"].changes
    assert again is not None
    assert (again.dearer, again.cheaper, again.new, again.gone) == ((), (), (), ())
    assert again.same == 3


@pytest.mark.parametrize("error", [Unreachable("it is silent"), Denied("no key", "Make one.")])
def test_a_source_that_fails_leaves_what_was_kept(tmp_path: Path, error: Exception) -> None:
    updated(tmp_path, aws=FakePrices(OLD, NEW))
    before = (folder(tmp_path) / "aws.csv").read_bytes()
    one = updated(tmp_path, aws=FakePrices(OLD, error))["aws"]
    assert one.changes is None
    assert one.listings == 2
    assert str(error).split("\n")[0] in one.notes[0]
    assert "are kept" in one.notes[0]
    assert (folder(tmp_path) / "aws.csv").read_bytes() == before


def test_one_cloud_that_fails_does_not_keep_the_other_from_being_read(tmp_path: Path) -> None:
    clouds = {"aws": FakePrices(OLD, Unreachable("silent")), "gcp": FakePrices([], NEW)}
    found = updated(tmp_path, **clouds)
    assert found["aws"].changes is None and found["gcp"].changes is not None


def test_regions_that_were_not_read_stay_as_they_were(tmp_path: Path) -> None:
    updated(tmp_path, aws=FakePrices(OLD, OLD))
    updated(tmp_path, aws=FakePrices(OLD, NEW))
    assert ("p5", "eu-west-1") in kept(tmp_path)
    assert ("g6.xlarge", "us-east-1") not in kept(tmp_path)


def test_prices_that_cannot_be_right_are_dropped_and_told(tmp_path: Path) -> None:
    absurd = [*NEW, a_listing("p9", on_demand=0.0, spot=None)]
    one = updated(tmp_path, aws=FakePrices(OLD, absurd))["aws"]
    assert "Prices that were dropped: 1 that cost nothing." in one.notes
    assert ("p9", "us-east-1") not in kept(tmp_path)


def test_a_list_of_nothing_but_absurd_prices_is_not_taken(tmp_path: Path) -> None:
    nothing = [a_listing("p9", on_demand=0.0, spot=None)]
    one = updated(tmp_path, aws=FakePrices(OLD, nothing))["aws"]
    assert one.changes is None
    assert not (folder(tmp_path) / "aws.csv").exists()


def test_nothing_of_it_asked_for_changes_nothing(tmp_path: Path) -> None:
    one = updated(tmp_path, aws=FakePrices(OLD, []))["aws"]
    assert one.changes is None and not folder(tmp_path).exists()


def test_the_regions_that_were_asked_for_are_passed_on(tmp_path: Path) -> None:
    cloud = FakePrices(OLD)
    update(tmp_path, {"aws": cloud}, ("us-*",), NOW, lambda words: None)
    assert cloud.asked == [("us-*",)]


def test_the_largest_moves_come_first_and_rounding_is_none() -> None:
    before = [a_listing(f"t{number}", on_demand=1.0, spot=None) for number in range(4)]
    after = [
        a_listing(f"t{number}", on_demand=usd_h, spot=None)
        for number, usd_h in enumerate((1.001, 1.1, 1.5, 0.5))
    ]
    found = changes(before, after)
    assert [move.thing.type for move in found.dearer] == ["t2", "t1"]
    assert words_of(found.dearer, 1) == "t2 us-east-1 on-demand 1 to 1.5 (+50%)"
    assert words_of(found.cheaper) == "t3 us-east-1 on-demand 1 to 0.5 (-50%)"
    assert found.same == 1


def test_zones_are_compared_by_their_least_price() -> None:
    one: Listing = a_listing(spot=a_price(0.4, zones=()))
    assert changes([one], [one]).same == 2


def test_two_updates_at_once_keep_what_each_has_read(tmp_path: Path) -> None:
    class Slow(FakePrices):
        """While it reads, another update ends."""

        def read(self, regions: Sequence[str], now: float, told: Told) -> Reading:
            updated(tmp_path, aws=FakePrices(OLD, [a_listing("p5", "eu-west-1")]))
            return super().read(regions, now, told)

    updated(tmp_path, aws=Slow(OLD, NEW))
    assert kept(tmp_path) == {
        ("p5", "eu-west-1"), ("g5.xlarge", "us-east-1"), ("g7.xlarge", "us-east-1"),
    }  # fmt: skip


def test_a_region_of_nothing_but_absurd_prices_stays_as_it_was(tmp_path: Path) -> None:
    updated(tmp_path, aws=FakePrices(OLD))
    absurd = a_listing("p5", "eu-west-1", 9999.0, None)
    one = updated(tmp_path, aws=FakePrices(OLD, [*NEW, absurd]))["aws"]
    assert one.regions == ("us-east-1",)
    assert ("p5", "eu-west-1") in kept(tmp_path)


def test_an_update_that_is_cut_off_while_it_writes_leaves_nothing_behind(tmp_path: Path) -> None:
    def cut_off() -> Iterator[Listing]:
        yield from OLD
        raise KeyboardInterrupt

    updated(tmp_path, aws=FakePrices(OLD))
    before = (folder(tmp_path) / "aws.csv").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        keep(tmp_path, "aws", cut_off(), NOW)
    assert (folder(tmp_path) / "aws.csv").read_bytes() == before
    assert {file.name for file in folder(tmp_path).iterdir()} == {"aws.csv", "lock"}


def test_a_list_that_lacks_most_of_what_was_known_is_not_taken(tmp_path: Path) -> None:
    many = [a_listing(f"g{number}", region) for number in range(5) for region in ("a", "b")]
    lists = FakePrices(many, [*many[::2][:2], *many[1::2][:3], a_listing("new", "c")])
    one = updated(tmp_path, aws=lists)["aws"]
    assert one.regions == ("b", "c")
    assert one.notes == (
        "a: of 5 types that were known, sane prices came for 2; what was known is kept.",
    )


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "prices").write_text("in the way")
    with pytest.raises(SettingsError, match="prices cannot be kept in .*: File exists"):
        updated(tmp_path, aws=FakePrices(OLD, NEW))
