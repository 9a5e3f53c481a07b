"""Bugs that were planted on purpose are caught by nights: what never fails proves nothing."""

import pytest
from night_mutants import MUTANTS, night_of

SEEDS = {
    "agent-obeys-late-orders": (41, "fenced-start"),
    "agent-runs-on-in-silence": (41, "two-processes"),
    "bills-by-its-own-clock": (0, "ledger-is-not-meter"),
    "extend-is-believed": (266, "lease-before-stop"),
    "forgets-to-release": (0, "plan-refused"),
    "is-impatient": (48, "two-processes"),
    "judges-before-it-reads": (81, "lost-work"),
    "launch-is-not-idempotent": (289, "paid-while-it-runs"),
    "moves-at-notice": (37, "plan-refused"),
    "restores-the-oldest": (216, "restored-older"),
    "terminate-is-believed": (141, "paid-while-it-runs"),
}
"""At which seed each is caught, of 300 that may be played, and by which rule."""
MARGIN = 3


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_planted_bug_is_caught(name: str) -> None:
    seed, rule = SEEDS[name]
    for number in range(seed, seed + MARGIN):
        wrong = night_of(name, number).violation
        if wrong is not None:
            assert wrong.rule == rule, wrong
            return
    raise AssertionError(f"{name} is not caught by the seeds from {seed} on")


def test_all_planted_bugs_are_looked_for_and_caught_within_three_hundred_seeds() -> None:
    assert SEEDS.keys() == MUTANTS.keys()
    assert len(MUTANTS) >= 10
    assert all(0 <= seed < 300 for seed, _ in SEEDS.values())
