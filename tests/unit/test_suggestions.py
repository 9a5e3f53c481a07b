"""What is suggested of families: sizes with their evidence, cheaper GPUs, dollars."""

from typing import Any

from cloudwhale.model import gpus
from cloudwhale.model.cost import CostSum, Items, Purposes
from cloudwhale.model.peak import Peak
from cloudwhale.model.units import NOTHING, micro_usd
from cloudwhale.reporting.sheet import plain_lines
from cloudwhale.reporting.suggestions import suggestion, suggestion_keys, suggestions_sheet

FAMILY = ("nlp", "fit")
PRICES = {"A100-80GB": 4.0, "A100-40GB": 1.0, "T4": 0.0001}


def a_peak(used: float = 20.0, **fields: Any) -> Peak:
    base: dict[str, Any] = {"job": "j", "at": 0.0, "end": "completed", "gpu": "A100-80GB"}
    known: dict[str, Any] = base | {"asked_gib": 80.0, "had_gib": 80.0, "used_gib": used} | fields
    return Peak(**known)


def a_sum(gpu: str, usd: int) -> CostSum:
    return CostSum(
        key=("nlp", "fit", gpu), lines=1, jobs=1, spent=micro_usd(usd), items=Items(),
        purposes=Purposes(), saved=NOTHING, unpriced=0, gpu_s=0.0,
    )  # fmt: skip


def test_a_family_is_told_its_size_and_what_a_cheaper_gpu_would_have_saved() -> None:
    found = suggestion(FAMILY, [a_peak()] * 3, [a_sum("A100-80GB", 100)], PRICES)
    assert found.gpu.should_gib == 24.0 and found.gpu.completed == 3
    assert found.could_run_on == ("A100-40GB",)  # a T4 is cheaper, and does not hold it
    assert found.saved is not None and 0 < found.saved < micro_usd(100)
    keys = suggestion_keys(found)
    assert keys["gpu_memory_gib"]["most_gib"] == 20.0
    assert "A100-40GB" in "\n".join(plain_lines(suggestions_sheet([found])))


def test_without_evidence_or_prices_nothing_is_claimed() -> None:
    few = suggestion(FAMILY, [a_peak()] * 2, [a_sum("A100-80GB", 100)], PRICES)
    assert few.gpu.should_gib is None and few.could_run_on == () and few.saved is None
    unknown = suggestion(FAMILY, [a_peak()] * 3, [a_sum("A100-80GB", 100)], {})
    assert unknown.could_run_on == () and unknown.saved is None


def test_what_is_suggested_is_never_less_than_what_was_used_even_above_what_was_asked() -> None:
    found = suggestion(FAMILY, [a_peak(50.0, asked_gib=40.0)] * 3, [], PRICES)
    assert found.gpu.should_gib is not None and found.gpu.should_gib >= 1.2 * 50.0


def test_what_would_have_been_saved_is_the_sum_that_one_makes_by_hand() -> None:
    sums = [a_sum("A100-80GB", 100), a_sum("L4", 30), a_sum("unheard-of", 50)]
    prices = {"A100-80GB": 4.0, "A100-40GB": 1.0, "L4": 2.0}
    found = suggestion(FAMILY, [a_peak()] * 3, sums, prices)
    # Dollars for the same work: by the hour, over how fast a model is beside the other.
    by_hand = 0.0
    for model, spent in (("A100-80GB", 100), ("L4", 30)):
        faster = gpus.speed("A100-40GB", model)
        assert faster
        hours = spent / prices[model]
        by_hand += max(0.0, spent - hours / faster * prices["A100-40GB"])
    assert found.could_run_on[0] == "A100-40GB" and found.saved is not None
    assert abs(found.saved / 1e6 - by_hand) < 1e-5
    assert found.spent == micro_usd(180)  # of the third nobody knows what it would have cost
