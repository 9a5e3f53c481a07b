"""One watch over a run: the controller if nobody else has it, the follower, the receipt."""

import logging
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cloudwhale.cli.asking import Goodbye
from cloudwhale.cli.books import books_of
from cloudwhale.cli.bringing import RESULTS
from cloudwhale.cli.exits import Exit, for_jobs
from cloudwhale.cli.finding import one_run, work_is_left
from cloudwhale.cli.following import Follower, Outcome, scene
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.measured import measured
from cloudwhale.cli.output import emit, stderr_paper, stdout_paper
from cloudwhale.cli.plan_money import short
from cloudwhale.cli.planning import Sheaf, dry_run, night_run, read, show_plan
from cloudwhale.cli.presence import agrees
from cloudwhale.cli.queueing import at_once_words, queue, queue_night
from cloudwhale.cli.refusing import refuse_impossible
from cloudwhale.cli.turns import in_turn
from cloudwhale.cli.view import PlainView, View
from cloudwhale.cli.wishes import RunOptions
from cloudwhale.control.abroad import must_reach
from cloudwhale.control.desk import Desk, open_desk
from cloudwhale.control.host import ControllerHost, leave_controller_behind
from cloudwhale.control.previewed import Preview
from cloudwhale.control.store import turn_lock
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.run import Run
from cloudwhale.reporting.receipt import run_keys, run_receipt
from cloudwhale.reporting.tables import receipt_sheet
from cloudwhale.settings import Settings

if TYPE_CHECKING:
    from cloudwhale.cli.nights import NightOptions


