"""Measures what cloudwhale must reach, on this machine, and prints it beside the bar.

    python tests/benchmarks/run.py [NAME ...] [--json]

Each row is measured on the real program: real processes, a fresh home, the median of several
runs. Exit code 1 when a bar is missed.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import commands
import controller_costs
import latency
import start_up


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure."""

    name: str
    figure: float
    unit: str
    bar: float
    is_good: bool
    spread: str


Measured = Iterator[tuple[str, list[float], str, float, bool]]
"""Name, samples, unit, bar, whether more is better."""

BENCHMARKS: dict[str, Callable[[Path], Measured]] = {
    "start-up": start_up.measure,
    "latency": latency.measure,
    "throughput": controller_costs.measure_throughput,
    "idle": controller_costs.measure_idle,
}


def median(samples: list[float]) -> float:
    """Return the middle sample (the upper one of two)."""
    return sorted(samples)[len(samples) // 2]


def rows_of(name: str, home: Path) -> Iterator[Row]:
    """Run one benchmark in a home of its own."""
    for what, samples, unit, bar, more_is_better in BENCHMARKS[name](home):
        figure = median(samples)
        is_good = figure >= bar if more_is_better else figure <= bar
        spread = f"{min(samples):.3f} to {max(samples):.3f}, n={len(samples)}"
        yield Row(what, figure, unit, bar, is_good, spread)


def reference_s() -> float:
    """Return what importing two libraries costs now: the speed of this machine, median of 5.

    The bars were set where it takes 0.20 s; machines that are shared swing by a factor of two.
    """
    words = [sys.executable, "-c", "import sqlalchemy, pydantic"]
    return median([commands.timed_words(words, Path.cwd()).cpu_s for _ in range(5)])


def main() -> int:
    """Measure what was asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help=f"default: all of {', '.join(BENCHMARKS)}")
    parser.add_argument("--json", action="store_true", help="one document instead of a table")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    found: list[Row] = []
    if not options.json:
        print(f"reference: `import sqlalchemy, pydantic` takes {reference_s():.3f} s of CPU here")
    for name in options.names or BENCHMARKS:
        home = Path(tempfile.mkdtemp(prefix="cloudwhale-bench-"))
        try:
            for row in rows_of(name, home):
                found.append(row)
                if not options.json:
                    print(as_text(row), flush=True)
        finally:
            shutil.rmtree(home, ignore_errors=True)
    if options.json:
        print(json.dumps([asdict(row) for row in found], indent=1))
    return 0 if all(row.is_good for row in found) else 1


def as_text(row: Row) -> str:
    """Return one line: the figure beside its bar and its spread."""
    verdict = "ok    " if row.is_good else "MISSED"
    return (
        f"{verdict} {row.name:<58} {row.figure:9.3f} {row.unit:<6} bar {row.bar:g}   ({row.spread})"
    )


if __name__ == "__main__":
    sys.exit(main())
