"""What each part of the Whale match is worth: made-up jobs played with one part switched off.

    python tests/benchmarks/ablation.py [--seeds 20] [--json]

Each row is the match without one thing, played on the same seeds as the whole of it. Changes are
means over the seeds with their 95 % interval, as fractions of the whole match's mean: a plus means
that the match is the better for having it. Scores that are taken away leave their weight to the
others in proportion.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import intervals
import mix

from cloudwhale.simulation.traces.synthetic import Mix
from cloudwhale.simulation.trials import Bench, Todo, trial
from cloudwhale_policies.whale import Whale

WHOLE = "the whole match"
MIX = Mix()
"""Half as many jobs as in the comparison, at the same load: a row costs a play of each seed."""


def without_score(name: str) -> Mapping[str, Any]:
    """Return the settings in which one score counts for nothing."""
    left = {each: weight for each, weight in Whale.weights.items() if each != name}
    total = sum(left.values())
    weights = {each: weight / total for each, weight in left.items()}
    return {"weights": {**weights, name: 0.0}}


VARIANTS: Mapping[str, Mapping[str, Any]] = {
    WHOLE: {},
    "no joint match": {"match": False},
    "no bound of waits": {"age": False},
    "no reservation": {"reserve": False},
    "no holds": {"hold": False},
    "no preemption": {"preempt": False},
    **{f"without `{name}`": without_score(name) for name in Whale.weights},
}
METRICS = ("mean_completion_s", "utilisation", "longest_idle_s")
MORE_IS_BETTER = ("utilisation",)


@dataclass(frozen=True, slots=True)
class Result:
    """What the match comes to on one seed, with one part switched off."""

    variant: str
    seed: int
    mean_completion_s: float
    utilisation: float
    longest_idle_s: float


def result(variant: str, seed: int) -> Result:
    """Play one variant on one seed."""
    bench = Bench(nodes=tuple(mix.nodes()), mix=MIX, settings=VARIANTS[variant])
    found = trial(bench, Todo("whale", seed)).metrics
    figures = {metric: getattr(found, metric) for metric in METRICS}
    assert found.completed == found.jobs, f"{variant}, seed {seed}: not every job completed"
    return Result(variant, seed, **figures)


def worth(results: Sequence[Result], variant: str) -> Mapping[str, intervals.Interval]:
    """Return by how much the match is better with the part than without it, by metric."""
    whole = {each.seed: each for each in results if each.variant == WHOLE}
    lacking = {each.seed: each for each in results if each.variant == variant}
    return {
        metric: intervals.gain(
            [(getattr(whole[seed], metric), getattr(lacking[seed], metric)) for seed in whole],
            -1 if metric in MORE_IS_BETTER else 1,
        )
        for metric in METRICS
    }


def as_text(results: Sequence[Result]) -> str:
    """Return the table."""
    whole = [each for each in results if each.variant == WHOLE]
    means = {m: sum(getattr(each, m) for each in whole) / len(whole) for m in METRICS}
    lines = [
        f"{MIX.jobs} jobs on 4 nodes with 6 GPUs, {len(whole)} seeds; the whole match: completion "
        f"{means['mean_completion_s'] / 60:.1f} min, utilisation {100 * means['utilisation']:.1f} "
        f"%, longest wait {means['longest_idle_s'] / 3600:.2f} h",
        f"{'worth of what is left out':<32}{'completion':>26}{'utilisation':>26}"
        f"{'longest wait':>26}",
    ]
    for variant in VARIANTS:
        if variant != WHOLE:
            found = worth(results, variant)
            lines.append(f"{variant:<32}" + "".join(f"{_percent(found[m]):>26}" for m in METRICS))
    return "\n".join(lines)


def _percent(gain: intervals.Interval) -> str:
    return f"{100 * gain.middle:+.1f} % ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"


def main() -> int:
    """Play every variant on every seed and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=20, help="how many; default 20")
    parser.add_argument("--json", action="store_true", help="one document instead of a table")
    options = parser.parse_args()
    todo = [(variant, seed) for seed in range(options.seeds) for variant in VARIANTS]
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(result, [v for v, _ in todo], [s for _, s in todo]))
    if options.json:
        gains = {v: {m: asdict(g) for m, g in worth(results, v).items()} for v in VARIANTS}
        print(json.dumps({"results": [asdict(each) for each in results], "worth": gains}, indent=1))
    else:
        print(as_text(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
