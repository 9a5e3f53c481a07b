"""A thousand launches while a fifth of all calls goes wrong: none leaked, none doubled."""

import json
import random
from collections import Counter

import pytest
from renting_aws import OURS, a_clock
from rough_aws import House, rough
from small_aws import Box, SmallAws

LAUNCHES = 1000
FOREIGN = 50


def _planted(aws: SmallAws) -> list[tuple[Box, dict[str, str]]]:
    """Plant machines of others: without tags, of another installation, with names like ours."""
    kinds: list[dict[str, str]] = [
        {},
        {"Name": "cloudwhale rental-1"},
        {"cloudwhale:node": "rental-1"},
        {"cloudwhale:installation": "lab-2", "cloudwhale:node": "rental-2"},
        {"cloudwhale:installation": f"{OURS}0", "cloudwhale:launch": "rental-3"},
    ]
    boxes = [aws.plant("us-east-1", kinds[number % 5]) for number in range(FOREIGN)]
    return [(box, dict(box.tags)) for box in boxes]


def _live_through(seed: int) -> tuple[SmallAws, House, list[tuple[Box, dict[str, str]]]]:
    rng = random.Random(seed)
    aws = SmallAws(a_clock())
    planted = _planted(aws)
    aws.fault = rough(rng, 0.2)
    house = House(aws, rng)
    for number in range(LAUNCHES):
        if number % 37 == 0:
            house.restart()  # in the middle of nothing, or of what follows
        house.launch()
        if len(house.live) > 20:
            house.end(house.live[rng.choice(sorted(house.live))])
    return aws, house, planted


@pytest.mark.parametrize("seed", [1])
def test_nothing_is_leaked_doubled_or_taken_from_others(seed: int) -> None:
    aws, house, planted = _live_through(seed)
    ours = [box for box in aws.running if box.tags.get("cloudwhale:installation") == OURS]
    # Each has an end of its own, also where the house had not swept.
    ended = {name for one in aws.schedules.values()
             for name in json.loads(one["Target"]["Input"])["InstanceIds"]}  # fmt: skip
    assert {box.id for box in ours} <= ended
    house.sweep()
    nodes = Counter(box.tags["cloudwhale:node"] for box in aws.running if box in ours)
    assert nodes == Counter(list(house.live))
    assert {name for _, _, name in aws.schedules} == set(house.live)
    made = Counter(box.tags["cloudwhale:launch"] for box in aws.boxes.values()
                   if box.tags.get("cloudwhale:installation") == OURS)  # fmt: skip
    assert set(made.values()) == {1} and len(made) >= LAUNCHES
    assert [(box.state, box.tags) for box, _ in planted] == [("running", own) for _, own in planted]
    assert house.sweep() == 0


def test_the_weather_is_as_rough_as_it_is_said_to_be() -> None:
    aws = SmallAws(a_clock())
    rng = random.Random(0)
    aws.fault = rough(rng, 0.2)
    house = House(aws, rng)
    for _ in range(50):
        house.launch()
    tries = len(aws.words_of("create_fleet"))
    assert tries > 55
