"""What Compute Engine would rent us now: zones, quotas, prices and hazards as they are today."""

from typing import Any

import pytest
from boxed_gcp import Box, boxed_words, stepped
from renting_gcp import an_offer, facts

from cloudwhale.model.units import micro_usd
from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale_providers.gcp import quotas
from cloudwhale_providers.gcp.advice import AT_ONCE, HOLDS_S
from cloudwhale_providers.gcp.offers import USE_HOLDS_S, ZONES_HOLD_S
from cloudwhale_providers.prices.hazards import hazard_per_h
from cloudwhale_providers.sandbox.compute.services import Services
from cloudwhale_providers.sandbox.endpoint import PriceFactor, Weather


def _zones(box: Box, *offers: Any, **said: Any) -> list[str]:
    provider = box.provider("lab", *(offers or [an_offer()]), **said)
    return [one.zone for one in provider.offers(box.clock.now())]


def test_an_offer_is_made_for_each_zone_that_has_the_type() -> None:
    assert _zones(stepped()) == ["us-central1-a", "us-central1-b", "us-central1-c"]


def test_a_zone_that_has_lost_the_type_is_offered_no_more() -> None:
    assert "us-central1-f" not in _zones(stepped(), an_offer("us-central1-f"))


def test_offers_of_regions_that_are_not_meant_or_not_there_are_left_out() -> None:
    assert _zones(stepped(), an_offer("europe-west4-a")) == []
    nowhere = an_offer("mars-north1-a")
    assert _zones(stepped(), nowhere, regions=["mars-*"]) == []


def test_attached_gpus_are_offered_where_the_zone_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer = an_offer("us-central1-a", type="n1-standard-8", facts=facts("T4", 1))
    had = _zones(stepped(), offer)
    assert {"us-central1-a", "us-central1-b"} <= set(had)
    answer = Services.answer

    def without(self: Services, call: Any) -> Any:
        told = answer(self, call)
        if call.method.id == "compute.acceleratorTypes.aggregatedList":
            told["items"]["zones/us-central1-a"] = {}
        return told

    monkeypatch.setattr(Services, "answer", without)
    assert _zones(stepped(), offer) == [zone for zone in had if zone != "us-central1-a"]


def test_each_offer_has_an_id_of_its_own_and_keeps_that_of_the_catalogue() -> None:
    box = stepped()
    offers = box.provider("lab").offers(box.clock.now())
    assert [one.id for one in offers][0] == an_offer().id
    assert len({one.id for one in offers}) == len(offers)


@pytest.mark.parametrize(
    ("limits", "market", "left"),
    [
        ({"NVIDIA_L4_GPUS": 8.0}, "on-demand", 8.0),
        ({"NVIDIA_L4_GPUS": 8.0}, "spot", 8.0),
        ({"NVIDIA_L4_GPUS": 8.0, "PREEMPTIBLE_NVIDIA_L4_GPUS": 3.0}, "spot", 3.0),
        ({"NVIDIA_L4_GPUS": 8.0, "PREEMPTIBLE_NVIDIA_L4_GPUS": 3.0}, "on-demand", 8.0),
        ({"NVIDIA_L4_GPUS": 8.0, "GPUS_ALL_REGIONS": 2.0}, "on-demand", 2.0),
        ({"GPUS_ALL_REGIONS": 0.0}, "spot", 0.0),
    ],
)
def test_what_is_left_of_quotas(limits: dict[str, float], market: str, left: float) -> None:
    box = stepped(Weather(quotas=limits))
    offers = box.provider("lab", an_offer(market=market)).offers(box.clock.now())
    assert {one.quota_left for one in offers} == {left}


def test_a_metric_that_nobody_tells_is_unknown_and_not_nothing() -> None:
    offer = an_offer(market="on-demand", quota="gcp/r/on-demand/NVIDIA_B200")
    learned = quotas.Learned()
    assert quotas.left(offer, {}, {}, learned, 0.0) is None
    learned.hears(offer.region, "NVIDIA_B200", 8.0, 0.0)
    assert quotas.left(offer, {}, {}, learned, 1.0) is None, "nobody knows what is used"
    learned.hears(offer.region, "NVIDIA_B200", 0.0, 0.0)
    assert quotas.left(offer, {}, {}, learned, 1.0) == 0.0
    assert quotas.left(offer, {}, {}, learned, 9999.0) is None, "it was raised since, perhaps"


