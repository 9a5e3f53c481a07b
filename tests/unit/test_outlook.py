"""What an order of waiting jobs comes to, and that nobody looks further than it matters."""

import random
from math import inf

from makers import a_job

from cloudwhale.spi.waiting import Waiting
from cloudwhale_policies.waiting.outlook import Ask, outlook
from cloudwhale_policies.waiting.timetable import Timetable

FUTURES = 3


def an_ask(index: int, dice: random.Random) -> Ask:
    waiting = Waiting(
        job=a_job(f"j{index}"), devices=1.0, length_s=None, nodes=("a",), fits_now=("a",),
        quote=None, start_by=None, usd_h=dice.uniform(0, 40),
    )  # fmt: skip
    lengths_s = [dice.uniform(60, 9000) for _ in range(FUTURES)]
    return Ask(index, waiting, lengths_s, dice.choice((inf, dice.uniform(0, 30))), inf)


def test_what_costs_more_is_not_looked_at_to_its_end_and_all_else_comes_to_the_same() -> None:
    cut = 0
    for seed in range(200):
        dice = random.Random(seed)
        order = [an_ask(index, dice) for index in range(6)]
        tables = [Timetable({"a": 1.0}) for _ in range(FUTURES)]
        whole, most_usd = outlook(order, tables), dice.uniform(0, 60)
        found = outlook(order, tables, most_usd)
        if whole.usd <= most_usd:
            assert (found.usd, found.slots) == (whole.usd, whole.slots)
        else:
            assert found.usd > most_usd
            cut += len(found.slots) < len(order)
    assert cut > 20, "none was cut short"
