"""What a simulation came to: as a document, as a table with bars, as what is drawn."""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cloudwhale.cli.exits import WrongUsage
from cloudwhale.cli.output import Paper
from cloudwhale.model.node import Node
from cloudwhale.reporting.trial_plots import Drawn, Held, Picture
from cloudwhale.reporting.trial_tables import WORDS, Figures, TrialRow, bar_lines, trials_sheet
from cloudwhale.simulation.bounds import Bounds
from cloudwhale.simulation.metrics import NAMES
from cloudwhale.simulation.trials import Trial

OURS = "whale"
BOUND = "bound"


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that is shown."""

    trace: str
    """What was played, in words."""
    nodes: Sequence[Node]
    seeds: Sequence[int]
    trials: Sequence[Trial]
    """By contestant as they were named, then by seed."""
    bounds: Bounds | None
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    left: int = 0
    """Plays that were broken off."""

    @property
    def contestants(self) -> tuple[str, ...]:
        """Those of whom at least one play is done, as they were named."""
        return tuple(dict.fromkeys(one.contestant for one in self.trials))

    def of(self, name: str) -> list[Trial]:
        """Return the plays of one of them, by seed."""
        return [one for one in self.trials if one.contestant == name]

    def figures(self, name: str) -> Mapping[str, list[float | None]]:
        """Return each metric of one of them, one value a play."""
        return {metric: [getattr(one.metrics, metric) for one in self.of(name)] for metric in NAMES}


def document(outcome: Outcome) -> Mapping[str, Any]:
    """Return the document that `simulate --json` prints: means, and what they are means of."""
    names = outcome.contestants
    return {
        "trace": outcome.trace,
        "policies": {name: _means(outcome.figures(name)) for name in names},
        "spread": {
            name: {metric: spread(each) for metric, each in outcome.figures(name).items()}
            for name in names
        },
        "seeds": {
            name: {str(one.seed): asdict(one.metrics) for one in outcome.of(name)} for name in names
        },
        "bounds": None if outcome.bounds is None else asdict(outcome.bounds),
        "skipped": dict(outcome.skipped),
        "not_played": outcome.left,
    }


def _means(figures: Mapping[str, Sequence[float | None]]) -> Figures:
    return {metric: middle(each) for metric, each in figures.items()}


def middle(values: Sequence[float | None]) -> float | None:
    """Return the mean of what is known, or None."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def spread(values: Sequence[float | None]) -> float | None:
    """Return the standard deviation of a sample, or None of fewer than two."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    mean = sum(known) / len(known)
    return float((sum((value - mean) ** 2 for value in known) / (len(known) - 1)) ** 0.5)


# -- in a terminal ---------------------------------------------------------------------------


def shown(outcome: Outcome, paper: Paper) -> None:
    """Show the table, then bars."""
    rows = [
        TrialRow(name, _means(outcome.figures(name)), "strong" if name == OURS else "plain")
        for name in outcome.contestants
    ]
    bound: list[TrialRow] = []
    if outcome.bounds is not None and rows:
        bound = [TrialRow(BOUND, asdict(outcome.bounds), "quiet")]
    paper.sheet(trials_sheet([*rows, *bound], outcome.trace, list(_notes(outcome))))
    if rows and any(row.mean.get("mean_completion_s") for row in rows):
        paper.lines(bar_lines([*rows, *bound], paper.width))


def _notes(outcome: Outcome) -> Iterator[str]:
    if outcome.skipped:
        each = ", ".join(f"{count:,} {kind}" for kind, count in sorted(outcome.skipped.items()))
        yield f"rows that were passed over: {each}"
    if outcome.left:
        yield f"broken off: {outcome.left} of {outcome.left + len(outcome.trials)} not played"
    if outcome.trials:
        yield from WORDS


# -- in pictures -----------------------------------------------------------------------------


def writable(folder: Path) -> None:
    """Make the folder of pictures; raise WrongUsage, before hours of play, when nobody can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise unwritable(folder, error) from error


def unwritable(folder: Path, error: OSError) -> WrongUsage:
    """Return what is wrong with a folder that pictures were to be written into."""
    says = error.strerror or "it cannot be written to"
    return WrongUsage(f"--plots {folder}: {says}.", "Name a folder that can be written to.")


def picture(outcome: Outcome) -> Picture:
    """Return what is drawn: figures of all plays, devices of each one's first."""
    devices = [f"{device.id}" for node in outcome.nodes for device in node.facts.devices]
    return Picture(
        outcome.trace, devices, [_drawn(outcome, name) for name in outcome.contestants],
        f"seed {outcome.seeds[0]} alone" if len(outcome.seeds) > 1 else "",
    )  # fmt: skip


def _drawn(outcome: Outcome, name: str) -> Drawn:
    plays = outcome.of(name)
    began_at = min((stay.since for stay in plays[0].stays), default=0.0)
    held = [
        Held(device, stay.job, stay.since - began_at, stay.until - began_at, stay.share)
        for stay in plays[0].stays
        for device in stay.placement.devices
    ]
    return Drawn(
        name,
        sorted(wait for one in plays for wait in one.waits_s),
        sorted(took for one in plays for took in one.completions_s),
        held,
        outcome.figures(name),
    )
