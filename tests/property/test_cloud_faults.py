"""Hundreds of launches while a fifth of all calls goes wrong: none leaked, none doubled."""

import random
from collections import Counter

import pytest
from rough_clouds import House
from troubled_clouds import CLOUDS, TroubledCloud

LAUNCHES = 1000
FOREIGN = 50
FAULTS = 0.2


def _live_through(cloud: TroubledCloud, seed: int) -> House:
    rng = random.Random(seed)
    cloud.plant(FOREIGN)
    cloud.be_rough(FAULTS, seed)
    house = House(cloud, rng)
    for number in range(LAUNCHES):
        if number % 37 == 0:
            house.restart()  # in the middle of nothing, or of what follows
        house.launch()
        if len(house.live) > 20:
            house.end(house.live[rng.choice(sorted(house.live))])
    return house


@pytest.mark.parametrize("name", sorted(CLOUDS))
@pytest.mark.parametrize("seed", [1])
def test_nothing_is_leaked_doubled_or_taken_from_others(name: str, seed: int) -> None:
    cloud = CLOUDS[name]()
    house = _live_through(cloud, seed)
    # Each has an end of its own, also where the house had not swept.
    assert None not in cloud.stops() and cloud.stops()
    house.sweep()
    assert Counter(cloud.running()) == Counter(list(house.live))
    house.machines()
    assert cloud.remains(set(house.live)) == []
    assert set(cloud.made().values()) == {1} and len(cloud.made()) >= LAUNCHES
    assert cloud.is_untouched()
    assert house.sweep() == 0


@pytest.mark.parametrize("name", sorted(CLOUDS))
def test_the_weather_is_as_rough_as_it_is_said_to_be(name: str) -> None:
    cloud = CLOUDS[name]()
    cloud.be_rough(FAULTS, 0)
    house = House(cloud, random.Random(0))
    for _ in range(50):
        house.launch()
    assert cloud.launches_asked() > 55
