"""How far a simulation is: a bar on standard error after two seconds, for a person alone."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cloudwhale.cli.output import console_on, is_terminal
from cloudwhale.clock import SystemClock
from cloudwhale.model.units import Seconds

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from cloudwhale.simulation.trials import Standing

QUIET_S: Seconds = 2.0


class Progress:
    """Within it, the bar is shown once the work takes longer than a glance."""

    def __init__(self, trials: int, *, counts_jobs: bool = False) -> None:
        self._trials = trials
        self._counts_jobs = counts_jobs
        self._done = 0
        self._clock = SystemClock()
        self._since = self._clock.steady()
        self._bar: Bar | None = None
        self._is_seen = is_terminal(sys.stderr)

    def one_is_done(self) -> None:
        """Count a trial that has ended."""
        self._done += 1
        self._show(None)

    def stands(self, standing: "Standing | None") -> None:
        """Show how many jobs have ended in those that run, where that is known."""
        self._show(standing)

    def _show(self, standing: "Standing | None") -> None:
        if not self._is_seen or self._clock.steady() - self._since < QUIET_S:
            return
        if self._bar is None:
            self._bar = self._begun()
        bar, [task] = self._bar, self._bar.task_ids
        bar.update(task, description=f"{self._done} of {self._trials} plays")
        if standing is not None:
            bar.update(task, completed=standing.ended, total=standing.whole)
        elif not self._counts_jobs:
            bar.update(task, completed=self._done, total=self._trials)

    def _begun(self) -> "Bar":
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Made

        made = Made(
            TextColumn("{task.description}"), BarColumn(),
            *((MofNCompleteColumn(), TextColumn("jobs")) if self._counts_jobs else ()),
            TimeElapsedColumn(), console=console_on(sys.stderr), transient=True,
        )  # fmt: skip
        made.add_task("", total=None)
        made.start()
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
