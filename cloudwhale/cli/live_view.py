"""The live view: a picture of the jobs that moves while they run, their output above it."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cloudwhale.cli.fleet import Fleet, Said
from cloudwhale.cli.picture import Seen, picture
from cloudwhale.cli.view import note, sentence
from cloudwhale.control.given import as_given_here
from cloudwhale.model import event as e
from cloudwhale.model.job import Job
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.reporting.drawn import STYLES
from cloudwhale.reporting.figures import clock_time
from cloudwhale.reporting.sheet import clean
from cloudwhale.reporting.tables import TONES

REDRAW_S: Seconds = 0.5  # a stop watch that moves; each picture costs a few milliseconds
REDRAW_SOONEST_S: Seconds = 0.1

KEPT = (e.Failed, e.GaveUp, e.Parked, e.Retried, e.AttemptLost, e.Cancelled)
"""What stays on the screen of what happens to one of several jobs, when its row has moved on."""


class LiveView:
    """Rows on a terminal; one job's output scrolls above, of several each row shows the newest."""

    def __init__(self, console: Console, run: Run, several: bool) -> None:
        self._console = console
        self._run = run
        self._several = several
        self._live: Live | None = None
        self._last: dict[str, str] = {}
        self._drawn_at: Instant = 0.0
        self._changed = True

    def told(self, job: Job, event: e.OfJob) -> None:
        """See View."""
        self._changed = True
        if job.placement is None or job.ended:
            self._last.pop(job.id, None)
        if self._several and not isinstance(event, KEPT):
            return
        said = sentence(job, event)
        if said is None:
            return
        style = STYLES[TONES[job.state]]
        time = (f"{clock_time(event.at)} ", "dim")
        self._console.print(Text.assemble(time, f"{job.id} ", (said, style)))

    def noted(self, job: Job, event: e.Noted) -> None:
        """See View: it stands in the job's row until the job prints something."""
        self._changed = True
        said = note(job, event)
        if self._several:
            self._last[job.id] = said
        else:
            time = (f"{clock_time(event.at)} ", "dim")
            self._console.print(Text.assemble(time, (said, "dim")))

    def logged(self, job: Job, lines: Sequence[str], partial: str) -> None:
        """See View."""
        self._changed = True
        if self._several:
            newest = partial or (lines[-1] if lines else "")
            if newest.strip():
                self._last[job.id] = Text.from_ansi(newest).plain
            return
        for line in lines:
            # Output is the job's: it is broken where the terminal ends, not where words do.
            self._console.print(Text.from_ansi(line), soft_wrap=True)
        self._last[job.id] = Text.from_ansi(partial).plain

    def rented(self, said: Said) -> None:
        """See View: what is as planned shows in the machine's row alone."""
        self._changed = True
        if said.weight != "plain":
            time = (f"{clock_time(said.at)} ", "dim")
            words = (clean(f"{said.machine} {said.says}"), STYLES[said.weight])
            self._console.print(Text.assemble(time, words))

    def draw(self, jobs: Mapping[str, Job], fleet: Fleet, now: Instant) -> None:
        """See View."""
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
            self._changed = True
        since_s = abs(now - self._drawn_at)
        if since_s < (REDRAW_SOONEST_S if self._changed else REDRAW_S):
            return
        seen = Seen(self._run, jobs, self._last, fleet, now)
        self._live.update(picture(seen, self._console.width, self._console.height), refresh=True)
        self._drawn_at, self._changed = now, False

    def say(self, text: str) -> None:
        """See View."""
        self._console.print(Text(clean(as_given_here(text))))

    def rest(self) -> None:
        """See View."""
        if self._live is not None:
            self._live.stop()
            self._live = None
