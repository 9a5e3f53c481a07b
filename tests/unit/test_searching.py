"""Which offers have what is asked for, and in what order."""

import random

import pytest
from price_lists import FakePrices, a_listing, a_price, a_shape

from cloudwhale.control.catalogue.asking import REFERENCE, Words, asked
from cloudwhale.control.catalogue.listed import offers_of
from cloudwhale.model import gpus
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.allowing import Limits, allowed
from cloudwhale.planning.searching import Found, search
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.prices import Listing, Shape

L4 = a_shape("g6.xlarge", gpu="L4", gpus=1, gpu_gib=22.4, memory_gib=16.0)
A100 = a_shape("a2-2g", "gcp", gpu="A100-40GB", gpus=2, gpu_gib=40.0, cpu=24.0, memory_gib=170.0)
H100 = a_shape("p5", gpu="H100-80GB", gpus=8, gpu_gib=80.0, cpu=192.0, memory_gib=2048.0)
PLAIN = Shape("aws", "m7i.2xlarge", cpu=8.0, memory_gib=32.0)
CLOUDS = {"aws": FakePrices([]), "gcp": FakePrices([])}


def offers(*listings: Listing) -> list[Offer]:
    return list(offers_of(listings, CLOUDS))


MARKET = offers(
    a_listing(shape=L4, on_demand=0.8, spot=0.3),
    a_listing(shape=A100, region="us-east1", on_demand=7.0, spot=3.0, hazard_per_h=0.01),
    a_listing(shape=H100, on_demand=98.0, spot=None),
    a_listing(shape=PLAIN, on_demand=0.4, spot=None, zones=("us-east-1a", "us-east-1b")),
)


def types(found: Found) -> list[str]:
    return [f"{hit.offer.type} {hit.offer.market}" for hit in found.hits]


def ask(limits: Limits | None = None, /, **words: object) -> Found:
    question = asked(Words(**words))  # type: ignore[arg-type]
    return search(MARKET, question, limits or Limits())


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ({"gpu": "A100:2"}, ["a2-2g spot", "a2-2g on-demand"]),
        ({"gpu": "A100:3"}, []),
        ({"gpu": "40GB..:1", "market": "on-demand"}, ["a2-2g on-demand", "p5 on-demand"]),
        ({"gpu": "L4", "market": "spot"}, ["g6.xlarge spot"]),
        ({"gpu": "8"}, ["p5 on-demand"]),
        ({"cpu": "24", "regions": ("us-east1",)}, ["a2-2g spot", "a2-2g on-demand"]),
        ({"cpu": "8", "memory": "24GiB", "providers": ("aws",)},
         ["m7i.2xlarge on-demand", "p5 on-demand"]),
        ({"gpu": "1", "regions": ("gcp/us-*",)}, ["a2-2g spot", "a2-2g on-demand"]),
    ],
)  # fmt: skip
def test_what_is_asked_in_the_words_of_a_job_file_is_found(
    words: dict[str, object], found: list[str]
) -> None:
    assert sorted(types(ask(**words))) == sorted(found)


def test_an_hour_of_work_is_counted_on_the_model_that_was_asked_for() -> None:
    [spot, on_demand] = ask(gpu="A100:2").hits
    assert on_demand.useful_usd_h == pytest.approx(7.01)  # disk and address cost a cent
    assert (on_demand.speed, on_demand.lasting) == (1.0, 1.0)
    assert 3.01 < spot.useful_usd_h < 3.3
    assert spot.useful_usd_h == pytest.approx(3.01 / spot.lasting)


@pytest.mark.parametrize(
    ("words", "reference"),
    [({"gpu": "H100,L4:1"}, "H100-80GB"), ({"gpu": "A100"}, "A100-40GB"), ({"gpu": "2"}, REFERENCE),
     ({"cpu": "4"}, None), ({}, REFERENCE)],
)  # fmt: skip
def test_the_reference_is_the_first_model_that_is_asked_for(
    words: dict[str, str], reference: str | None
) -> None:
    assert asked(Words(**words)).reference == reference  # type: ignore[arg-type]


def test_a_faster_gpu_is_worth_more() -> None:
    by_type = {hit.offer.type: hit for hit in ask(market="on-demand").hits}
    speed = gpus.speed("L4", REFERENCE)
    assert speed is not None and by_type["g6.xlarge"].speed == speed
    assert by_type["g6.xlarge"].useful_usd_h == pytest.approx(0.81 / speed)


def test_a_hazard_that_is_unknown_is_not_taken_as_none() -> None:
    known, unknown = (
        offers(a_listing(shape=L4, on_demand=1.0, spot=0.3, hazard_per_h=hazard))[1]
        for hazard in (0.001, None)
    )
    found = search([known.but(id="known"), unknown.but(id="unknown")], asked(Words(gpu="L4")))
    assert [hit.id for hit in found.hits] == ["known", "unknown"]