class Watch:
    """Holds the controller and the desk while somebody looks; lets go in good order."""

    def __init__(self, settings: Settings, as_json: bool) -> None:
        must_reach(settings)
        self._settings = settings
        self._as_json = as_json
        # With --json standard output belongs to the one document.
        self._paper = stderr_paper() if as_json else stdout_paper()
        # What the controller logs for operators, the view says to who looks at it.
        logging.getLogger("cloudwhale").addHandler(logging.NullHandler())
        self._host = ControllerHost(settings)
        self._interrupts = Interrupts()
        self._stack = ExitStack()
        self.left_behind: int | None = None
        """Process id of the controller that goes on with the work, if one was needed."""

    def __enter__(self) -> Self:
        self._stack.enter_context(measured(self._host, self._settings))
        self._host.try_start()
        self._stack.callback(self._host.stop, leave_agents=True)
        try:
            desk = open_desk(self._settings, may_migrate=self._host.holds)
            self._desk = self._stack.enter_context(desk)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._interrupts.end()
        with self._stack:
            self._leave()

    def _leave(self) -> None:
        """Hand on what is left to do; a controller is never just dropped while jobs wait."""
        if not self._host.holds:
            return
        if work_is_left(self._desk.store):
            # It waits for the lock, so nothing is without a controller for long.
            self.left_behind = self.left_behind or leave_controller_behind(self._settings)
        else:
            self._host.stop(leave_agents=False)

    # -- what is followed --------------------------------------------------------------------

    def submitted(self, options: RunOptions) -> Run | None:
        """Return the run of a file: an unfinished one, or a new one; None when there is none."""
        desk = self._desk
        sheaf = read(options.file, options.wishes, desk.clock.now())
        if not sheaf.file.specs:
            self._paper.say(f"{options.file}: nothing to do, every task in it is done.")
            return None
        old = None if options.new else unfinished(desk, sheaf)
        if old is not None:
            return self._taken_up(old)
        if sheaf.file.window is not None:
            self._paper.say(at_once_words(sheaf))
        made = dry_run(desk, sheaf)
        show_plan(self._paper, made, [sheaf])
        refuse_impossible(made, sheaf)
        if not options.yes and not agrees(question(made)):
            self._paper.say("Nothing was submitted.")
            return None
        return self._queued(sheaf, options)

    def night(self, options: "NightOptions") -> Run | None:
        """Return the night of a file: one that was begun before, or a new one; None: not agreed."""
        from cloudwhale.cli import nights

        desk = self._desk
        found = nights.tonight(desk, options.file, options.wishes, now=options.now)
        old = nights.again(desk, found)
        if old is not None:
            return self._taken_up(old)
        made = night_run(desk, found)
        show_plan(self._paper, made, [found.sheaf])
        self._paper.say(nights.words_of(found.night, nights.budget_words(found)))
        if not options.yes and not agrees(question(made)):
            self._paper.say("Nothing was submitted.")
            return None
        with in_turn(turn_lock(self._settings), self._paper.say):
            self._interrupts.begin()
            found = nights.tonight(desk, options.file, options.wishes, now=options.now)
            old = nights.again(desk, found)
            if old is None:
                return queue_night(desk, found)
        return self._taken_up(old)

    def _queued(self, sheaf: Sheaf, options: RunOptions) -> Run:
        """Queue a file's jobs, unless an equal command did while this one asked its user."""
        with in_turn(turn_lock(self._settings), self._paper.say):
            old = None if options.new else unfinished(self._desk, sheaf)
            # From here on there are jobs: who interrupts is told how to come back to them.
            self._interrupts.begin()
            if old is None:
                return queue(self._desk, sheaf)
        return self._taken_up(old)

    def _taken_up(self, old: Run) -> Run:
        self._paper.say(
            f"taking up {old.id}, the unfinished run of the same file; --new forces another"
        )
        return old

    def found(self, word: str | None) -> Run:
        """Return the run that a word means; raise NotFound."""
        return one_run(self._desk.store, word)

    # -- following ---------------------------------------------------------------------------

    def follow(self, run: Run) -> int:
        """Follow a run to its end and print its receipt; return the exit code."""
        with self._interrupts as interrupts:
            here = scene(self._desk, run, self._desk.clock.now())
            view = self._view(run, several=len(here.jobs) > 1)
            follower = Follower(self._desk, self._host, view, here)
            goodbye = Goodbye(interrupts, view)
            outcome = follower.to_the_end(interrupts, goodbye)
            if outcome is Outcome.DETACHED:
                return self._detach(run, follower.jobs, goodbye.told_to_go)
        self._print_receipt(run, follower.jobs)
        return for_jobs(follower.jobs)

    def _view(self, run: Run, *, several: bool) -> View:
        console = self._paper.console
        if console is None or console.is_dumb_terminal:
            return PlainView(self._paper.stream, several)
        from cloudwhale.cli.live_view import LiveView

        return LiveView(console, run, several)

    def _detach(self, run: Run, jobs: Sequence[Job], told: signal.Signals | None) -> int:
        if self._host.holds:
            self.left_behind = leave_controller_behind(self._settings)
        also = " --sandbox" if self._settings.sandbox else ""
        by = f" A controller works on (process {self.left_behind})." if self.left_behind else ""
        self._paper.say(
            f"Detached, the jobs go on.{by} Come back: cloudwhale attach {run.id}{also}"
        )
        if self._as_json:
            self._print_receipt(run, jobs)
        return Exit.DONE if told is None else Exit.SIGNAL + told

    def _print_receipt(self, run: Run, jobs: Sequence[Job]) -> None:
        store, now = self._desk.store, self._desk.clock.now()
        if run.night is not None:
            self._print_report(run)
            return
        receipt = run_receipt(run, jobs, now, books_of(store, jobs, run.id, now))
        if self._as_json:
            emit(run_keys(receipt))
            return
        self._paper.sheet(receipt_sheet(receipt))
        if receipt.spent_usd:
            self._paper.say(f"`cloudwhale receipt {run.id} --what-if` says more of that money.")
        for job in jobs:
            if job.state is JobState.PARKED and job.reason is not None:
                self._paper.say(f"{job.id} is parked. What would change it: {job.reason.change}")

    def _print_report(self, run: Run) -> None:
        """Print the morning report of a night, and write it as a page beside the results."""
        from cloudwhale.cli import mornings
        from cloudwhale.cli.nights import page_of

        told = mornings.report_of(self._desk, self._desk.store.run(run.id) or run)
        page = page_of(run, Path.cwd() / RESULTS)
        page.parent.mkdir(parents=True, exist_ok=True)
        mornings.write_page(told, page)
        if self._as_json:
            emit(told.model_dump(mode="python"))
            return
        mornings.show(self._paper, told)
        self._paper.say(f"The same as a page: {page}")


def question(made: Preview) -> str:
    """Return what is asked before a run begins, with the most that it can cost."""
    jobs = len(made.jobs)
    asked = "Run this job" if jobs == 1 else f"Run these {jobs:,} jobs"
    if not made.machines:
        return f"{asked}?"
    of = "" if made.budget_usd is None else f" of {short(made.budget_usd)}"
    return f"{asked} for {short(made.cost_usd)}, at most {short(made.worst_case_usd)}{of}?"


def unfinished(desk: Desk, sheaf: Sheaf) -> Run | None:
    """Return the newest unfinished run of the same file, options and folder."""
    return desk.store.unfinished_run(str(Path.cwd()), sheaf.file.digest)