def test_spot_has_the_newest_price_and_a_hazard_by_what_was_told() -> None:
    factor = PriceFactor(0.0, 1.5)
    box = stepped(Weather(price_factors=(factor,)))
    plain = stepped()
    for one in (box, plain):
        one.pause(100.0)
    dear, usual = (
        one.provider("lab").offers(one.clock.now())[0].price_usd_h for one in (box, plain)
    )
    assert dear is not None and usual is not None and dear == pytest.approx(usual * 1.5, rel=0.01)
    offer = plain.provider("lab").offers(plain.clock.now())[0]
    assert offer.hazard_per_h is not None and 0 < offer.hazard_per_h < hazard_per_h(4)
    assert offer.cap_usd_h == micro_usd(1)


def test_a_price_above_the_cap_raises_what_is_set_aside() -> None:
    box = stepped()
    offer = an_offer(cap_usd_h=micro_usd("0.1"), price_usd_h=micro_usd("0.1"))
    (first, *_) = box.provider("lab", offer).offers(box.clock.now())
    assert first.cap_usd_h == first.price_usd_h


def test_without_advice_the_catalogue_holds_and_a_row_says_so() -> None:
    box = stepped()
    box.endpoint.fault("compute.advice.capacityHistory", "error-before", times=99, code="forbidden")
    provider = box.provider("lab")
    assert {one.price_usd_h for one in provider.offers(box.clock.now())} == {micro_usd("0.3")}
    words = boxed_words(box)
    box.pause(USE_HOLDS_S)
    provider.offers(box.clock.now())
    assert not [one for one in words if "advice" in one.method], "it is not asked again at once"
    assert any("advice on spot prices" in one.says for one in provider.check())


def test_advice_comes_bit_by_bit() -> None:
    box = stepped()
    types = ["g2-standard-4", "g2-standard-8", "g2-standard-12", "g2-standard-16",
             "g2-standard-24", "g2-standard-32", "g2-standard-48", "g2-standard-96",
             "a2-highgpu-1g", "a2-highgpu-2g", "e2-standard-4"]  # fmt: skip
    provider = box.provider("lab", *(an_offer(type=name) for name in types))
    words = boxed_words(box)
    counts: list[int] = []
    for _ in range(3):
        provider.offers(box.clock.now())
        counts.append(sum(1 for one in words if "advice" in one.method))
        box.pause(60.0)
    assert counts == [AT_ONCE, len(types), len(types)]
    box.pause(HOLDS_S)
    provider.offers(box.clock.now())
    assert sum(1 for one in words if "advice" in one.method) == len(types) + AT_ONCE


def test_what_is_asked_for_how_often() -> None:
    box = stepped()
    provider = box.provider("lab", an_offer(market="on-demand"))
    words = boxed_words(box)
    provider.offers(box.clock.now())
    first = [one.method for one in words]
    assert first == [
        "compute.machineTypes.aggregatedList", "compute.regions.list", "compute.projects.get",
    ]  # fmt: skip
    provider.offers(box.clock.now())
    assert len(words) == 3
    box.pause(USE_HOLDS_S)
    provider.offers(box.clock.now())
    assert [one.method for one in words[3:]] == ["compute.regions.list", "compute.projects.get"]
    box.pause(ZONES_HOLD_S)
    provider.offers(box.clock.now())
    assert len(words) == 8


def test_who_answers_nothing_is_told_at_first_and_keeps_what_was_known_then() -> None:
    box = stepped()
    provider = box.provider("lab")
    box.endpoint.fault("compute.*", "error-before", times=1)
    with pytest.raises(Unreachable):
        provider.offers(box.clock.now())
    assert len(provider.offers(box.clock.now())) == 3
    box.pause(ZONES_HOLD_S)
    box.endpoint.fault("compute.*", "error-before", times=99)
    later = provider.offers(box.clock.now())
    assert [one.zone for one in later] == ["us-central1-a", "us-central1-b", "us-central1-c"]
    assert {one.quota_left for one in later} == {None}, "what was used then says little of now"
    box.endpoint.no_faults()
    provider.offers(box.clock.now())
    assert not [one for one in provider.check() if "zones cannot be read" in one.says]


def test_a_project_that_has_not_enabled_the_api_is_told() -> None:
    box = stepped(Weather(closed_apis=frozenset({"compute.googleapis.com"})))
    with pytest.raises(Denied, match="SERVICE_DISABLED"):
        box.provider("lab").offers(box.clock.now())
