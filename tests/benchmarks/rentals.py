"""What renting costs: one table of all ways to choose machines, and of the bound that none beats.

Mixes of `rentals_mix` on all offers of two price files (`rentals_offers`): AWS and GCP, every zone,
spot and on-demand. CPU seconds are those of a plan, from the offers to the seats: dropping what is
beaten, making the problem, choosing; and those of choosing alone. `one-each` is what launchers of
jobs do; no peer packs several jobs on a rented machine in its plan. The gap is to the strongest
proven bound of the problem as it stands, jobs side by side and one after another.
"""

import argparse
import json
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean, stdev
from typing import Any

from rentals_mix import MIXES, Task
from rentals_offers import missing, offers
from rentals_problem import Market, deadline_share, shape
from rentals_replay import replayed_usd

from cloudwhale.spi.renting import Rent, RentalPlan, RentalProblem
from cloudwhale_policies.renting.bounding import THOROUGH, bounded
from cloudwhale_policies.renting.cp_sat import CpSat
from cloudwhale_policies.renting.greedy import Greedy
from cloudwhale_policies.renting.milp import Milp
from cloudwhale_policies.renting.one_each import OneEach
from cloudwhale_policies.renting.whale_rent import WhaleRent

POLICIES: Mapping[str, Callable[[], Rent]] = {
    "one-each": OneEach,
    "greedy": Greedy,
    "milp": Milp,
    "cp-sat": CpSat,
    "whale-rent": WhaleRent,
    "whale-rent thorough": lambda: WhaleRent("thorough"),
}
SEEDS = 10
REPLAYS = 200
"""Times that a plan's machines are played, each with other interruptions."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a way costs for one seed."""

    seed: int
    usd: float
    plan_s: float
    """CPU seconds from offers to plan."""
    choose_s: float
    """CPU seconds of choosing alone."""
    peak_mb: float
    machines: int = 0
    left_out: int = 0
    simulated_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    name: str
    found: Sequence[Found]
    gaps: Sequence[float] = ()
    """To the bound, by seed."""
    savings: Sequence[float] = ()
    """Against one machine for each job, by seed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured."""

    seeds: int
    simulated: bool


def measured(market: Market, mix: str, seed: int, name: str, asked: Asked) -> Found:
    """Return what one way costs, measured in a process of its own; called with the bound too."""
    begun = time.process_time()
    problem = market.problem(MIXES[mix].draw(seed), seed)
    made = time.process_time()
    if name == "bound":
        usd = bounded(problem, THOROUGH).usd
        return _timed(Found(seed, usd, 0.0, 0.0, 0.0), begun, made)
    plan = POLICIES[name]().choose(problem)
    machines = sum(choice.machines for choice in plan.choices)
    found = Found(seed, plan.cost_usd, 0.0, 0.0, 0.0, machines, len(plan.left_out))
    found = _timed(found, begun, made)
    if not asked.simulated:
        return found
    return replace(found, simulated_usd=_simulated(market, problem, plan, MIXES[mix].draw(seed)))


def _timed(found: Found, begun: float, made: float) -> Found:
    ended = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return replace(found, plan_s=ended - begun, choose_s=ended - made, peak_mb=peak)


def _simulated(
    market: Market, problem: RentalProblem, plan: RentalPlan, tasks: Sequence[Task]
) -> float:
    """Return what the plan's machines cost on average when they are played."""
    calm = market.calm(tasks, problem)
    kinds = {kind.offer for kind in problem.kinds}
    found = {offer.id: offer for offer in market.offers if offer.id in kinds}
    return mean(replayed_usd(problem, plan, calm, found, seed) for seed in range(REPLAYS))


def _sent(pipe: Any, *what: Any) -> None:
    pipe.send(measured(*what))


