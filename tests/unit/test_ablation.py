"""What parts of the match are worth: each switched off alone, and the worth by hand."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudwhale.simulation.lineup import chosen
from cloudwhale.simulation.traces.synthetic import Mix
from cloudwhale_policies.whale import Whale

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the benchmarks' folder be where they are found."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield
    for name in ("ablation", "mix", "intervals"):
        sys.modules.pop(name, None)


def test_a_score_that_is_left_out_leaves_its_weight_to_the_others() -> None:
    import ablation

    for name, weight in Whale.weights.items():
        rules = chosen("whale", ablation.without_score(name), 1).policies.rules
        assert rules.weights[name] == 0.0
        assert sum(rules.weights.values()) == pytest.approx(1.0)
        other = next(each for each in Whale.weights if each != name)
        assert rules.weights[other] == pytest.approx(Whale.weights[other] / (1 - weight))


def test_each_variant_differs_from_the_whole_in_one_rule() -> None:
    import ablation

    whole = chosen("whale", ablation.VARIANTS[ablation.WHOLE], 1).policies.rules.model_dump()
    for variant, settings in ablation.VARIANTS.items():
        rules = chosen("whale", settings, 1).policies.rules.model_dump()
        differ = {name for name in rules if rules[name] != whole[name]}
        assert differ == set(settings), variant


def test_worth_is_what_the_match_loses_without_it() -> None:
    import ablation

    results = [
        ablation.Result(ablation.WHOLE, 1, 100.0, 0.8, 50.0),
        ablation.Result("no holds", 1, 110.0, 0.6, 45.0),
    ]
    gains = ablation.worth(results, "no holds")
    assert gains["mean_completion_s"].middle == pytest.approx(0.1)
    assert gains["utilisation"].middle == pytest.approx(0.25)
    assert gains["longest_idle_s"].middle == pytest.approx(-0.1)


def test_the_table_names_what_was_played(monkeypatch: pytest.MonkeyPatch) -> None:
    import ablation

    monkeypatch.setattr(ablation, "MIX", Mix(jobs=8, hours=1.0))
    names = (ablation.WHOLE, "no preemption")
    variants = {name: ablation.VARIANTS[name] for name in names}
    monkeypatch.setattr(ablation, "VARIANTS", variants)
    text = ablation.as_text([ablation.result(name, 1) for name in names])
    assert text.startswith("8 jobs on 4 nodes with 6 GPUs, 1 seeds")
    assert "no preemption" in text