def test_nothing_asked_of_the_machine_means_one_gpu_of_any_model() -> None:
    assert set(types(ask())) == {
        "g6.xlarge spot", "g6.xlarge on-demand", "a2-2g spot", "a2-2g on-demand", "p5 on-demand",
    }  # fmt: skip


def test_the_nearest_miss_says_what_is_lacking_and_by_how_much() -> None:
    found = ask(gpu="H100:10")
    assert found.hits == ()
    assert found.nearest is not None
    assert found.nearest.says == "needs 10 GPUs on one node, p5 has 8 that suit"
    assert found.nearest.shortfall == pytest.approx(0.2)
    assert found.nearest_offer == "aws/us-east-1a/p5/on-demand"
    assert found.refused == {"no-such-gpu": 6, "gpu-count": 1}


def test_the_largest_gpu_is_nearest_to_who_wants_a_larger_one() -> None:
    found = search(MARKET, asked(Words(gpu="500GB..")))
    assert found.nearest is not None and "p5 has H100-80GB" in found.nearest.says
    assert found.nearest.shortfall == pytest.approx(1 - 80 / 500)


def test_the_smallest_gpu_is_nearest_to_who_wants_a_smaller_one() -> None:
    found = search(MARKET, asked(Words(gpu="8GB..16GB")))
    assert found.nearest is not None and "g6.xlarge has L4" in found.nearest.says
    assert found.nearest.shortfall == pytest.approx(1 - 16 / 24)


def test_what_lies_elsewhere_is_counted_and_is_no_near_miss() -> None:
    found = ask(gpu="1", regions=("mars",))
    assert found.refused == {"region": 7}
    assert found.nearest is None


def test_an_offer_without_a_price_is_no_hit() -> None:
    unpriced = [offer.but(price_usd_h=None) for offer in MARKET]
    found = search(unpriced, asked(Words(gpu="L4")))
    assert found.hits == ()
    assert found.refused["unpriced"] == 2


def test_limits_keep_out_what_would_fit_and_are_counted_apart() -> None:
    limits = Limits(never=("a2*",), max_price_usd_h=micro_usd(50))
    found = ask(limits)
    assert set(types(found)) == {"g6.xlarge spot", "g6.xlarge on-demand"}
    assert found.kept_out == {"never": 2, "max_price_usd_h": 1}
    assert found.refused == {"no-such-gpu": 2}


def test_limits_leave_the_same_here_as_for_the_planner() -> None:
    rng = random.Random(11)
    listings = [
        a_listing(shape=a_shape(f"t{rng.randrange(9)}", rng.choice(("aws", "gcp"))),
                  region=f"r{rng.randrange(4)}", on_demand=rng.uniform(0.5, 9), spot=0.4)
        for _ in range(80)
    ]  # fmt: skip
    market = [offer.but(zone=str(number)) for number, offer in enumerate(offers(*listings))]
    for _ in range(20):
        limits = Limits(
            regions=rng.choice(((), ("r1",), ("aws/r*", "r2"))),
            never=rng.choice(((), ("t1", "gcp/t2"), ("t*",))),
            max_price_usd_h=rng.choice((None, micro_usd(4))),
        )
        hits = search(market, asked(Words(gpu="1")), limits).hits
        mine = {zone for hit in hits for zone in hit.zones}
        assert mine == {offer.zone for offer in allowed(market, limits).offers}


def test_the_order_is_by_cost_and_then_by_id_whatever_comes_first() -> None:
    rng = random.Random(3)
    found = [hit.id for hit in ask().hits]
    for _ in range(5):
        mixed = rng.sample(MARKET, len(MARKET))
        assert [hit.id for hit in search(mixed, asked(Words())).hits] == found


def test_zones_that_are_alike_stand_in_one_row() -> None:
    first, *others = ask(cpu="8", providers=("aws",)).hits
    assert len(others) == 1
    assert (first.offer.type, first.zones) == ("m7i.2xlarge", ("us-east-1a", "us-east-1b"))
    assert first.id == "aws/us-east-1a/m7i.2xlarge/on-demand"


def test_zones_with_prices_of_their_own_do_not() -> None:
    by_zone = a_price(0.3, zones=(("a", micro_usd("0.3")), ("b", micro_usd("0.4"))))
    market = offers(a_listing(shape=L4, on_demand=None, spot=by_zone, zones=("a", "b")))
    assert [hit.zones for hit in search(market, asked(Words(gpu="L4"))).hits] == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"gpu": "Voodoo2"}, "--gpu 'Voodoo2': no GPU model is called 'Voodoo2'"),
        ({"gpu": ""}, "--gpu '': it is empty"),
        ({"memory": "64"}, "--memory '64': '64' is not a size"),
        ({"cpu": "many"}, "--cpu 'many': 'many' is not a number"),
    ],
)
def test_a_wrong_word_is_refused_with_its_option(words: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("'", ".")):
        asked(Words(**words))  # type: ignore[arg-type]