def alone(market: Market, mix: str, seed: int, name: str, asked: Asked) -> Found:
    """Measure in a process of its own, so that nobody's memory or solver is another's."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_sent, args=(theirs, market, mix, seed, name, asked))
    process.start()
    theirs.close()
    try:
        found: Found = ours.recv()
    except EOFError:
        raise SystemExit(f"{name} broke on {mix}, seed {seed}") from None
    finally:
        process.join()
    return found


def table(market: Market, mix: str, names: Sequence[str], asked: Asked) -> Iterator[Row]:
    """Yield the lines of a mix: the bound, what launchers do, and each way that is asked for."""
    seeds = range(asked.seeds)
    bound = [alone(market, mix, seed, "bound", asked) for seed in seeds]
    yield Row("bound", bound)
    each = [alone(market, mix, seed, "one-each", asked) for seed in seeds]
    for name in dict.fromkeys(["one-each", *names]):
        found = each
        if name != "one-each":
            found = [alone(market, mix, seed, name, asked) for seed in seeds]
        gaps = [one.usd / least.usd - 1 for one, least in zip(found, bound, strict=True)]
        savings = [1 - one.usd / plain.usd for one, plain in zip(found, each, strict=True)]
        yield Row(name, found, gaps, savings)


def told(row: Row) -> str:
    """Return a line of the table."""
    found = row.found
    line = (
        f"{row.name:20} {mean(one.usd for one in found):9.2f}"
        f" {mean(one.plan_s for one in found):7.2f} {mean(one.choose_s for one in found):7.2f}"
        f" {max(one.peak_mb for one in found):6.0f}"
    )
    if not row.gaps:
        return line
    spread = f" ± {100 * stdev(row.gaps):.1f}" if len(row.gaps) > 1 else ""
    savings = f"{100 * mean(row.savings):5.1f} % ({100 * min(row.savings):.1f} at least)"
    line += f" {100 * mean(row.gaps):5.1f} %{spread}, worst {100 * max(row.gaps):.1f} %"
    line += f"   {savings}   {mean(one.machines for one in found):.0f} machines"
    if any(one.left_out for one in found):
        line += f", {sum(one.left_out for one in found)} jobs left out"
    off = [one.simulated_usd / one.usd - 1 for one in found if one.simulated_usd is not None]
    if off:
        line += f"; simulated {100 * mean(off):+.2f} % (worst {100 * max(off, key=abs):+.2f} %)"
    return line


def per_seed(rows: Sequence[Row]) -> Iterator[str]:
    """Yield for each seed the gap and the saving of each way."""
    for row in rows:
        if row.gaps:
            cells = [
                f"{100 * gap:.1f}/{100 * saved:.0f}"
                for gap, saved in zip(row.gaps, row.savings, strict=True)
            ]
            yield f"  {row.name:20} {' '.join(cells)}"


def show(market: Market, mix: str, names: Sequence[str], asked: Asked) -> None:
    """Print the table of a mix, each line as soon as it is known."""
    problem = market.problem(MIXES[mix].draw(0))
    jobs, kinds, pairs = shape(problem)
    print(
        f"\n{mix}: {jobs} jobs ({100 * deadline_share(problem):.0f} % with deadlines), "
        f"{len(market.offers)} offers, {kinds} kinds that none beats, {pairs} pairs (seed 0)"
    )
    print(
        f"{'way':20} {'USD':>9} {'plan s':>7} {'choose':>7} {'MB':>6} gap to the bound"
        f"{'':12} cheaper than one-each, mean of {asked.seeds} seeds"
    )
    rows: list[Row] = []
    for row in table(market, mix, names, asked):
        rows.append(row)
        print(told(row), flush=True)
    print("by seed, gap % / cheaper than one-each %:")
    print("\n".join(per_seed(rows)), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"default: {SEEDS}")
    parser.add_argument("--mixes", default=",".join(MIXES), help="names, with commas between")
    parser.add_argument("--policies", default=",".join(POLICIES), help="the same")
    parser.add_argument(
        "--simulated", action="store_true", help="play the plans' machines, and price them so"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    if why := missing():
        raise SystemExit(why)
    mixes, names = given.mixes.split(","), given.policies.split(",")
    for unknown in [*(set(mixes) - set(MIXES)), *(set(names) - set(POLICIES))]:
        raise SystemExit(f"nobody knows {unknown}")
    market, asked = Market(offers()), Asked(given.seeds, given.simulated)
    if not given.json:
        for mix in mixes:
            show(market, mix, names, asked)
        return
    tables = {mix: [asdict(row) for row in table(market, mix, names, asked)] for mix in mixes}
    print(json.dumps({"offers": len(market.offers), "mixes": tables}))


if __name__ == "__main__":
    main()
