"""Nights under fire: the whole house in simulated time under seeded faults, seed after seed.

    python tests/benchmarks/nights.py --seeds 0..3000 --state nights.json [--keep] [--processes 2]
    python tests/benchmarks/nights.py --mutants

A run that is broken off goes on where it was. A seed that fails is shrunk and told; with `--keep`
it becomes a file of `tests/cases/nights`, which a test plays again. Exit code 1 when one failed.
With `--mutants`, at which seed each planted bug is caught, and by which rule.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from night_checks import play
from night_mutants import MUTANTS, caught
from night_stories import keep, shrunk, story
from night_values import drawn

from cloudwhale.simulation.at_once import at_once

SAVED_EVERY_S = 10.0
CASES = Path(__file__).parents[1] / "cases" / "nights"
WITHIN = 300


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one seed."""

    seed: int
    rule: str
    says: str
    took_s: float
    """Of the processor."""
    counts: dict[str, int]
    troubles: dict[str, int]


@dataclass
class State:
    """What is known of all seeds that were played."""

    done: set[int] = field(default_factory=set)
    failed: dict[int, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)

    def take(self, one: Done) -> None:
        """Add what came of a seed."""
        self.done.add(one.seed)
        self.counts.update(one.counts)
        self.troubles.update(one.troubles)
        if one.rule:
            self.failed[one.seed] = f"{one.rule}: {one.says}"

    def save(self, path: Path) -> None:
        """Write it, whole or not at all."""
        row = {
            "done": sorted(self.done), "failed": self.failed, "counts": self.counts,
            "troubles": self.troubles,
        }  # fmt: skip
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(row))
        draft.replace(path)

    @classmethod
    def load(cls, path: Path) -> "State":
        """Read what an earlier run has left."""
        if not path.exists():
            return cls()
        row = json.loads(path.read_text())
        failed = {int(seed): says for seed, says in row["failed"].items()}
        return cls(set(row["done"]), failed, Counter(row["counts"]), Counter(row["troubles"]))


def one_night(seed: int) -> Done:
    """Play one seed."""
    night, began_s = drawn(seed), time.process_time()
    played = play(night)
    house, wrong = played.house, played.violation
    counts = {
        "jobs": len(night.jobs), "rentals": len(played.checks.rentals),
        "launches": len(house.cloud.hired), "faults": len(night.troubles),
        "events": house.store.version(), "controllers killed": house.died,
        "interruptions": sum(len(one) - 1 for one in played.checks.began.values()),
    }  # fmt: skip
    troubles = dict(Counter(one.kind for one in night.troubles))
    rule, says = (wrong.rule, wrong.says) if wrong is not None else ("", "")
    return Done(seed, rule, says, time.process_time() - began_s, counts, troubles)


def told(state: State, played: int, wall_s: float, cpu_s: float) -> Iterator[str]:
    """Yield what was played, in words."""
    yield f"{len(state.done)} nights, {len(state.failed)} with something wrong"
    if played:
        yield f"{60 * played / wall_s:.0f} nights a minute, {cpu_s / played:.2f} s of CPU each"
    nights = max(1, len(state.done))
    yield "a night has " + ", ".join(
        f"{count / nights:.1f} {name}" for name, count in state.counts.items()
    )
    yield "faults: " + ", ".join(f"{n} {kind}" for kind, n in state.troubles.most_common())


def main() -> int:
    """Play the seeds that were not played yet."""
    read = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    read.add_argument("--seeds", default="0..60", help="FIRST..LAST, the last one left out")
    read.add_argument("--state", type=Path, default=None)
    read.add_argument("--processes", type=int, default=2)
    read.add_argument("--keep", action="store_true")
    read.add_argument("--mutants", action="store_true")
    args = read.parse_args()
    if args.mutants:
        return mutants(args.processes)
    first, last = map(int, args.seeds.split(".."))
    state = State() if args.state is None else State.load(args.state)
    todo = [seed for seed in range(first, last) if seed not in state.done]
    began_s, saved_s, cpu_s, count = time.monotonic(), time.monotonic(), 0.0, 0
    for one in at_once(one_night, todo, processes=args.processes):
        if one is None:
            continue
        state.take(one)
        count, cpu_s = count + 1, cpu_s + one.took_s
        if one.rule:
            print(f"night {one.seed}: {one.rule}: {one.says}", flush=True)
        if args.state is not None and time.monotonic() - saved_s > SAVED_EVERY_S:
            saved_s = time.monotonic()
            state.save(args.state)
    if args.state is not None:
        state.save(args.state)
    print("\n".join(told(state, count, max(0.1, time.monotonic() - began_s), cpu_s)))
    for seed, says in sorted(state.failed.items()):
        if first <= seed < last:
            tell(seed, says, keeps=args.keep)
    return 1 if any(first <= seed < last for seed in state.failed) else 0


def first_seed(name: str) -> tuple[str, tuple[int, str] | None]:
    """Return a bug, and where it was caught."""
    return name, caught(name, range(WITHIN))


def mutants(processes: int) -> int:
    """Print at which seed each planted bug was caught, and by which rule."""
    missed = 0
    for one in at_once(first_seed, sorted(MUTANTS), processes=processes):
        if one is not None:
            name, found = one
            missed += found is None
            says = "not caught" if found is None else f"seed {found[0]}, by {found[1]}"
            print(f"{name}: {says}", flush=True)
    return 1 if missed else 0


def tell(seed: int, says: str, *, keeps: bool) -> None:
    """Print the story of a night that went wrong, as short as it can be made."""
    rule = says.split(":")[0]
    small = shrunk(drawn(seed), rule)
    played = play(small)
    print("\n".join(story(played)), flush=True)
    if keeps and played.violation is not None:
        print("kept as", keep(small, rule, played.violation.says, CASES))


if __name__ == "__main__":
    sys.exit(main())
