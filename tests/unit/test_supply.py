"""What a plan may count on: the catalogue, less what settings keep out, less what another beats."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from previewing import NOW, a_desk, a_gpu_job, only

from cloudwhale.control.catalogue import opening
from cloudwhale.control.preview import preview
from cloudwhale.control.supply import supply
from cloudwhale.control.trying import Part
from cloudwhale.model.units import micro_usd
from cloudwhale.settings import Settings


def settings(home: Path, **fields: object) -> Settings:
    return Settings.model_validate({"home": home, **fields})


def test_where_clouds_are_set_only_what_they_offer_counts_and_can_be_launched(
    tmp_path: Path,
) -> None:
    found = supply(settings(tmp_path, clouds={"aws": {}}), NOW)
    assert {offer.provider for offer in found.offers} == {"aws"}
    assert found.can_launch


def test_a_cloud_offers_in_its_own_regions_alone(tmp_path: Path) -> None:
    there = {"aws": {"regions": ["us-east-*"]}, "gcp": {"regions": "europe-west4"}}
    found = supply(settings(tmp_path, clouds=there), NOW)
    places = {(offer.provider, offer.region) for offer in (*found.offers, *found.barred)}
    assert ("gcp", "europe-west4") in places
    assert all(region.startswith("us-east-") for name, region in places if name == "aws")


def test_what_another_beats_is_left_out(tmp_path: Path) -> None:
    known = opening.catalogue(settings(tmp_path), NOW).offers
    found = supply(settings(tmp_path), NOW)
    assert 50 < len(found.offers) < len(known) / 4
    assert {offer.provider for offer in found.offers} == {"aws", "gcp"}
    assert found.barred == () and not found.counts and not found.can_launch


@pytest.mark.parametrize(
    ("fields", "setting"),
    [
        ({"regions": ("us-*",)}, "regions"),
        ({"never": ("p*", "a3-*")}, "never"),
        ({"max_price_usd_h": 2.0}, "max_price_usd_h"),
    ],
)
def test_what_a_setting_keeps_out_is_known_and_counted(
    tmp_path: Path, fields: Mapping[str, object], setting: str
) -> None:
    found = supply(settings(tmp_path, **fields), NOW)
    assert found.offers and found.barred
    assert set(found.counts) == {setting}
    assert not {offer.id for offer in found.offers} & {offer.id for offer in found.barred}


def test_no_machine_is_dearer_than_the_setting_allows(tmp_path: Path) -> None:
    found = supply(settings(tmp_path, max_price_usd_h=2.0), NOW)
    prices = [(offer.price_usd_h or 0) + offer.extras_usd_h for offer in found.offers]
    assert max(prices) <= micro_usd(2)


def test_where_no_catalogue_is_there_a_plan_says_so_and_rents_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "price_lists", dict)
    desk = a_desk(tmp_path)
    found = supply(desk.settings, NOW)
    assert found.offers == ()
    made = preview(desk, [Part([a_gpu_job()], micro_usd(50))], NOW, found)
    assert only(made).state == "impossible" and made.machines == ()
    assert any("No price is known of anything" in note for note in made.prices)
